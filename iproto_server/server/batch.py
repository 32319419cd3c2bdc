"""Group commit: one write to the log and one to each client for all that happened in a loop iteration."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from iproto_server.box.transaction import Journal

if TYPE_CHECKING:
    from iproto_server.server.connection import Connection


class Batch:
    """The connections with responses to send, held until the rows behind them are in the log.

    Parameters:
        journal: the log.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._connections: list[Connection] = []

    def add(self, connection: Connection) -> None:
        """Send the connection's responses at the end of this iteration."""
        if not self._connections:
            # Every socket that is readable is served before this runs, so they share one write.
            asyncio.get_running_loop().call_soon(self.flush)
        self._connections.append(connection)

    def flush(self) -> None:
        """Write the log, then send."""
        connections, self._connections = self._connections, []
        self._journal.flush()
        for connection in connections:
            connection.send_output()
