"""The server: starts from a configuration and applications, serves clients, and stops."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from iproto_server.app import Application
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.config.address import Address
from iproto_server.config.config import Config, ConfigError
from iproto_server.descriptors import spare
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.importer import ImportAnew
from iproto_server.metrics.loop_lag import LoopLag
from iproto_server.protocol.constants import PROTOCOL_VERSION, Feature
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.applications.async_procedures import CoroutineRunner
from iproto_server.server.applications.background_tasks import BackgroundTasks
from iproto_server.server.applications.reload import Reload
from iproto_server.server.applications.served_applications import ServedApplications
from iproto_server.server.backup_reader import BackupReader
from iproto_server.server.connection.listeners import Listeners
from iproto_server.server.database import ServedDatabase
from iproto_server.server.deadline import Deadline
from iproto_server.server.dynamic_config import DynamicConfig
from iproto_server.server.graceful_shutdown import GracefulShutdown
from iproto_server.server.log_rotation import LOG_ROTATE, rotate_on_call
from iproto_server.server.operators.operator_calls import OperatorCalls
from iproto_server.server.operators.operator_view import OperatorView
from iproto_server.server.requests.call import Calls
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.server.requests.watch import EventDelivery
from iproto_server.server.schedules.schedule_calls import ScheduleCalls
from iproto_server.server.schedules.scheduler import Scheduler
from iproto_server.server.service_manager import ServiceManager
from iproto_server.server.stats.box_stat import BoxStatExporter
from iproto_server.server.stats.readiness import Readiness
from iproto_server.server.stats.server_metrics import ServerMetrics
from iproto_server.storage.storage import Storage
from iproto_server.text.counting import counted

if TYPE_CHECKING:
    from iproto_server.metrics.graphite import GraphiteReporter
    from iproto_server.server.http.dashboard import Dashboard
    from iproto_server.server.http.http_server import HttpServer

logger = logging.getLogger("iproto_server.server")


FEATURES = (
    Feature.STREAMS,
    Feature.TRANSACTIONS,
    Feature.ERROR_EXTENSION,
    Feature.WATCHERS,
    Feature.PAGINATION,
    Feature.SPACE_AND_INDEX_NAMES,
    Feature.WATCH_ONCE,
)
LAST_GRACE = 0.5
"""Seconds after the deadline of a stop for cancelled tasks and for answers that are being sent."""


class Server(ServedDatabase):
    """Serves applications to clients.

    Parameters:
        config: the configuration.
        applications: the applications to serve.
        storage: opens the files of the database.
        import_anew: imports the applications for a reload; None: no reload.
        manager: the service manager, which is told about the recovery and about reloads; None: there is none.
        lua: lets clients call and evaluate Lua code; None: there is none.
        configures_guest: whether guest gets rights, or other machines are refused, by default.

    Attributes:
        served: the served applications.
        operator: the procedures for operators; set by `start`, as the next one.
        scheduler: puts the tasks of schedules.
        listeners: the listening sockets.
        has_started: whether it has accepted connections.

    Raises:
        ApplicationConflict: two applications define one procedure.
        ConfigError: the files of a TLS address or of the token cannot be used, or HTTP would be open to other
            machines.
    """

    def __init__(
        self,
        config: Config,
        applications: Sequence[Application],
        storage: Callable[..., Storage] = Storage,
        import_anew: ImportAnew | None = None,
        manager: ServiceManager | None = None,
        lua: Callable[[Calls], object] | None = None,
        configures_guest: bool = True,
    ) -> None:
        self._lua = lua
        self._configures_guest = configures_guest
        if config.http_problem is not None:
            raise ConfigError(config.http_problem)
        self._token: str | None = None
        if config.token_file is not None:
            from iproto_server.server.http.metrics_token import read_token

            self._token = read_token(config.token_file)
        super().__init__(config, storage, manager or ServiceManager())
        self._import_anew = import_anew
        self.listeners = Listeners(config)
        self.served = ServedApplications(applications)
        self._reporter: GraphiteReporter | None = None
        self._http: HttpServer | None = None
        self._dashboard: Dashboard | None = None
        self._lag = LoopLag()
        self._deadline = Deadline()
        self.has_started = False
        self._is_refused = False

    async def start(self) -> None:
        """Run the setups of the applications, then listen.

        Raises:
            OSError: an address is in use.
            ConfigError: other machines can reach the server, and access is not configured.
            BoxError: an application's setup failed, or what it did cannot be logged.
        """
        state, box = self.state, self.box
        self._coroutines = CoroutineRunner(box, state.batch.written)
        asyncio.get_running_loop().set_task_factory(self._coroutines.task_factory)
        box.run_coroutine = self._coroutines.start
        box.when_written = lambda callback: state.batch.written().add_done_callback(lambda _: callback())
        EventDelivery(box.events, box.transactions, state.batch)
        box.announce()
        self.dispatcher = state.dispatcher = Dispatcher(
            box,
            self.served.procedures,
            FEATURES,
            PROTOCOL_VERSION,
            self._coroutines.start,
            state.rate_limited_log,
        )
        self.served.begin(box, self.dispatcher.calls)
        if self._lua is not None:
            self._lua(self.dispatcher.calls)
        self.dispatcher.calls.own[LOG_ROTATE] = rotate_on_call
        self._metrics = ServerMetrics(
            state, self.dispatcher, self.storage.log, self._checkpointer, self._lag, box.memory
        )
        self._box_stat = BoxStatExporter(state, self.dispatcher, box, self._checkpointer)
        self._serve_operators()
        DynamicConfig(state, box, self._checkpointer)
        self.background_tasks = BackgroundTasks(box, self._coroutines)
        self._reload = Reload(
            state,
            self.served,
            self.dispatcher.calls,
            self.background_tasks,
            self.listeners.read_certificates,
            self._import_anew,
            self._manager,
        )
        self._make_http()
        self._manager.starting("running the applications' setups")
        self.served.run_setups()
        if self.config.credentials is not None:
            from iproto_server.server.configured_users import create_configured_users

            create_configured_users(box, self.config.credentials)
        if self._configures_guest or self.config.is_open_to_guest:
            self.configure_guest()
        await state.batch.drain()
        if self.storage.log.failures:
            raise BoxError(ErrorCode.WAL_IO)
        self._checkpointer.start()
        # Setups may change data even in read-only mode.
        box.set_read_only(self.config.read_only)
        self.limit_memory()
        # Exempt the existing objects, which stay, from garbage collection.
        gc.freeze()
        self.scheduler.start()
        self.background_tasks.start(self.served.current)
        state.admission.reserve_descriptors()
        state.idle.configure()
        # Listening comes last, because an earlier client would find procedures missing.
        try:
            box.listen += await self.listeners.listen_on(self.config.listen, state)
            await self._listen_1_5()
            if self._http is not None:
                await self._http.listen()
        except OSError:
            self._is_refused = True
            await self.stop()
            raise
        self._lag.start()
        self._box_stat.start()
        self._start_graphite()
        self.has_started = True

    async def listen_on(self, addresses: tuple[Address, ...]) -> None:
        """Accept connections on these addresses, without TLS, in place of those of the option `listen`.

        Raises:
            OSError: an address cannot be used; there is none then.
        """
        state = self.state
        self.listeners.stop_listening(state.config.listen)
        state.config = dataclasses.replace(state.config, listen=addresses)
        del self.box.listen[:]
        self.box.listen += await self.listeners.listen_on(addresses, state)

    def _serve_operators(self) -> None:
        """Let clients call the procedures for operators."""
        queues = self._queues = ApplicationQueues(self.box, lambda: self.served.current)
        self._readiness = Readiness(self.state, self.storage.log)
        view = OperatorView(
            self.state,
            self.box,
            self.dispatcher,
            self.storage.log,
            self._checkpointer,
            self._lag,
            queues,
            self._readiness,
        )
        self._backups = BackupReader(self.config.snapshot_directory, self.config.log_directory)
        self.scheduler = Scheduler(self.box, queues)
        schedules = ScheduleCalls(self.box, queues, self.scheduler)
        self.operator = OperatorCalls(self.box, view, queues, self._backups, schedules)
        self.dispatcher.calls.own.update(self.operator.functions)

    def describe_running(self, frame: FrameType) -> dict[str, object]:
        """Return the log's fields about the request that runs, if one does; another thread may ask.

        Parameters:
            frame: the innermost frame of the main thread.
        """
        sessions = self.box.session
        session = sessions.current
        if not self.has_started or session is sessions.background:
            return {}
        fields: dict[str, object] = {
            "user": session.user.name,
            "peer": session.peer,
            "session": session.id,
            "request": session.sync,
        }
        name = self.dispatcher.calls.running_procedure(frame)
        return fields if name is None else {"procedure": name, **fields}

    def describe(self) -> str:
        """Return what the running server does, in one line, for the service manager."""
        config, checkpointer = self.config, self._checkpointer
        parts = [
            f"serving on {', '.join(map(str, self.listeners.addresses))}",
            counted(self.state.admission.connections, "connection"),
            f"generation {self.box.generation}",
        ]
        if config.read_only:
            parts.append("read-only")
        if checkpointer.is_running:
            parts.append("taking a snapshot")
        if checkpointer.taken:
            parts.append(f"{counted(checkpointer.taken, 'snapshot')} taken")
        if checkpointer.failed:
            parts.append(f"{counted(checkpointer.failed, 'snapshot')} failed")
        if self._reload.failure is not None:
            parts.insert(0, self._reload.failure)
        return "; ".join(parts)

    async def _listen_1_5(self) -> None:
        """Listen to clients of Tarantool 1.5. Raises OSError if an address is in use."""
        if not self.config.listen_1_5:
            return
        from iproto_server.server.tarantool15.connection import Connection15
        from iproto_server.server.tarantool15.requests import Requests15

        self.state.requests_15 = Requests15(self.box, self.dispatcher, self.config.max_frame)
        for address in self.config.listen_1_5:
            await self.listeners.listen(address, self.state, Connection15, ", protocol of Tarantool 1.5")

    def _make_http(self) -> None:
        """Make the HTTP server, before clients connect: its libraries take a while to import."""
        config = self.config
        if not config.http_addresses:
            return
        from iproto_server.metrics.prometheus import PrometheusMetrics
        from iproto_server.server.http.application import http_application
        from iproto_server.server.http.dashboard import Dashboard
        from iproto_server.server.http.health import Health
        from iproto_server.server.http.http_server import HttpServer
        from iproto_server.server.http.metrics_page import MetricsPage

        log = self.state.rate_limited_log
        health = Health(self._readiness)
        metrics = PrometheusMetrics(
            self.box,
            self._lag,
            self._server_counters,
            lambda: self.served.metrics.by_application(),
            self._queues.all,
            config.metrics_max_queues,
            self.scheduler.all,
        )
        page = MetricsPage(
            metrics.families, lambda: config.instance_name or self.box.listen[0], self._token, log
        )
        server = self._http = HttpServer(self.listeners, log, self._clock)
        if config.http is not None:
            own = page if config.metrics_listen is None else None
            names = (config.http.host, *config.http_host)
            dashboard = self._dashboard = Dashboard(
                self.state,
                self.dispatcher,
                self.storage.log,
                self._lag,
                self._coroutines,
                self.operator,
                self._queues,
                names,
            )
            server.serve(config.http, http_application(health, own, dashboard), ", HTTP", dashboard.start)
        if config.metrics_listen is not None:
            server.serve(config.metrics_listen, http_application(health, page), ", HTTP for metrics")

    def _server_counters(self) -> Iterator[tuple[str, int | float]]:
        """The server's own counters, without the event loop's latency."""
        yield from self._metrics.counters()
        if self._http is not None:
            yield "server.http.refused", self._http.refused
        if self._reporter is not None:
            yield "server.graphite.dropped", self._reporter.dropped

    def _start_graphite(self) -> None:
        graphite = self.config.graphite
        if graphite is None:
            return
        from iproto_server.metrics.graphite import GraphiteReporter

        self._reporter = GraphiteReporter(
            graphite.address, graphite.protocol, graphite.prefix, graphite.interval, self.metrics
        )
        self._reporter.start()

    async def stop(self) -> None:
        """Stop accepting, finish running work, send the answers, close.

        Waiting calls are answered without a value. Clients that watch `box.shutdown`, async procedures,
        background tasks and slow readers share `stop_timeout` seconds.
        """
        state = self.state
        shutdown = GracefulShutdown(state, self._deadline)
        state.is_stopping = state.box.is_stopping = True
        self._deadline.begin(self.config.stop_timeout)
        self.listeners.close()
        state.idle.stop()
        self.scheduler.stop()
        await self._reload.finish(self._deadline)
        await self._checkpointer.stop()  # before the waits for a snapshot end
        self._backups.close()
        await shutdown.let_clients_leave()
        await shutdown.end_waits()
        await self._deadline.wait(self._coroutines.tasks)
        self.background_tasks.cancel()
        self._coroutines.cancel(self._coroutines.tasks)
        await self._deadline.wait([*self._coroutines.tasks, *self.background_tasks.tasks], LAST_GRACE)
        await state.batch.drain()
        await shutdown.close_connections(LAST_GRACE)
        if self._http is not None:
            await self._http.stop(self._deadline, LAST_GRACE)
        if self._dashboard is not None:
            self._dashboard.stop()
        state.hangups.stop()
        state.deadlines.stop()
        state.unsent.stop()
        self.served.run_stops()
        state.rate_limited_log.close()
        # Changes by timers could not be logged from here on.
        self._clock.stop()
        await state.batch.drain()
        if not (self._is_refused and self.storage.is_new):  # else see `undo_start`
            self.storage.close()
            self._disk.shutdown()
        spare.release()
        self._lag.stop()
        self._box_stat.stop()
        if self._reporter is not None:
            await self._reporter.stop(LAST_GRACE)
        budget.end()
        self._deadline.cancel()

    def stop_waiting(self) -> None:
        """Let the current or next stop wait for nothing."""
        self._deadline.expire()

    # -- signals --

    def reload_soon(self) -> None:
        """Reload the applications; the result is logged."""
        self._reload.on_signal()

    def snapshot_soon(self) -> None:
        """Take a snapshot; the result is logged."""
        self._checkpointer.on_signal()

    def metrics(self) -> Iterator[tuple[str, int | float]]:
        """The metrics of the applications and of the server, for Graphite."""
        yield from self.served.metrics
        yield from self.box.metrics.counters()
        yield from self._server_counters()
        yield from self._metrics.latency()
