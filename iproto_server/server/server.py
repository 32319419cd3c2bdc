"""The server: from configuration and applications to listening sockets, and back down again."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from iproto_server.app import Application, Procedures
from iproto_server.box import Box
from iproto_server.box.access.access_control import GUEST
from iproto_server.box.access.session import Session
from iproto_server.box.api import events
from iproto_server.box.txn.trigger import Trigger, TriggerList
from iproto_server.config.address import Address
from iproto_server.config.config import Config, ConfigError
from iproto_server.descriptors import RESERVED, raise_descriptor_limit, spare
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.importer import ImportAnew
from iproto_server.metrics.graphite import GraphiteReporter
from iproto_server.metrics.loop_lag import LoopLag
from iproto_server.protocol.constants import PROTOCOL_VERSION, Feature
from iproto_server.server.async_procedures import CoroutineRunner
from iproto_server.server.background_tasks import Backgrounds
from iproto_server.server.checkpointer import Checkpoints
from iproto_server.server.connection.connection import Connection
from iproto_server.server.connection.fair_scheduler import Turns
from iproto_server.server.connection.group_commit import Batch
from iproto_server.server.connection.hangups import Hangups
from iproto_server.server.connection.listener import Door, Listener, listen
from iproto_server.server.deadline import Deadline
from iproto_server.server.dynamic_config import RuntimeOptions
from iproto_server.server.limits.admission import Admission, Ticket
from iproto_server.server.limits.connection_deadlines import Deadlines
from iproto_server.server.limits.idle import IdleConnections
from iproto_server.server.limits.incoming_limits import IncomingLimits
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.limits.unsent_limit import UnsentLimit
from iproto_server.server.loop_clock import LoopClock
from iproto_server.server.reload import Reload
from iproto_server.server.requests.answer import procedure_error
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.server.requests.watch import EventDelivery
from iproto_server.server.stats.box_stat import Figures
from iproto_server.server.stats.counters import ApplicationMetrics, requests_by_name
from iproto_server.server.tarantool15.connection import Connection15
from iproto_server.server.tarantool15.requests import Requests15
from iproto_server.storage.directory import make_directory
from iproto_server.storage.recovery_progress import progress_on
from iproto_server.storage.storage import Storage, StorageOptions
from iproto_server.storage.wal import WalMode

logger = logging.getLogger("iproto_server.server")

VERSION = "2.11.0"
"""The Tarantool line whose protocol is spoken, as files and `box.info` have it; clients are told another one
where the configuration says so."""
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
"""Seconds that a stop gives, behind its deadline, to cancelled tasks and to answers that are on their way."""


class Server:
    """Serves applications to clients.

    Parameters:
        config: the configuration.
        applications: what to serve.
        storage: opens the files of the database.
        import_anew: imports the applications for a reload; None: they cannot be reloaded.

    Attributes:
        applications: what is served, and
        procedures: what clients can call of it.
        backgrounds: its background tasks.
        batch: what writes the log and sends answers.
        deadlines: times within which connections must have done something.
        hangups: sees the ends of connections that are held.
        incoming: limits of what clients may send before it is a request.
        hung_up_while_held: how many connections ended while they were held.
        unsent: a limit of what all clients together leave unread.
        rate_limited_log: logs what clients can cause as often as they like.
        has_started: whether it has accepted connections.

    Raises:
        ApplicationConflict: two applications define one procedure.
        ConfigError: the files of a TLS address cannot be used.
    """

    def __init__(
        self,
        config: Config,
        applications: Sequence[Application],
        storage: Callable[..., Storage] = Storage,
        import_anew: ImportAnew | None = None,
    ) -> None:
        self.config = config
        self._import_anew = import_anew
        self._contexts = tls_contexts(config)
        self._open_storage = storage
        self.applications = list(applications)
        self.procedures = Procedures(applications)
        self.connections: set[Connection] = set()
        self.held: set[Connection] = set()
        self._is_letting_go_on = False
        self.in_flight = 0
        self.bytes_received = 0
        self.bytes_sent = 0
        self.hung_up_while_held = 0
        self._listeners: defaultdict[Address, list[Listener]] = defaultdict(list)
        self._reporter: GraphiteReporter | None = None
        self._lag = LoopLag()
        self.is_stopping = False
        self._deadline = Deadline()
        self.has_started = False
        self._is_refused = False
        self._made: list[Path] = []
        self._one_gone = asyncio.Event()
        self._all_gone = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether as many requests are in flight as may be."""
        return self.in_flight >= self.config.net_msg_max

    # -- starting and stopping --

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Bring back the database. It takes its time, and whoever ends the process meanwhile loses nothing.

        Parameters:
            loop: the event loop that the server will run in.

        Raises:
            StorageError: the files cannot be used as they are, or another process uses them.
            OSError: they cannot be read or written.
        """
        config = self.config
        for directory in (config.work_dir, config.log_directory, config.snapshot_directory):
            self._made += make_directory(directory)
        version = f"{VERSION}-0-iproto"
        self._clock = LoopClock(loop)
        self.rate_limited_log = RateLimitedLog(logger, self._clock)
        self.box = Box(None, self._clock, version, config.instance_uuid)
        options = StorageOptions(
            log_directory=config.log_directory,
            snapshot_directory=config.snapshot_directory,
            wal_mode=WalMode(config.wal_mode),
            wal_max_size=config.wal_max_size,
            force_recovery=config.force_recovery,
            instance_uuid=config.instance_uuid,
            server_version=version,
        )
        self.box.access.auth_type = config.auth_type
        self._disk = ThreadPoolExecutor(1, "disk")
        self.storage = self._open_storage(self.box, options, self._disk.submit, progress_on())
        self.batch = Batch(self.box.transactions, self.storage.log, self._disk)
        self.turns = Turns(self.batch.flush)
        spare.hold()
        self.hangups = Hangups(loop)
        self.admission = Admission(lambda: self.config, self.rate_limited_log)
        self.idle = IdleConnections(self)
        self.deadlines = Deadlines(self._clock)
        self.incoming = IncomingLimits(
            lambda: self.config,
            self.box.access,
            self.deadlines,
            self.rate_limited_log,
            self._clock,
            lambda: self.admission.limit,
        )
        self.box.access.guest_changed = self._guest_changed
        self.unsent = UnsentLimit(lambda: self.config, self.connections, self._clock, self.rate_limited_log)
        self._application_metrics = ApplicationMetrics(self.box, self.applications)
        self._checkpoints = Checkpoints(
            self.box, self.storage.log, self.batch, config, self.storage.recovered.checkpoint
        )

    async def start(self) -> None:
        """Set the applications up, then listen.

        Raises:
            OSError: an address is in use.
            ConfigError: the server can be reached from other machines, and nobody configured access.
            BoxError: an application's setup failed, or what it did cannot be logged.
        """
        self._coroutines = CoroutineRunner(self.box, self.batch.written)
        asyncio.get_running_loop().set_task_factory(self._coroutines.task_factory)
        self.box.run_coroutine = self._coroutines.start
        EventDelivery(self.box.events, self.box.transactions, self.batch)
        self.box.announce()
        self.dispatcher = Dispatcher(
            self.box,
            self.procedures,
            FEATURES,
            PROTOCOL_VERSION,
            self._coroutines.start,
            self.rate_limited_log,
        )
        self.requests_15 = Requests15(self.box, self.dispatcher, self.config.max_frame)
        self._figures = Figures(self, self.dispatcher, self.box, self._checkpoints)
        RuntimeOptions(self, self.box, self._checkpoints)
        self.backgrounds = Backgrounds(self.box, self._coroutines)
        self._reload = Reload(self, self._import_anew)
        background = self.box.session.background
        for application in self.applications:
            for setup in application.setups:
                try:
                    self.box.run(background, setup, self.box)
                except BoxError:
                    raise
                except BaseException as error:
                    raise procedure_error(f"the setup of {application.name}", error) from error
        self._decide_about_guest()
        await self.batch.drain()
        if self.storage.log.failures:
            raise BoxError(ErrorCode.WAL_IO)
        self._checkpoints.start()
        # What setups do at a start is no client's change.
        self.box.set_read_only(self.config.read_only)
        # What is here now stays: the garbage collector need not look through it again and again.
        gc.freeze()
        self.backgrounds.start(self.applications)
        self.have_descriptors()
        self.idle.configure()
        # Clients come last: one that got in earlier would find procedures missing.
        try:
            for address in self.config.listen:
                self.box.listen.append(await self._listen(address, Connection, ""))
            for address in self.config.listen_1_5:
                await self._listen(address, Connection15, ", protocol of Tarantool 1.5")
        except OSError:
            self._is_refused = True
            await self.stop()
            raise
        self._lag.start()
        self._figures.start()
        graphite = self.config.graphite
        if graphite is not None:
            self._reporter = GraphiteReporter(
                graphite.address, graphite.protocol, graphite.prefix, graphite.interval, self.metrics
            )
            self._reporter.start()
        self.has_started = True

    async def _listen(self, address: Address, kind: type[Connection], what: str) -> str:
        """Accept connections on an address, and answer it with its real port."""
        context = self._contexts.get(address)

        def connect(ticket: Ticket) -> Connection:
            return kind(self, ticket)

        def refuse(error: BoxError) -> bytes:
            return kind.refusal(self, error)

        door = Door(connect, refuse, self.admission, self.rate_limited_log)
        listener = await listen(address, door, self.config.work_dir, context)
        self._listeners[address].append(listener)
        logger.info("listening on %s%s%s", listener.address, ", TLS" if context else "", what)
        return str(listener.address)

    async def stop(self) -> None:
        """Stop accepting, finish what is running, send what is answered, close.

        Calls that wait are answered without a value. Clients that were told of the stop, async procedures,
        background tasks and clients that are slow to read have `stop_timeout` seconds, all together.
        """
        self.is_stopping = True
        self._deadline.begin(self.config.stop_timeout)
        for listener in self._all_listeners:
            listener.close()
        self.idle.stop()
        await self._reload.finish(self._deadline)
        await self._checkpoints.stop()  # before those who wait for one are given up
        await self._let_clients_leave()
        for connection in list(self.connections):
            connection.stop_reading()
        for connection in list(self.connections):
            connection.session.give_up()
        await asyncio.sleep(0)  # the requests behind those calls in streams have their turns
        await self._deadline.wait(self._coroutines.tasks)
        self.backgrounds.cancel()
        self._coroutines.cancel(self._coroutines.tasks)
        await self._deadline.wait([*self._coroutines.tasks, *self.backgrounds.tasks], LAST_GRACE)
        await self.batch.drain()
        self._all_gone.clear()
        self.incoming.paced.stop()
        for connection in list(self.connections):
            connection.close_after_output()
        await self._wait_for_disconnects()
        self.hangups.stop()
        self.deadlines.stop()
        self.unsent.stop()
        for application in self.applications:
            for function in application.stops:
                try:
                    self.box.run(self.box.session.background, function, self.box)
                except BaseException:
                    # Whatever it was, everything else still has to be brought to its end.
                    logger.exception("an on_stop function of %s failed", application.name)
        self.rate_limited_log.close()
        # What a timer would change from here on could not be logged.
        self._clock.stop()
        await self.batch.drain()
        if not (self._is_refused and self.storage.is_new):  # else see `undo_start`
            self.storage.close()
            self._disk.shutdown()
        spare.release()
        self._lag.stop()
        self._figures.stop()
        if self._reporter is not None:
            await self._reporter.stop(LAST_GRACE)
        self._deadline.cancel()

    def undo_start(self) -> None:
        """Remove what a start has made that was refused, when the loop has ended.

        A new database, and the directories that were not there. An older database stays as it is.
        """
        storage: Storage | None = getattr(self, "storage", None)
        if storage is not None and storage.is_new:
            self._disk.submit(lambda: None).result()  # behind a write that is under way
            storage.discard()
            self._disk.shutdown()
        for directory in reversed(self._made):
            # Not where an application has put something there.
            with suppress(OSError):
                directory.rmdir()

    def hurry(self) -> None:
        """Let the stop, or the one that begins next, wait for nobody any more."""
        self._deadline.expire()

    async def _let_clients_leave(self) -> None:
        """Tell the clients that want to know that the server stops, and let them finish and disconnect.

        Source: Tarantool reference, "Graceful shutdown protocol".
        """
        self.box.events.announce(events.SHUTDOWN, True)
        for connection in self._watchers_of_the_stop():
            connection.session.give_up()
        left = asyncio.ensure_future(self._watchers_have_left())
        await self._deadline.wait((left,))
        left.cancel()

    async def _watchers_have_left(self) -> None:
        while self._watchers_of_the_stop():
            self._one_gone.clear()
            await self._one_gone.wait()

    def _watchers_of_the_stop(self) -> list[Connection]:
        return [
            connection
            for connection in self.connections
            if connection.subscriptions is not None and events.SHUTDOWN in connection.subscriptions
        ]

    async def _wait_for_disconnects(self) -> None:
        if self.connections:
            all_gone = asyncio.ensure_future(self._all_gone.wait())
            await self._deadline.wait((all_gone,), LAST_GRACE)
            all_gone.cancel()
        for connection in list(self.connections):
            connection.abort()
        if self.connections:
            await self._all_gone.wait()

    def _decide_about_guest(self) -> None:
        """Guest may do everything while only this machine can reach the server, or as `guest` says."""
        access = self.box.access
        if self.config.is_open_to_guest:
            access.open_to_guest()
        elif not access.has_passwords:
            if not self.config.all_local:
                raise ConfigError(
                    "other machines can reach the server, but no user has a password: create one in the"
                    " application's setup, listen on loopback or a unix socket only, or give --allow-guest"
                )
            if access.is_stranger(access.by_id(GUEST)):
                logger.warning("nobody can log in: guest has no rights, and no user has a password")

    # -- reloading --

    def reload_soon(self) -> None:
        """Import the applications anew and let them take over; the log says what came of it."""
        self._reload.signalled()

    def snapshot_soon(self) -> None:
        """Take a snapshot; the log says what came of it."""
        self._checkpoints.signalled()

    def serve(self, applications: Sequence[Application], procedures: Procedures) -> None:
        """Serve other applications from now on.

        Parameters:
            applications: what is asked for counters, and told of the stop.
            procedures: what clients can call.
        """
        self.applications = list(applications)
        self.procedures = procedures
        self.dispatcher.calls.serve(procedures)
        self._application_metrics = ApplicationMetrics(self.box, self.applications)

    def read_certificates(self) -> None:
        """Encrypt the connections that come from now on with what is in the files of TLS addresses now.

        Where they cannot be used, those that were read before stay in force; the log says so.
        """
        if not self._contexts:
            return
        try:
            self._contexts = tls_contexts(self.config)
        except ConfigError as error:
            logger.error("the certificates were not read again, those before stay in force: %s", error)
            return
        for address, listeners in self._listeners.items():
            for listener in listeners:
                listener.context = self._contexts.get(address)
        logger.info("read the certificates again")

    # -- connections --

    @property
    def _all_listeners(self) -> list[Listener]:
        return [listener for listeners in self._listeners.values() for listener in listeners]

    def have_descriptors(self) -> None:
        """Have descriptors for as many connections as there may be, or say that there are not so many."""
        most = self.config.max_connections
        if most is not None:
            limit = raise_descriptor_limit(most + RESERVED)
            if limit < most + RESERVED:
                logger.warning(
                    "max_connections of %d needs %d descriptors, but the system allows %d",
                    most,
                    most + RESERVED,
                    limit,
                )

    def run_triggers(self, session: Session, triggers: TriggerList) -> None:
        """Run triggers as a session, each as a transaction. Raises BoxError when one raises."""
        for trigger in triggers.functions:
            self._run_trigger(session, trigger)

    def _run_trigger(self, session: Session, trigger: Trigger) -> None:
        try:
            self.box.run(session, trigger)
        except BoxError:
            raise
        except BaseException as error:
            raise procedure_error("a session trigger", error) from error

    def disconnected(self, connection: Connection) -> None:
        """A connection is gone: tell the application and forget the session."""
        self.connections.discard(connection)
        self.held.discard(connection)
        self.turns.discard(connection)
        session = connection.session
        session.is_closed = True
        # First of all, so that nothing that becomes ready now is given to somebody who has gone.
        session.end()
        for trigger in self.box.session.disconnect_triggers.functions:
            # One that fails must not keep the others from giving back what the client had.
            try:
                self._run_trigger(session, trigger)
            except BoxError as error:
                logger.error("on_disconnect failed: %s", error.message)
        self.box.session.close(session)
        self._one_gone.set()
        if not self.connections:
            self._all_gone.set()

    def _guest_changed(self) -> None:
        """Guest's connections are strangers' now, or are not any more."""
        for connection in self.connections:
            connection.user_changed()

    def limits_changed(self) -> None:
        """Connections have another limit of what a client may leave unread."""
        for connection in self.connections:
            connection.limits_changed()
        self.let_held_go_on()

    def let_held_go_on(self) -> None:
        """Requests in flight have ended: those that were held for them may go on."""
        if not self._is_letting_go_on:
            self._is_letting_go_on = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_letting_go_on = False
        for connection in list(self.held):
            connection.go_on()

    # -- counters --

    def metrics(self) -> Iterator[tuple[str, int | float]]:
        """The applications' counters and the server's own, for Graphite."""
        yield from self._application_metrics
        yield from requests_by_name(self.dispatcher.requests)
        yield "server.errors", self.dispatcher.errors
        yield "server.connections.current", len(self.connections)
        yield from self.admission.counters()
        yield "server.connections.closed_idle", self.idle.closed
        yield "server.connections.hung_up_while_held", self.hung_up_while_held
        yield from self.incoming.counters()
        yield "server.logins.failed", self.dispatcher.authentication.failures
        yield "server.logins.delayed", self.dispatcher.authentication.delayed
        yield from self.unsent.counters()
        yield "server.requests_in_flight", self.in_flight
        yield "server.bytes.received", self.bytes_received
        yield "server.bytes.sent", self.bytes_sent
        log = self.storage.log
        yield "server.wal.rows", log.position()
        yield "server.wal.bytes", log.size
        yield "server.wal.failures", log.failures
        yield from self._checkpoints.counters()
        last, longest = self._lag.take()
        yield "server.loop_lag.last", last
        yield "server.loop_lag.max", longest
        if self._reporter is not None:
            yield "server.graphite.dropped", self._reporter.dropped


def tls_contexts(config: Config) -> dict[Address, ssl.SSLContext]:
    """How connections to the addresses with TLS are encrypted. Raises ConfigError."""
    contexts: dict[Address, ssl.SSLContext] = {}
    for address in (*config.listen, *config.listen_1_5):
        if address.tls is not None:
            try:
                contexts[address] = address.tls.context(config.work_dir)
                for warning in address.tls.warnings(config.work_dir):
                    logger.warning("listen %s: %s", address, warning)
            except ValueError as error:
                raise ConfigError(f"listen {address}: {error}") from error
    return contexts
