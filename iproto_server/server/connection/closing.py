"""The state of a connection, and how it closes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from iproto_server.box.access.session import Session
from iproto_server.logging.log_setup import event
from iproto_server.native._native import ConnectionState, Output
from iproto_server.protocol.framing import Frames, FramingError
from iproto_server.server.client_connection import ClientConnection, EventSubscriptions, RequestStreams
from iproto_server.server.connection.rest import Rest
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.connection.states import ClientEnd, Event, Phase, Transitions, Wait, next_phase
from iproto_server.server.limits.admission import Ticket

logger = logging.getLogger("iproto_server.connection")

END_GRACE: Final = 1.0
"""Seconds after which the socket of a client that sends no more is closed if its requests have to wait."""


if TYPE_CHECKING:

    class _Whole(ConnectionState, ClientConnection):
        """The class with all of its parts."""

else:
    _Whole = ConnectionState


class ClosingConnection(_Whole):
    """A connection with its state; it can be closed.

    Parameters:
        server: the state that connections share.
        ticket: the connection's admission ticket; None if connections are not counted.

    Attributes:
        salt: random bytes of the greeting, which passwords are scrambled with.
        streams: the connection's streams; None before the first request of one.
        subscriptions: the keys that it watches; None before the first WATCH.
    """

    __slots__ = (
        "_backlog",
        "_descriptor",
        "_end",
        "_is_confidential",
        "_is_reading_stopped",
        "_reason",
        "_rest",
        "_ticket",
        "salt",
        "streams",
        "subscriptions",
    )

    session: Session
    _server: ServerState
    _transport: asyncio.Transport
    _fault: FramingError | None

    def __init__(self, server: ServerState, ticket: Ticket | None = None) -> None:
        self._ticket = ticket
        self._backlog: Frames | None = None
        self._end = ClientEnd.UNWATCHED
        self._descriptor = -1
        self._is_confidential = False
        self._reason: object = None
        self._rest: Rest | None = None
        self._is_reading_stopped = False
        self.subscriptions: EventSubscriptions | None = None
        self.salt = b""
        self.streams: RequestStreams | None = None

    # -- states --

    @property
    def phase(self) -> Phase:
        """What the connection does with requests."""
        return Phase(self._phase)

    def _enter(self, event: Transitions) -> None:
        """Change the phase as an event does."""
        self._phase = next_phase(self._phase, event)

    def _wait(self, reason: int) -> None:
        """Let requests wait for a reason."""
        self._waits |= reason

    def _end_wait(self, reason: int) -> None:
        """Let requests wait for other reasons only."""
        self._waits &= ~reason

    # -- requests in flight --

    def postponed(self) -> None:
        """Count a postponed request of a stream as in flight."""
        self.in_flight += 1
        self._server.in_flight += 1
        self._server.parked += 1

    def taken_up(self) -> None:
        """End counting a postponed request of a stream as in flight."""
        self.in_flight -= 1
        self._server.in_flight -= 1
        self._server.parked -= 1

    # -- closing --

    def close_after_output(self) -> None:
        """Take no more requests, and close when all answers are sent."""
        if self.is_closing:
            return
        self._enter(Event.CLOSE)
        # Whatever they wait for, the answer would not be sent.
        self.session.end()
        if self.is_lost:
            # Not within the request that may have caused it.
            asyncio.get_running_loop().call_soon(self._finish)
            return
        if self._transport.is_closing():
            return
        self._transport.pause_reading()
        self._close()

    def let_go(self) -> None:
        """Close now, if the connection waits for its paced close."""
        if self.is_closing:
            self._close()

    def _close(self) -> None:
        """Close, unless there is something to send, or others are closed first."""
        if self.is_lost or self._has_output or self._held_size:
            return
        if self not in self._server.incoming.paced:
            self._transport.close()

    def _close_when_done(self) -> None:
        """Close, unless requests follow a waiting call in its stream."""
        if self.streams is None or not self.streams.waiting:
            self.close_after_output()

    def _stream_went_on(self) -> None:
        """Close if requests of a stream, handled after the client's end, were the last ones."""
        is_waiting = self._waits & Wait.REQUEST or self in self._server.turns or self in self._server.held
        if not is_waiting:
            self._close_when_done()

    def _end_soon(self) -> None:
        """Close the socket of a client that sends no more, if its requests wait for procedures in flight."""
        if self.is_closing or self.is_lost:
            return
        is_waiting = not self.is_held or self._server.is_full
        if self.in_flight and is_waiting and not self.unsent:
            self._transport.abort()
        else:
            asyncio.get_running_loop().call_later(END_GRACE, self._end_soon)

    def stop_reading(self) -> None:
        """Take no more requests, and handle those already received."""
        self._is_reading_stopped = True
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def abort(self) -> None:
        """Close at once, without sending what is left; requests that have arrived are handled."""
        self._transport.abort()

    def _finish(self) -> None:
        """End the session of a lost connection, and tell the application."""
        self._enter(Event.CLOSE)
        if self._ticket is not None:
            self._ticket.give_back()
        if self._rest is not None:
            self._rest.close()
        self._backlog = None
        self._output = Output()
        self._server.incoming.forget(self)
        self._server.unsent.forget(self)
        self.session.channel = None
        if self.subscriptions is not None:
            self.subscriptions.close()
        if self.streams is not None:
            for _ in range(self.streams.close()):
                self.taken_up()
        session = self.session
        event(
            logger,
            logging.DEBUG,
            "disconnected",
            peer=session.peer,
            session=session.id,
            user=session.user.name,
            reason=self._reason,
        )
        self._server.disconnected(self)

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent."""
        if self.is_lost:
            return 0
        return self._output.size + self._held_size + self._transport.get_write_buffer_size()
