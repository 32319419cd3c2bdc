"""Closes the connections of a server that stops.

Source: Tarantool reference, "Graceful shutdown protocol".
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from iproto_server.box.api import events
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.deadline import Deadline


class GracefulShutdown:
    """Lets clients finish within the deadline of a stop, then closes their connections.

    Parameters:
        state: the server's state, which has the connections.
        deadline: the deadline that all waits of the stop share.
    """

    def __init__(self, state: ServerState, deadline: Deadline) -> None:
        self._state = state
        self._deadline = deadline

    async def let_clients_leave(self) -> None:
        """Announce the stop to the clients that watch `box.shutdown`; wait until they have disconnected."""
        self._state.box.events.announce(events.SHUTDOWN, True)
        give_up_waits(self._watchers())
        left = asyncio.ensure_future(self._watchers_have_left())
        await self._deadline.wait((left,))
        left.cancel()

    async def end_waits(self) -> None:
        """Take no more requests, answer waiting calls without a value, and handle what has been received."""
        connections = list(self._state.connections)
        for connection in connections:
            connection.stop_reading()
        give_up_waits(connections)
        await asyncio.sleep(0)  # requests that follow such a call in a stream run now
        handled = asyncio.ensure_future(self._backlogs_are_handled())
        await self._deadline.wait((handled,))
        handled.cancel()

    async def _backlogs_are_handled(self) -> None:
        turns = self._state.turns
        while turns.is_busy:  # noqa: ASYNC110  # it is given turns in each iteration
            await asyncio.sleep(0)

    async def close_connections(self, grace: float) -> None:
        """Close the connections when their answers are sent; abort the remaining ones at the deadline.

        Parameters:
            grace: seconds after the deadline for answers that are being sent.
        """
        state = self._state
        state.all_closed.clear()
        state.incoming.paced.stop()
        for connection in list(state.connections):
            connection.close_after_output()
        if state.connections:
            all_closed = asyncio.ensure_future(state.all_closed.wait())
            await self._deadline.wait((all_closed,), grace)
            all_closed.cancel()
        for connection in list(state.connections):
            connection.abort()
        if state.connections:
            await state.all_closed.wait()

    async def _watchers_have_left(self) -> None:
        while self._watchers():
            self._state.one_closed.clear()
            await self._state.one_closed.wait()

    def _watchers(self) -> list[ClientConnection]:
        """The connections that watch `box.shutdown`."""
        return [
            connection
            for connection in self._state.connections
            if connection.subscriptions is not None and events.SHUTDOWN in connection.subscriptions
        ]


def give_up_waits(connections: Iterable[ClientConnection]) -> None:
    """Answer the waiting calls of connections without a value."""
    for connection in connections:
        connection.session.cancel_waits()
