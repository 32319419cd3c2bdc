"""A connection of a client that speaks Tarantool 1.5's protocol.

Scheduling, group commit and flow control are those of other connections. Only the bytes differ: there is no
greeting, and malformed data closes the connection without an error.
"""

from __future__ import annotations

from typing import NoReturn

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import FrameDecoder15
from iproto_server.protocol.tarantool15.response import answered_request, encode_error
from iproto_server.server.connection.connection import Connection
from iproto_server.server.connection.intake import CUT_AT_ONCE
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.limits.admission import Ticket


class Connection15(Connection):
    """The server's side of one connection.

    Parameters:
        server: the state that connections share.
        ticket: the connection's admission ticket; None if connections are not counted.
    """

    __slots__ = ()

    def __init__(self, server: ServerState, ticket: Ticket | None = None) -> None:
        super().__init__(server, ticket)
        self._decoder = FrameDecoder15(server.config.max_frame, CUT_AT_ONCE)
        self._handle = server.requests_15.handle

    def _greet(self) -> None:
        """Send nothing: 1.5 has no greeting."""

    @staticmethod
    def refusal(server: ServerState, error: BoxError) -> bytes:
        """Encode an error that answers no request, as after a refusal by on_connect."""
        return encode_error(0, 0, error)

    @staticmethod
    def _refusal_of(error: BoxError, response: bytes) -> bytes:
        """Encode the error that replaces a response."""
        return encode_error(*answered_request(response), error)

    def _refuse(self, error: BoxError) -> None:
        """Send the error of on_connect, which answers no request, as in 1.5."""
        self.reply(encode_error(0, 0, error))

    def _fail(self) -> None:
        """Close without an error, because the data is malformed."""
        assert self._fault is not None
        self._server.incoming.refuse(self, self._fault)
        self.close_after_output()

    def expel(self, error: BoxError) -> None:
        """Close without an error."""
        self._decoder.clear()
        self.close_after_output()

    def send_chunk(self, sync: int, data: bytes) -> NoReturn:
        """Raise BoxError UNSUPPORTED: this protocol has no messages before a response."""
        raise BoxError(ErrorCode.UNSUPPORTED, "Tarantool 1.5's protocol", "messages before the answer")
