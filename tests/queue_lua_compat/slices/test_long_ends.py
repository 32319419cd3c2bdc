"""The end of a session with many tasks, and emptied tubes with many tasks: what others see meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iproto_server import ManualClock, Waiter
from tests.queue_lua_compat.conftest import QueueServer
from tests.queue_lua_compat.tubes.tubes_server import TubesServer, answered

MANY = 350
JOBS = "queue.tube.jobs:"


@pytest.fixture
def tubes() -> TubesServer:
    server = TubesServer(ManualClock())
    server.connect().call("queue.create_tube", "jobs", "fifottl", {})
    return server


def _taken(server: TubesServer) -> int:
    return list(server.states("jobs").values()).count("t")


class TestSessions:
    def test_the_rest_of_the_tasks_follows(self, tubes: TubesServer) -> None:
        worker, other = tubes.connect(), tubes.connect()
        other.call(JOBS + "put_many", [[number] for number in range(MANY)])
        for _ in range(MANY):
            worker.call(JOBS + "take", 0)
        worker.close()
        assert 0 < _taken(tubes) < MANY
        tubes.clock.advance(0)
        assert _taken(tubes) == 0
        assert tubes.rows("_queue_taken_2") == []

    def test_a_task_that_another_has_taken_meanwhile_stays_with_it(self, tubes: TubesServer) -> None:
        worker, other = tubes.connect(), tubes.connect()
        other.call(JOBS + "put_many", [[number] for number in range(MANY)])
        for _ in range(MANY):
            worker.call(JOBS + "take", 0)
        worker.close()
        last = MANY - 1
        tubes.as_server(tubes.tube("jobs").free, last)
        tubes.as_server(tubes.tube("jobs").raw.touch, last, 0)
        while (task := other.call(JOBS + "take", 0))[0] != last:
            other.call(JOBS + "ack", task[0])
        tubes.clock.advance(0)
        assert [row[1] for row in tubes.rows("_queue_taken_2")] == [last]
        assert other.call(JOBS + "ack", last)[1] == "-"

    def test_what_the_log_has_refused_is_tried_again(self, tubes: TubesServer) -> None:
        worker, other = tubes.connect(), tubes.connect()
        other.call(JOBS + "put_many", [[number] for number in range(MANY)])
        for _ in range(MANY):
            worker.call(JOBS + "take", 0)
        worker.close()
        tubes.journal.is_slow = True
        told: list[Callable[[], object]] = []
        tubes.box.when_written = told.append
        tubes.clock.advance(0)
        tubes.lose_log()
        for tell in told:
            tell()
        assert 0 < _taken(tubes) < MANY
        tubes.clock.advance(60)
        assert _taken(tubes) == 0

    def test_a_restart_in_the_middle_releases_all(self, tubes: TubesServer) -> None:
        worker, other = tubes.connect(), tubes.connect()
        other.call(JOBS + "put_many", [[number] for number in range(MANY)])
        for _ in range(MANY):
            worker.call(JOBS + "take", 0)
        worker.close()
        assert _taken(tubes)
        tubes.restart()
        assert _taken(tubes) == 0

    def test_the_tutorials_queue_as_well(self) -> None:
        server = QueueServer(ManualClock())
        worker, other = server.connect(), server.connect()
        other.call("put_many", list(range(MANY)))
        for _ in range(MANY):
            worker.call("take")
        worker.close()
        assert 0 < server.stats["taken"] < MANY
        first = other.call("take")
        server.clock.advance(0)
        assert server.stats["taken"] == 1
        assert other.call("ack", first["id"])["id"] == first["id"]


class TestTruncate:
    def test_a_tube_without_stored_options_is_emptied_at_once(self, tubes: TubesServer) -> None:
        client = tubes.connect()
        client.call(JOBS + "put_many", [[number] for number in range(MANY)])
        assert client.call(JOBS + "truncate") is None
        assert tubes.rows("jobs") == []

    def test_tasks_with_keys_go_one_after_the_other_and_new_ones_stay(self, tubes: TubesServer) -> None:
        client, other = tubes.connect(), tubes.connect()
        for number in range(MANY):
            client.call(JOBS + "put", number, {"unique_key": f"key {number}"})
        waiter = client.call(JOBS + "truncate")
        assert isinstance(waiter, Waiter)
        assert 0 < len(tubes.rows("jobs")) < MANY
        new = other.call(JOBS + "put", "new", {"unique_key": "key 0"})
        tubes.clock.advance(0)
        assert answered(waiter) is None
        assert [row[0] for row in tubes.rows("jobs")] == [new[0]]
        assert [row[1] for row in tubes.rows("_queue_unique_keys")] == ["key 0"]
