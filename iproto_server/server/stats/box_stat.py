"""The server's part of `box.stat`, `box.info` and `box.slab`."""

from __future__ import annotations

from typing import Final

from iproto_server.box import Box
from iproto_server.protocol.constants import RequestType
from iproto_server.server.checkpoints.checkpointer import Checkpointer
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.server.stats.process_memory import memory_limit, memory_used, memory_virtual
from iproto_server.server.stats.rates import Rates

_SHOWN: Final = (
    RequestType.SELECT,
    RequestType.INSERT,
    RequestType.REPLACE,
    RequestType.UPDATE,
    RequestType.DELETE,
    RequestType.UPSERT,
    RequestType.CALL,
    RequestType.AUTH,
    RequestType.EVAL,
    RequestType.EXECUTE,
    RequestType.PREPARE,
    RequestType.BEGIN,
    RequestType.COMMIT,
    RequestType.ROLLBACK,
)
"""The request types in `box.stat()` of Tarantool 2.11."""


class BoxStatExporter:
    """Provides the box with the server's statistics.

    Parameters:
        server: the server's state.
        dispatcher: counts the requests.
        box: the box that shows them.
        checkpointer: takes snapshots.
    """

    def __init__(
        self, server: ServerState, dispatcher: Dispatcher, box: Box, checkpointer: Checkpointer
    ) -> None:
        self._server = server
        self._dispatcher = dispatcher
        self._requests = Rates(self._request_totals)
        self._network = Rates(self._network_totals)
        box.stat.source = self._requests.now
        box.stat.net.source = self._network_now
        box.stat.reset = self._reset
        box.memory.used = memory_used
        box.memory.virtual = memory_virtual
        box.memory.limit = memory_limit
        box.memory.network = self._unsent
        box.is_taking_snapshot = lambda: checkpointer.is_running
        box.kept_snapshots = checkpointer.kept

    def start(self) -> None:
        """Start measuring rates."""
        self._requests.start()
        self._network.start()

    def stop(self) -> None:
        """Stop measuring."""
        self._requests.stop()
        self._network.stop()

    def _reset(self) -> None:
        self._requests.reset()
        self._network.reset()

    def _request_totals(self) -> dict[str, int]:
        requests = self._dispatcher.requests
        totals = {kind.name: requests[kind] for kind in _SHOWN}
        totals["CALL"] += requests[RequestType.CALL_16]
        totals["ERROR"] = self._dispatcher.errors
        return totals

    def _network_totals(self) -> dict[str, int]:
        requests = sum(self._dispatcher.requests.values())
        return {
            "SENT": self._server.traffic.sent,
            "RECEIVED": self._server.traffic.received,
            "CONNECTIONS": self._server.admission.accepted,
            "REQUESTS": requests,
            "REQUESTS_IN_PROGRESS": requests,
            "REQUESTS_IN_STREAM_QUEUE": self._dispatcher.postponed,
        }

    def _network_now(self) -> dict[str, dict[str, int]]:
        rates = self._network.now()
        rates["CONNECTIONS"]["current"] = len(self._server.connections)
        rates["REQUESTS"]["current"] = rates["REQUESTS_IN_PROGRESS"]["current"] = self._server.in_flight
        rates["REQUESTS_IN_STREAM_QUEUE"]["current"] = sum(
            connection.streams.waiting
            for connection in self._server.connections
            if connection.streams is not None
        )
        return rates

    def _unsent(self) -> int:
        return sum(connection.unsent for connection in self._server.connections)
