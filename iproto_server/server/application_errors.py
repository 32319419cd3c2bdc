"""Exceptions of applications' code, as errors for clients."""

from __future__ import annotations

import logging

from iproto_server.errors import BoxError

logger = logging.getLogger("iproto_server.dispatch")


def procedure_error(name: str, error: BaseException) -> BoxError:
    """Log an exception that a procedure raised unintentionally, and return the error for the client.

    Parameters:
        name: the function that raised it, for the log.
        error: any exception, `SystemExit` and `asyncio.CancelledError` included: an application's code ends
            its own request with them, and not the server.

    Returns: the error, with the exception's type and text; the log has the traceback.
    """
    logger.error("%s raised %s", name, type(error).__name__, exc_info=error)
    return BoxError.procedure(f"{type(error).__name__}: {text_of(error)}")


def text_of(error: BaseException) -> str:
    """Return an exception's text; where its `__str__` raises, the text that a traceback shows then."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001  # an application's code, which must not hide what it has raised first
        return "<exception str() failed>"
