"""Rates of a server, from its counters at two points in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iproto_server.tools.operators.operator_client import OperatorClient

Record = dict[str, Any]


class Looks:
    """Asks a server for its state and its queues.

    Parameters:
        client: the connection.

    Attributes:
        address: the server's address.
        last: the last look; empty before the first one.
    """

    def __init__(self, client: OperatorClient) -> None:
        self._client = client
        self.address = client.address
        self.last: Record = {}

    def look(self) -> Record:
        """Return the state with `queues`; each queue has `rates`, its calls per second since the last look.

        Raises:
            CallError: the server refuses it.
            ClientError: the connection has broken.
        """
        status = self._client.status()
        before = {queue["name"]: queue["calls"] for queue in self.last.get("queues", ())}
        seconds = status["time"] - self.last.get("time", status["time"])
        queues = self._client.queues()
        for queue in queues:
            queue["rates"] = rates(before.get(queue["name"]), queue["calls"], seconds)
        self.last = {**status, "queues": queues}
        return self.last


def rates(before: Mapping[str, int] | None, now: Mapping[str, int], seconds: float) -> dict[str, float]:
    """Return calls per second; none for a queue that was not there before, or without time between."""
    if before is None or seconds <= 0:
        return {}
    return {name: max(number - before.get(name, 0), 0) / seconds for name, number in now.items()}
