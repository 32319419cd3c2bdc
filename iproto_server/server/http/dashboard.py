"""The dashboard and its API: what they need, and what runs beside requests."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from iproto_server.box import Box
from iproto_server.box.clock import Timer
from iproto_server.config.address import Address
from iproto_server.metrics.loop_lag import LoopLag
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.applications.async_procedures import CoroutineRunner
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.http.api import API, Api
from iproto_server.server.http.guards import HostAndOrigin, KnownHosts
from iproto_server.server.http.history import INTERVAL, History, ServerFigures
from iproto_server.server.http.login import LoginLink, LoginPages, Logins
from iproto_server.server.http.pages import Pages
from iproto_server.server.operators.operator_calls import OperatorCalls
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.storage.wal import WriteAheadLog

logger = logging.getLogger("iproto_server.http")


class Dashboard:
    """The dashboard of a server.

    Parameters:
        state: the connections.
        dispatcher: counts requests, and has the delays of logins.
        log: the write-ahead log.
        lag: measures the event loop's latency.
        coroutines: runs transactions.
        operator: the procedures for operators.
        queues: the queues.
        names: the names under which browsers may reach the server, beside those of the machine.

    Attributes:
        routes: what it serves.
        middleware: what its requests pass first.
        logins: the logins.
    """

    def __init__(
        self,
        state: ServerState,
        dispatcher: Dispatcher,
        log: WriteAheadLog,
        lag: LoopLag,
        coroutines: CoroutineRunner,
        operator: OperatorCalls,
        queues: ApplicationQueues,
        names: Iterable[str],
    ) -> None:
        box, config = state.box, state.config
        self._box: Box = box
        self._state = state
        self._dispatcher = dispatcher
        self._log = log
        self._lag = lag
        self._timer: Timer | None = None
        self._address: Address | None = None
        self._is_tls = config.http is not None and config.http.tls is not None
        self._history = History(box, queues.all, self._figures, config.metrics_max_queues)
        self.logins = Logins(box)
        self._link = LoginLink(box, self._announce)
        pages = LoginPages(
            box,
            self.logins,
            self._link,
            dispatcher.authentication,
            operator,
            config.http_behind_proxy,
            state.rate_limited_log,
            lambda: config.instance_name or box.listen[0],
        )
        self._api = Api(coroutines, operator, queues, pages, self._history)
        files = Pages()
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        self.routes: Sequence[BaseRoute] = (
            Route("/", files.index),
            Route("/static/{name}", files.file),
            Route(API + "{path:path}", self._handle, methods=methods),
        )
        self.middleware: Sequence[Middleware] = (Middleware(HostAndOrigin, hosts=KnownHosts(names)),)

    def start(self, address: Address) -> None:
        """Begin to take samples, and offer a link where no user has a password.

        Parameters:
            address: the address with its real port.
        """
        self._address = address
        self._link.offer()
        self._sample()

    def stop(self) -> None:
        """Take no more samples, and end all logins."""
        if self._timer is not None:
            self._timer.cancel()
        self.logins.end_all()

    async def _handle(self, request: Request) -> Response:
        return await self._api.handle(request)

    def _announce(self, token: str) -> None:
        address = self._address
        if address is None or address.path:
            place = "http://HOST"
        else:
            host = f"[{address.host}]" if ":" in address.host else address.host or "localhost"
            place = f"{'https' if self._is_tls else 'http'}://{host}:{address.port}"
        logger.info(
            "no user has a password: log in to the dashboard with this link, once: %s/#token=%s", place, token
        )

    def _sample(self) -> None:
        self._timer = self._box.clock.call_later(INTERVAL, self._sample)
        self.logins.end_expired()
        self._history.sample()

    def _figures(self) -> ServerFigures:
        state = self._state
        return ServerFigures(
            connections=len(state.connections),
            requests=self._box.stat.net()["REQUESTS"]["total"],
            errors=self._dispatcher.errors,
            loop_latency=self._lag.recent,
            memory=self._box.memory.used(),
            wal_bytes=self._log.size,
        )
