"""HTTP connections: uvicorn's protocol on h11, with deadlines, a limit of their number and of their work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.server.http.pacing import EVENTS, PacedFlow, PacedParser, Pacing, Rank
from iproto_server.server.limits.admission import Admission, Ticket
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

MAX_REQUESTS: Final = 32
"""Maximum number of requests of an address at a time; those of `/health` and `/ready` are not counted."""
MAX_CONNECTIONS: Final = MAX_REQUESTS + 8
"""Maximum number of connections of an address; their descriptors come from those reserved for files."""
_PIECE: Final = 4096
"""Bytes of headers that are parsed at a time; of a body there may be more."""
_BODY_PIECE: Final = 64 * 1024
IDLE_TIMEOUT: Final = 75
"""Seconds without a request after which a connection is closed; longer than intervals between scrapes."""

_RECEIVING, _RESPONDING, _IDLE = "receiving", "responding", "idle"
_TIMEOUTS: Final = {_RECEIVING: 10.0, _RESPONDING: 60.0, _IDLE: IDLE_TIMEOUT + 10.0}
"""Seconds after which a connection is cut. uvicorn closes an idle one before, if the client reads."""


class HttpTicket(Ticket):
    """A counted HTTP connection.

    Attributes:
        cut: ends the connection; None while it is being created.
        has_request: whether a request is being handled.
    """

    __slots__ = ("cut", "has_request")

    def __init__(self, admission: Admission, peer: str) -> None:
        super().__init__(admission, None, peer)
        self.cut: Callable[[], object] | None = None
        self.has_request = False

    def begin_handshake(self, give_up: Callable[[], object]) -> None:
        self.cut = give_up


class HttpAdmission(Admission):
    """Counts the HTTP connections of an address.

    A new one takes the place of the one that has waited for its client the longest. So clients that are
    slow, or send nothing, keep no others away.

    Parameters:
        log: logs refused connections.

    Attributes:
        refused: number of refused connections and requests, and of connections that had to make room.
    """

    def __init__(self, log: RateLimitedLog) -> None:
        super().__init__(_no_config, log)
        self._waiting: dict[HttpTicket, None] = {}
        self.refused = 0

    def admit(self, host: str | None, peer: str) -> HttpTicket:
        if self.connections >= MAX_CONNECTIONS and not self._make_room():
            self._refused_one(f"{MAX_CONNECTIONS} are being answered", peer)
            raise BoxError(ErrorCode.SYSTEM, "too many connections")
        self.connections += 1
        self.accepted += 1
        ticket = HttpTicket(self, peer)
        self._waiting[ticket] = None
        return ticket

    def leave(self, ticket: Ticket) -> None:
        super().leave(ticket)
        if isinstance(ticket, HttpTicket):
            self._waiting.pop(ticket, None)

    def begin_waiting(self, ticket: HttpTicket) -> None:
        """Note that a connection waits for its client from now on."""
        self._waiting.pop(ticket, None)
        if ticket.is_valid:
            self._waiting[ticket] = None

    def end_waiting(self, ticket: HttpTicket) -> None:
        """Note that the client waits for the connection."""
        self._waiting.pop(ticket, None)

    def refuse_request(self, peer: str) -> bool:
        """Whether to refuse a request for which there is no place.

        There is one if a client is slow to send another request's body: that connection is cut.
        """
        if self._make_room(of_requests=True):
            return False
        self._refused_one(f"{MAX_REQUESTS} requests are being handled", peer)
        return True

    def _make_room(self, of_requests: bool = False) -> bool:
        """Cut the connection that has waited the longest, if there is one."""
        for ticket in self._waiting:
            if ticket.cut is not None and (ticket.has_request or not of_requests):
                self._refused_one("it waited the longest for its client", ticket.peer)
                ticket.give_back()
                ticket.cut()
                return True
        return False

    def _refused_one(self, reason: str, peer: str) -> None:
        self.refused += 1
        self._log.event(logging.WARNING, "refused an HTTP connection", peer=peer, reason=reason)


def _no_config() -> NoReturn:
    raise NotImplementedError  # the limits of IPROTO are not those of HTTP


def refusal(error: BoxError) -> bytes:
    """Return the response to a refused connection."""
    body = f"{error.message}\n".encode()
    return (
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Retry-After: 10\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )


_CUT: Final = refusal(BoxError(ErrorCode.SYSTEM, "too many connections, and this one was slow"))


class HttpConnection(H11Protocol):
    """A connection that has to send and to read within deadlines, and is parsed in steps.

    Parameters:
        config: the configuration of uvicorn, with the application.
        state: what the connections share.
        admission: counts the connections of its address.
        ticket: its admission.
        pacing: runs the steps of all connections.
        log: logs malformed requests.
        closed: called when it has ended.
    """

    conn: PacedParser
    flow: PacedFlow

    def __init__(
        self,
        config: Config,
        state: ServerState,
        admission: HttpAdmission,
        ticket: HttpTicket,
        pacing: Pacing,
        log: RateLimitedLog,
        closed: Callable[[], object],
    ) -> None:
        super().__init__(config, state, {}, asyncio.get_running_loop())
        self.conn = PacedParser()
        self._admission = admission
        self._ticket = ticket
        self._pacing = pacing
        self._log = log
        self._closed = closed
        self._incoming = bytearray()
        self._has_ended = False
        self._phase = ""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = PacedFlow(transport, self._go_on)
        self._ticket.cut = self._cut
        self._begin(_RECEIVING)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pacing.forget(self._step)
        self._incoming.clear()
        self._ticket.give_back()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().connection_lost(exc)
        self._closed()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._incoming += data
        self.flow.pause()
        self._go_on()
        self._watch()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the half that sends until the requests are answered. TLS has no halves."""
        self._has_ended = True
        self._go_on()
        return self.scheme == "http" and not self.transport.is_closing()

    def on_response_complete(self) -> None:
        # The next request, if some of it has been received, has a step of its own.
        self.conn.allowed, self.conn.is_held = 0, self.conn.has_rest
        super().on_response_complete()
        self._go_on()
        self._watch()

    def finish(self) -> None:
        """Close the connection after the running response, or now."""
        if not self.transport.is_closing():
            self.shutdown()

    def send_400_response(self, msg: str) -> None:
        self._log.event(logging.DEBUG, "a malformed HTTP request", peer=self._ticket.peer)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # a response is on its way
            self.transport.close()
        if self._is_responding:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    @property
    def _is_responding(self) -> bool:
        cycle: object = self.cycle  # None before the first request, unlike what its type says
        return cycle is not None and not self.cycle.response_complete

    # -- steps --

    def _go_on(self) -> None:
        """Ask for a step if there is something to parse; else read on, or close if nothing can follow."""
        parser = self.conn
        if self.transport.is_closing() or (self._is_responding and len(self.cycle.body) > HIGH_WATER_LIMIT):
            return  # The second goes on when the application has read the body.
        if parser.their_state in (h11.MUST_CLOSE, h11.CLOSED, h11.ERROR):
            self._incoming.clear()
        is_answered_first = self._is_responding and not self.cycle.more_body
        if parser.is_held or (self._incoming and not is_answered_first):
            is_in_body = parser.their_state is h11.SEND_BODY
            self._pacing.soon(self._step, Rank.BODY if is_in_body else Rank.REQUEST)
        elif not self._incoming:
            if self._has_ended and not is_answered_first:
                self.transport.close()
            elif not (is_answered_first and parser.has_rest):
                self.flow.read_on()

    def _step(self) -> None:
        """Parse some of what has been received."""
        if self.transport.is_closing():
            return
        parser = self.conn
        if not parser.is_held and self._incoming:
            size = _BODY_PIECE if parser.their_state is h11.SEND_BODY else _PIECE
            parser.receive_data(bytes(self._incoming[:size]))
            del self._incoming[:size]
        parser.allowed, parser.is_held = EVENTS, False
        try:
            self.handle_events()
        except Exception as error:  # noqa: BLE001  # a client can cause it, so that the log needs a limit
            self._log.event(
                logging.ERROR, "an HTTP connection failed", peer=self._ticket.peer, error=repr(error)
            )
            self.transport.abort()
        self._go_on()
        self._watch()

    # -- deadlines and places --

    def _watch(self) -> None:
        """Begin a new deadline if the connection is in another phase now."""
        if self._is_responding:
            phase = _RECEIVING if self.cycle.more_body else _RESPONDING
        elif self._incoming or self.conn.has_rest or self.conn.their_state is h11.SEND_BODY:
            phase = _RECEIVING
        else:
            phase = _IDLE
        self._ticket.has_request = self._is_responding
        if phase != self._phase:
            self._begin(phase)

    def _begin(self, phase: str) -> None:
        self._phase = phase
        if phase == _RESPONDING:
            self._admission.end_waiting(self._ticket)
        else:
            self._admission.begin_waiting(self._ticket)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_TIMEOUTS[phase], self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._log.event(
            logging.DEBUG, "an HTTP connection timed out", peer=self._ticket.peer, phase=self._phase
        )
        self.transport.abort()

    def _cut(self) -> None:
        """Make room for another connection."""
        is_new = self._phase == _RECEIVING and self.conn.our_state is h11.IDLE
        if is_new and not self.transport.get_write_buffer_size():
            self.transport.write(_CUT)
            self.transport.close()
            if not self.transport.get_write_buffer_size():
                return
        self.transport.abort()
