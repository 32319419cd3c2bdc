"""Handler result: immediate, deferred or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from iproto_server.box import Waiter
from iproto_server.protocol.request import Request
from iproto_server.server.client_connection import ClientConnection

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
Handler = Callable[[ClientConnection, Request], Answer]
