"""Converts exceptions of applications' code to errors for clients."""

from __future__ import annotations

import logging

from iproto_server.errors import BoxError

logger = logging.getLogger("iproto_server.dispatch")


def procedure_error(name: str, error: BaseException) -> BoxError:
    """Log an exception that a procedure raised unintentionally, and return the error for the client.

    Parameters:
        name: name of the function, for the log.
        error: any exception. `SystemExit` and `asyncio.CancelledError` end the request of the application,
            not the server.

    Returns: the error, with the exception's type and text; the log has the traceback.
    """
    logger.error("%s raised %s", name, type(error).__name__, exc_info=error)
    return BoxError.procedure(f"{type(error).__name__}: {text_of(error)}")


def text_of(error: BaseException) -> str:
    """Return an exception's text; if its `__str__` raises, the same text as a traceback shows."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001  # an application's code must not hide its first error
        return "<exception str() failed>"
