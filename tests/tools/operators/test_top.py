"""The live view of a server, driven without a terminal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from iproto_server.tools.operators.operator_client import CallError
from iproto_server.tools.operators.rates import Looks, rates
from iproto_server.tools.operators.top import Top


class Server:
    """Answers as a server does.

    Parameters:
        names: the names of its queues.
    """

    address = "127.0.0.1:3301"

    def __init__(self, *names: str) -> None:
        self.names = names
        self.time = 1_600_000_000.0
        self.puts = 0
        self.failure: str | None = None
        self.read_only = False
        self.latency = 0.001

    def status(self) -> dict[str, Any]:
        if self.failure is not None:
            raise CallError(self.failure)
        self.time += 2
        return {
            "time": self.time,
            "version": "0.1.0",
            "uptime": 65,
            "lsn": 7,
            "read_only": self.read_only,
            "requests": {"per_second": 120, "in_flight": 3},
            "connections": {"current": 4},
            "network": {"received": {"per_second": 2048}, "sent": {"per_second": 10}},
            "wal": {"failures": 0},
            "snapshots": {"is_running": False},
            "memory": {"process": 50 * 1024**2, "data": 1024},
            "loop": {"latency": self.latency, "latency_max": 0.02},
        }

    def queues(self) -> list[dict[str, Any]]:
        self.puts += 10
        return [
            {
                "name": name,
                "tasks": {"ready": number, "taken": 1},
                "oldest_ready": 125.0,
                "waiting": 2,
                "calls": {"put": self.puts, "take": 0, "ack": 0},
            }
            for number, name in enumerate(self.names)
        ]


@pytest.fixture
def server() -> Server:
    return Server("a[b]\x1b", "c")


def opened(server: Server, count: int | None = None) -> Top:
    looks = Looks(server)  # type: ignore[arg-type]  # the part of a client that it uses
    looks.look()
    return Top(looks, 0.01, count)


def head_of(app: App[str]) -> str:
    return str(app.query_one("#head", Static).render())


def rows_of(app: Top) -> list[list[str]]:
    table = app.query_one(DataTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


async def until(pilot: Pilot[str], text: str) -> None:
    """Wait for a text in the head."""
    while text not in head_of(pilot.app):
        await pilot.pause(0.01)


def test_it(server: Server) -> None:
    asyncio.run(_it(server))


async def _it(server: Server) -> None:
    app = opened(server)
    async with app.run_test(size=(120, 20)) as pilot:
        await pilot.pause()
        assert "127.0.0.1:3301  0.1.0  up 1m5s  lsn 7" in head_of(app)
        assert "requests 120/s, 3 in flight" in head_of(app)
        assert "event loop 1.0 ms late, 20.0 ms at most lately" in head_of(app)
        columns = [str(column.label) for column in app.query_one(DataTable).ordered_columns]
        assert columns == ["queue", "ready", "taken", "oldest ready", "waiting", "put/s", "take/s", "ack/s"]
        server.read_only = True
        await until(pilot, "read-only")
        assert rows_of(app)[0] == ["a[b]\\x1b", "0", "1", "2m5s", "2", "5", "0", "0"]
        await pilot.press("s")
        assert [row[0] for row in rows_of(app)] == ["c", "a[b]\\x1b"]
        await pilot.press("p")
        assert "paused" in head_of(app)
        await pilot.press("q")
    assert app.return_value is None


def test_it_ends_with_the_error_of_the_server(server: Server) -> None:
    asyncio.run(_it_ends_with_the_error_of_the_server(server))


async def _it_ends_with_the_error_of_the_server(server: Server) -> None:
    app = opened(server)
    async with app.run_test() as pilot:
        server.failure = "the connection has broken"
        while app.is_running and app.return_value is None:
            await pilot.pause(0.01)
    assert app.return_value == "the connection has broken"


def test_it_ends_after_so_many_looks(server: Server) -> None:
    asyncio.run(_it_ends_after_so_many_looks(server))


async def _it_ends_after_so_many_looks(server: Server) -> None:
    app = opened(server, 2)
    async with app.run_test() as pilot:
        while app.is_running and not app._exit:
            await pilot.pause(0.01)
    assert app.return_value is None


def test_rates() -> None:
    assert rates({"put": 10}, {"put": 30, "take": 4}, 2.0) == {"put": 10.0, "take": 2.0}
    assert rates({"put": 10}, {"put": 3}, 2.0) == {"put": 0.0}  # the server has started again
    assert rates(None, {"put": 3}, 2.0) == rates({}, {"put": 3}, 0.0) == {}
