"""The load does what the figures say it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.contender import Contender, Ours, Server, Tarantool
from bench.load import Load
from bench.table import table
from tests.programs import require_program


@pytest.fixture(params=["ours", pytest.param("tarantool", marks=pytest.mark.real_tarantool)])
def contender(request: pytest.FixtureRequest) -> Contender:
    """Each of those that are compared."""
    return Ours() if request.param == "ours" else Tarantool(require_program("tarantool", "tarantool"))


def test_tasks_are_put_taken_and_acknowledged(contender: Contender, tmp_path: Path) -> None:
    with Server(contender, tmp_path / "data") as server, Load(server.address, 3, 4) as load:
        load.ping(25)
        load.put(25)
        assert server.count() == 25
        load.take(20)
        assert server.connection.call("queue.stats") == [{"total": 25, "ready": 5, "waiting": 0, "taken": 20}]
        load.ack()
        assert server.count() == 5


def test_a_request_that_brings_no_task_is_a_failure(contender: Contender, tmp_path: Path) -> None:
    with Server(contender, tmp_path / "data") as server, Load(server.address, 2, 1) as load:
        load.put(2)
        with pytest.raises(RuntimeError, match="1 of 3 requests failed"):
            load.take(3)


def test_a_call_that_fails_says_why(contender: Contender, tmp_path: Path) -> None:
    with (
        Server(contender, tmp_path / "data") as server,
        pytest.raises(RuntimeError, match=r"^queue\.ack: .*Task \{7\} was not found$"),
    ):
        server.connection.call("queue.ack", 7)


def test_a_start_finds_the_tasks(contender: Contender, tmp_path: Path) -> None:
    with Server(contender, tmp_path / "data") as server, Load(server.address, 1, 10) as load:
        load.put(30)
    with Server(contender, tmp_path / "data", has_queue=False) as server:
        assert server.tasks == 30
        assert 0 < server.recovered_in < server.started_in
        assert server.started_cpu > 0


def test_a_table_has_texts_left_and_numbers_right() -> None:
    rows = [["put", "1,000"], ["acknowledge", "20"]]
    assert table("Requests", ["", "ours\nreq/s"], rows).splitlines() == [
        "Requests",
        "",
        "              ours",
        "             req/s",
        "-----------  -----",
        "put          1,000",
        "acknowledge     20",
    ]
