"""The state that all connections of a server share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from iproto_server.box import Box
from iproto_server.box.access.session import Session
from iproto_server.box.clock import Clock
from iproto_server.box.txn.trigger import Trigger, TriggerList
from iproto_server.config.config import Config
from iproto_server.errors import BoxError
from iproto_server.native._native import LuaFunction, SharedState, Traffic
from iproto_server.server.application_errors import procedure_error
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.connection.fair_scheduler import FairScheduler
from iproto_server.server.connection.group_commit import Batch
from iproto_server.server.connection.hangups import Hangups
from iproto_server.server.limits.admission import Admission
from iproto_server.server.limits.connection_deadlines import ConnectionDeadlines
from iproto_server.server.limits.idle import IdleConnections
from iproto_server.server.limits.incoming_limits import IncomingLimits
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.limits.unsent_limit import UnsentLimit

logger = logging.getLogger("iproto_server.server")

PARKED_MAX: Final = 50_000
"""Number of parked requests above which connections that have some get no more; each needs about 2 KB."""


class RequestHandler(Protocol):
    """Handles the requests of a protocol; the dispatcher of each protocol implements it."""

    @property
    def handle(self) -> Callable[[ClientConnection, bytes], None]:
        """Handle one frame of a connection, whose `reply` takes the answer."""


class ServerState(SharedState):
    """The connections, the parts of the server that they share, and their counters.

    Parameters:
        config: the configuration at the start.
        box: the database.
        clock: the time.
        loop: the event loop that the server will run in.
        batch: the group commit, which writes the log and sends answers.

    Attributes:
        dispatcher: handles the requests of IPROTO; set before the first connection, as
        requests_15: which handles those of Tarantool 1.5's protocol.
        connections: the open connections.
        held: connections that wait for requests in flight to end.
        in_flight: number of unanswered requests.
        parked: number of those that wait for other requests: calls in a `WaitQueue`, and requests behind a
            call of their stream.
        turns: schedules the connections that have more requests than can be handled at once.
        hangups: detects hangups of held connections.
        admission: limits the number of connections.
        idle: closes idle connections.
        deadlines: the deadlines of connections.
        incoming: limits unfinished requests.
        unsent: limits the unsent bytes of all connections.
        rate_limited_log: logs events that clients can cause in any number.
        traffic: counts the bytes of all connections.
        hung_up_while_held: number of connections that ended while they were held.
        is_stopping: whether the server is stopping.
        one_closed: set whenever a connection has ended.
        all_closed: set when the last one has ended.
    """

    dispatcher: RequestHandler
    requests_15: RequestHandler

    def __init__(
        self,
        config: Config,
        box: Box,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        batch: Batch,
    ) -> None:
        self.config = config
        self.box = box
        self.transactions = box.transactions
        self.batch = batch
        self.connections: set[ClientConnection] = set()
        self.held: set[ClientConnection] = set()
        self.traffic = Traffic()
        self.hung_up_while_held = 0
        self.is_stopping = False
        self.one_closed = asyncio.Event()
        self.all_closed = asyncio.Event()
        self._is_letting_go_on = False
        self.rate_limited_log = RateLimitedLog(logger, clock)
        self.turns = FairScheduler(batch.flush)
        self.hangups = Hangups(loop)
        self.admission = Admission(lambda: self.config, self.rate_limited_log)
        self.idle = IdleConnections(lambda: self.config, self.connections, self.rate_limited_log)
        self.deadlines = ConnectionDeadlines(clock)
        self.incoming = IncomingLimits(
            lambda: self.config,
            box.access,
            self.deadlines,
            self.rate_limited_log,
            clock,
            lambda: self.admission.limit,
        )
        self.unsent = UnsentLimit(lambda: self.config, self.connections, clock, self.rate_limited_log)
        box.access.guest_changed = self._guest_changed

    @property
    def config(self) -> Config:
        """The current configuration."""
        return self._config

    @config.setter
    def config(self, config: Config) -> None:
        # `net_msg_max` limits the procedures that run. A parked call ends because of other requests, maybe of
        # the same connection, so those must not wait for it: the limit of parked calls protects memory alone.
        self._config = config
        self.in_flight_max = config.net_msg_max
        self.parked_max = max(config.net_msg_max, PARKED_MAX)
        self.write_high_water = config.write_high_water

    # -- sessions --

    def run_triggers(self, session: Session, triggers: TriggerList) -> None:
        """Run triggers as a session, each of Python as a transaction. Raises BoxError if one raises."""
        for trigger in triggers.functions:
            self._run_trigger(session, trigger)

    def _run_trigger(self, session: Session, trigger: Trigger) -> None:
        try:
            if isinstance(trigger, LuaFunction):
                self.box.run_as(session, trigger)
            else:
                self.box.run(session, trigger)
        except BoxError:
            raise
        except BaseException as error:
            raise procedure_error("a session trigger", error, session) from error

    def disconnected(self, connection: ClientConnection) -> None:
        """Run the application's disconnect triggers, and end the session."""
        self.connections.discard(connection)
        self.held.discard(connection)
        self.turns.discard(connection)
        session = connection.session
        session.is_closed = True
        # First, so that work that becomes ready is not given to this session.
        session.end()
        for trigger in self.box.session.disconnect_triggers.functions:
            # A failing trigger must not stop the others from releasing the client's resources.
            try:
                self._run_trigger(session, trigger)
            except BoxError as error:
                self.rate_limited_log.event(
                    logging.ERROR,
                    "an on_disconnect trigger failed",
                    key=error.message,
                    reason=error.message,
                    peer=session.peer,
                    session=session.id,
                )
        self.box.session.close(session)
        self.one_closed.set()
        if not self.connections:
            self.all_closed.set()

    # -- limits --

    def _guest_changed(self) -> None:
        """Apply the limits again, after guest became unauthenticated or the reverse."""
        for connection in self.connections:
            connection.user_changed()

    def limits_changed(self) -> None:
        """Apply a changed limit of unsent bytes."""
        for connection in self.connections:
            connection.limits_changed()
        self.let_held_go_on()

    def let_held_go_on(self) -> None:
        """Resume the connections that were held for requests in flight, in the next loop iteration."""
        if not self._is_letting_go_on:
            self._is_letting_go_on = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_letting_go_on = False
        for connection in list(self.held):
            connection.go_on()
