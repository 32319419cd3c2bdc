"""The HTTP server: runs in the server's own event loop, and starts and stops with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from uvicorn.config import Config as UvicornConfig
from uvicorn.server import ServerState as UvicornState

from iproto_server.box.clock import Clock
from iproto_server.config.address import Address
from iproto_server.server.connection.listener import ConnectionFactory
from iproto_server.server.connection.listeners import Listeners
from iproto_server.server.deadline import Deadline
from iproto_server.server.http.application import LimitedRequests
from iproto_server.server.http.http_connection import (
    IDLE_TIMEOUT,
    HttpAdmission,
    HttpConnection,
    HttpTicket,
    refusal,
)
from iproto_server.server.http.pacing import Pacing
from iproto_server.server.limits.admission import Ticket
from iproto_server.server.limits.rate_limited_log import RateLimitedLog


def _nothing(address: Address) -> None:
    """Do nothing: the default of `started`."""


class HttpServer:
    """Serves ASGI applications.

    Parameters:
        listeners: the listening sockets of the server, which closes them.
        log: logs what clients can cause in any number.
        clock: provides timers.
    """

    def __init__(self, listeners: Listeners, log: RateLimitedLog, clock: Clock) -> None:
        self._listeners = listeners
        self._log = log
        self._state = UvicornState()
        self._all_closed = asyncio.Event()
        self._served: list[tuple[Address, ConnectionFactory, str, Callable[[Address], object]]] = []
        self._admissions: list[HttpAdmission] = []
        self._pacing = Pacing(clock)

    @property
    def refused(self) -> int:
        """The number of refused connections and requests of all addresses."""
        return sum(admission.refused for admission in self._admissions)

    def serve(
        self,
        address: Address,
        application: Starlette,
        suffix: str,
        started: Callable[[Address], object] = _nothing,
    ) -> None:
        """Serve an application on an address, once `listen` is called.

        Parameters:
            address: the address.
            application: the application.
            suffix: the end of the log line.
            started: called with the address and its real port once it accepts connections.
        """
        admission = HttpAdmission(self._log)
        self._admissions.append(admission)
        config = UvicornConfig(
            LimitedRequests(application, admission.refuse_request, self._log),
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            # Above warnings, which clients can cause in any number.
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE_TIMEOUT,
        )
        config.load()

        def connect(ticket: Ticket) -> HttpConnection:
            assert isinstance(ticket, HttpTicket)
            return HttpConnection(
                config, self._state, admission, ticket, self._pacing, self._log, self._one_closed
            )

        factory = ConnectionFactory(connect, refusal, admission, self._log, self._pacing.soon)
        self._served.append((address, factory, suffix, started))

    async def listen(self) -> None:
        """Accept connections. Raises OSError if an address cannot be used."""
        for address, factory, suffix, started in self._served:
            started(await self._listeners.accept(address, factory, suffix))

    async def stop(self, deadline: Deadline, grace: float) -> None:
        """Let the running requests end within the deadline, then close the connections.

        Parameters:
            deadline: the deadline of the stop.
            grace: seconds after it for responses that are being sent.
        """
        for connection in self._connections():
            connection.finish()
        await deadline.wait(list(self._state.tasks), grace)
        if self._state.connections:
            self._all_closed.clear()
            all_closed = asyncio.ensure_future(self._all_closed.wait())
            await deadline.wait((all_closed,), grace)
            all_closed.cancel()
        for connection in self._connections():
            connection.transport.abort()
        for task in list(self._state.tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _one_closed(self) -> None:
        if not self._state.connections:
            self._all_closed.set()

    def _connections(self) -> Sequence[HttpConnection]:
        return [each for each in self._state.connections if isinstance(each, HttpConnection)]
