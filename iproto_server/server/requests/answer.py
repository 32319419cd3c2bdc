"""Handler result: immediate, deferred or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from iproto_server.box import Waiter
from iproto_server.protocol.request import Request
from iproto_server.server.client_connection import ClientConnection

Body = dict[int, Any]


class Pending(NamedTuple):
    """A deferred answer.

    Attributes:
        waiter: the waiter of the call.
        respond: encodes the response when the waiter is done, or raises the error of the call.
    """

    waiter: Waiter
    respond: Callable[[Waiter], bytes]


Answer = bytes | Pending | None
"""A response, a deferred answer, or None for a request without an answer."""
Handler = Callable[[ClientConnection, Request], Answer]
