"""Converts exceptions of applications' code to errors for clients."""

from __future__ import annotations

import logging

from iproto_server.box import Waiter
from iproto_server.box.access.session import Session
from iproto_server.errors import BoxError
from iproto_server.text.exception_text import text_of

logger = logging.getLogger("iproto_server.dispatch")


def procedure_error(name: str, error: BaseException, session: Session | None = None) -> BoxError:
    """Log an exception that a procedure raised unintentionally, and return the error for the client.

    Parameters:
        name: name of the function, for the log.
        error: any exception. `SystemExit` and `asyncio.CancelledError` end the request of the application,
            not the server.
        session: the session whose request it was; None: no client's.

    Returns: the error, with the exception's type and text; the log has the traceback.
    """
    fields = {} if session is None else _request_fields(session, session.sync)
    return _logged(name, error, fields)


def waited_error(waiter: Waiter, error: BaseException) -> BoxError:
    """Do the same for the end of a call that has waited.

    Parameters:
        waiter: the call.
        error: any exception.
    """
    return _logged(waiter.procedure, error, _request_fields(waiter.session, waiter.sync))


def _request_fields(session: Session, sync: int) -> dict[str, object]:
    return {"user": session.user.name, "peer": session.peer, "session": session.id, "request": sync}


def _logged(name: str, error: BaseException, fields: dict[str, object]) -> BoxError:
    logger.error(
        "%s raised %s",
        name,
        type(error).__name__,
        exc_info=error,
        extra={"fields": {"procedure": name, **fields}},
    )
    return BoxError.procedure(f"{type(error).__name__}: {text_of(error)}")
