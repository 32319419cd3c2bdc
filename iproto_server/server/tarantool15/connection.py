"""A connection of a client that speaks Tarantool 1.5's protocol.

Everything is as with other connections (whose turn it is, what is held until it is in the log, who is not
read from), except the bytes: there is no greeting, and what cannot be understood ends the connection without
a word.
"""

from __future__ import annotations

from typing import NoReturn

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.tarantool15.framing import FrameDecoder15
from iproto_server.protocol.tarantool15.response import answered_request, encode_error
from iproto_server.server.connection.connection import CUT_AT_ONCE, Connection
from iproto_server.server.connection.pending_output import Output
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.limits.admission import Ticket


class Output15(Output):
    """Answers of this protocol that are held until rows are in the log."""

    __slots__ = ()

    @staticmethod
    def refusal_of(response: bytes, error: BoxError) -> bytes:
        """What is sent instead of an answer."""
        return encode_error(*answered_request(response), error)


class Connection15(Connection):
    """The server's side of one connection.

    Parameters:
        server: what the connections of the server share.
        ticket: its place among the connections that there may be; None where nobody counts them.
    """

    __slots__ = ()

    _output_type = Output15

    def __init__(self, server: ServerState, ticket: Ticket | None = None) -> None:
        super().__init__(server, ticket)
        self._decoder = FrameDecoder15(server.config.max_frame, CUT_AT_ONCE)
        self._handle = server.requests_15.handle

    def _greet(self) -> None:
        """1.5 waits for the client to speak first."""

    @staticmethod
    def refusal(server: ServerState, error: BoxError) -> bytes:
        """As on a refusal by on_connect, the error answers nothing."""
        return encode_error(0, 0, error)

    def _refuse(self, error: BoxError) -> None:
        """As in 1.5, who is refused by on_connect hears why, in answer to nothing."""
        self.reply(encode_error(0, 0, error))

    def _fail(self) -> None:
        """What follows cannot be understood: close, without a word."""
        assert self._fault is not None
        self._server.incoming.refuse(self, self._fault)
        self.close_after_output()

    def expel(self, error: BoxError) -> None:
        """As others, without a word."""
        self._decoder.clear()
        self.close_after_output()

    def send_chunk(self, sync: int, data: bytes) -> NoReturn:
        """There are no messages before an answer. Raises BoxError UNSUPPORTED."""
        raise BoxError(ErrorCode.UNSUPPORTED, "Tarantool 1.5's protocol", "messages before the answer")
