"""HTTP connections: uvicorn's protocol on h11, with deadlines and a limit of their number."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.server.limits.admission import Admission, Ticket
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

MAX_CONNECTIONS: Final = 32
"""Maximum number of connections; their descriptors come from those reserved for files."""
MAX_HEADERS: Final = 16 * 1024
"""Maximum bytes of a request's line and headers, but for a piece that completes them."""
_PIECE: Final = 4096
IDLE_TIMEOUT: Final = 75
"""Seconds without a request after which a connection is closed; longer than intervals between scrapes."""

_RECEIVING, _RESPONDING, _IDLE = "receiving", "responding", "idle"
_TIMEOUTS: Final = {_RECEIVING: 10.0, _RESPONDING: 60.0, _IDLE: IDLE_TIMEOUT + 10.0}
"""Seconds after which a connection is cut. uvicorn closes an idle one before, if the client reads."""


class HttpAdmission(Admission):
    """Counts HTTP connections, and refuses those above the limit.

    Parameters:
        log: logs refused connections.

    Attributes:
        refused: number of refused connections.
    """

    def __init__(self, log: RateLimitedLog) -> None:
        super().__init__(_no_config, log)
        self.refused = 0

    def admit(self, host: str | None, peer: str) -> Ticket:
        if self.connections >= MAX_CONNECTIONS:
            self.refused += 1
            self._log.event(
                logging.WARNING,
                "refused an HTTP connection",
                peer=peer,
                reason=f"there are {MAX_CONNECTIONS}",
            )
            raise BoxError(ErrorCode.SYSTEM, "too many connections")
        self.connections += 1
        self.accepted += 1
        return Ticket(self, None, peer)


def _no_config() -> NoReturn:
    raise NotImplementedError  # the limits of IPROTO are not those of HTTP


def refusal(error: BoxError) -> bytes:
    """Return the response to a refused connection."""
    body = f"{error.message}\n".encode()
    return (
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Retry-After: 10\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    )


class HttpConnection(H11Protocol):
    """A connection that has to send and to read within deadlines.

    Parameters:
        config: the configuration of uvicorn, with the application.
        state: what the connections share.
        ticket: its admission.
        log: logs malformed requests.
        closed: called when it has ended.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        ticket: Ticket,
        log: RateLimitedLog,
        closed: Callable[[], object],
    ) -> None:
        super().__init__(config, state, {}, asyncio.get_running_loop())
        self._closed = closed
        self._ticket = ticket
        self._log = log
        self._phase = ""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin(_RECEIVING)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ticket.give_back()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().connection_lost(exc)
        self._closed()

    def data_received(self, data: bytes) -> None:
        # h11 limits requests that are incomplete, so that one that comes at once could be larger.
        for start in range(0, len(data), _PIECE):
            if not self.transport.is_closing():
                super().data_received(data[start : start + _PIECE])
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def finish(self) -> None:
        """Close the connection after the running response, or now."""
        if not self.transport.is_closing():
            self.shutdown()

    def send_400_response(self, msg: str) -> None:
        self._log.event(logging.DEBUG, "a malformed HTTP request", peer=self._ticket.peer)
        super().send_400_response(msg)

    @property
    def _is_responding(self) -> bool:
        cycle: object = self.cycle  # None before the first request, unlike what its type says
        return cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        """Begin a new deadline if the connection is in another phase now."""
        if self._is_responding:
            phase = _RECEIVING if self.cycle.more_body else _RESPONDING
        else:
            phase = _RECEIVING if self.conn.trailing_data[0] else _IDLE
        if phase != self._phase:
            self._begin(phase)

    def _begin(self, phase: str) -> None:
        self._phase = phase
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_TIMEOUTS[phase], self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._log.event(
            logging.DEBUG, "an HTTP connection timed out", peer=self._ticket.peer, phase=self._phase
        )
        self.transport.abort()
