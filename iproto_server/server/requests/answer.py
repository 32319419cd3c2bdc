"""What comes of a request: a response now, one later, or none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from iproto_server.box import Waiter
from iproto_server.errors import BoxError
from iproto_server.protocol.request import Request

if TYPE_CHECKING:
    from iproto_server.server.connection.connection import Connection

logger = logging.getLogger("iproto_server.dispatch")

Body = dict[int, Any]


class Pending(NamedTuple):
    """An answer that is still waited for.

    Attributes:
        waiter: what is waited for.
        respond: makes the response when the waiter is done; raises what the call ends in.
    """

    waiter: Waiter
    respond: Callable[[Waiter], bytes]


Answer = bytes | Pending | None
"""A response; what will be one; or None, for a request that has no answer."""
Handler = Callable[["Connection", Request], Answer]


def procedure_error(name: str, error: BaseException) -> BoxError:
    """What a client is told of a Python exception that no procedure meant to send; the log has the rest.

    Parameters:
        name: what has raised it.
        error: any exception, `SystemExit` and `asyncio.CancelledError` included: an application's code ends
            its own request with them, and not the server.
    """
    logger.error("%s raised %s", name, type(error).__name__, exc_info=error)
    return BoxError.procedure(f"{type(error).__name__}: {text_of(error)}")


def text_of(error: BaseException) -> str:
    """An exception's text; where its `__str__` raises, what a traceback shows then."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001  # an application's code, which must not hide what it has raised first
        return "<exception str() failed>"
