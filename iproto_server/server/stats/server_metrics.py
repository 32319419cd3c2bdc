"""The metrics of a server, for Graphite."""

from __future__ import annotations

from iproto_server.box.api.instance.slab import Memory
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.metrics.loop_lag import LoopLag
from iproto_server.server.checkpoints.checkpointer import Checkpointer
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.server.stats.counters import Counters, requests_by_name
from iproto_server.storage.wal import WriteAheadLog


class ServerMetrics:
    """The server's own metrics, as pairs of a name and a number.

    Parameters:
        state: counts connections and bytes.
        dispatcher: counts requests.
        log: counts rows.
        checkpointer: counts snapshots.
        lag: measures the event loop's latency.
        memory: measures rows and indexes.
    """

    def __init__(
        self,
        state: ServerState,
        dispatcher: Dispatcher,
        log: WriteAheadLog,
        checkpointer: Checkpointer,
        lag: LoopLag,
        memory: Memory,
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._log = log
        self._checkpointer = checkpointer
        self._lag = lag
        self._memory = memory

    def latency(self) -> Counters:
        """Iterate over the event loop's latency, since the last call."""
        last, longest = self._lag.take()
        yield "server.loop_lag.last", last
        yield "server.loop_lag.max", longest

    def counters(self) -> Counters:
        """Iterate over all others."""
        state, dispatcher, log = self._state, self._dispatcher, self._log
        yield from requests_by_name(dispatcher.requests)
        yield "server.errors", dispatcher.errors
        yield "server.connections.current", len(state.connections)
        yield from state.admission.counters()
        yield "server.connections.closed_idle", state.idle.closed
        yield "server.connections.hung_up_while_held", state.hung_up_while_held
        yield from state.incoming.counters()
        yield "server.refused.memtx_memory", budget.refused
        yield "server.memtx.items_used", self._memory.data()
        yield "server.memtx.arena_size", self._memory.arena()
        yield "server.logins.failed", dispatcher.authentication.failures
        yield "server.logins.delayed", dispatcher.authentication.delayed
        yield from state.unsent.counters()
        yield "server.requests_in_flight", state.in_flight
        yield "server.bytes.received", state.traffic.received
        yield "server.bytes.sent", state.traffic.sent
        yield "server.wal.rows", log.position()
        yield "server.wal.bytes", log.size
        yield "server.wal.failures", log.failures
        yield from self._checkpointer.counters()
