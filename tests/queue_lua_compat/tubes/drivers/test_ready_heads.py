"""The cost of takes does not depend on the size of busy sub-queues, and the heads stay correct."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from iproto_server import BoxError, Space, Tuple
from iproto_server.box.memtx.indexed_space import IndexedSpace
from iproto_server.box.memtx.memtx_space import MemtxSpace
from queue_lua_compat.tubes.drivers.sub_queues import SubQueues
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer, answered

KINDS = ["utube", "utubettl"]
MODES = ["default", "ready_buffer"]
JOBS = "queue.tube.jobs:"


@pytest.fixture(params=[(kind, mode) for kind in KINDS for mode in MODES], ids=" ".join)
def kind(request: pytest.FixtureRequest) -> str:
    """Return each type of tubes, in each storage mode."""
    return str(request.param[0])


@pytest.fixture(autouse=True)
def jobs(request: pytest.FixtureRequest, server: TubesServer, client: Client, kind: str) -> None:
    """Create the tube."""
    _, mode = request.node.callspec.params["kind"]
    client.call("queue.create_tube", "jobs", kind, {"storage_mode": mode})


def put(client: Client, *names: str) -> None:
    """Put tasks; the first letter of the data names the sub-queue."""
    client.call(JOBS + "put_many", [[name, {"utube": name[0]}] for name in names])


def take(client: Client) -> str | None:
    """Return the data of the task that is taken, or None."""
    task = client.call(JOBS + "take", 0)
    return None if task is None else str(task[2])


def heads(server: TubesServer) -> int:
    """Return the number of tasks that can be taken, after comparing it with the buffer's rows."""
    driver = server.tube("jobs").raw
    assert isinstance(driver, SubQueues)
    if driver.buffer.is_wanted:
        assert len(server.rows("jobs_ready_buffer")) == len(driver.heads)
    return len(driver.heads)


def direct(server: TubesServer, change: Any) -> None:
    """Change the space directly, without the procedures."""

    def run() -> None:
        change(server.box.space["jobs"])

    server.as_server(run)


class Reads:
    """The numbers of rows read and looked up."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def counted(server: TubesServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    """Count all reads of spaces; an iterator's reads are counted row by row."""
    reads = Reads()
    with monkeypatch.context() as patch:
        for core in server.box.catalog:
            patch.setattr(core, "_is_custom", True)  # so that facades call the methods of spaces
        for name in ("first", "find", "update", "delete", "select"):
            original = getattr(MemtxSpace, name)

            def look(*arguments: Any, original: Any = original) -> Any:
                found = original(*arguments)
                reads.count += max(1, len(found)) if isinstance(found, list) else 1
                return found

            patch.setattr(MemtxSpace, name, look)
        iterate = IndexedSpace.iterate

        def walk(*arguments: Any) -> Iterator[bytes]:
            for row in iterate(*arguments):
                reads.count += 1
                yield row

        patch.setattr(IndexedSpace, "iterate", walk)
        yield reads


class TestCost:
    @pytest.mark.parametrize("is_free", [True, False], ids=["one is free", "all are busy"])
    def test_a_take_does_not_look_at_busy_sub_queues(
        self, server: TubesServer, client: Client, monkeypatch: pytest.MonkeyPatch, is_free: bool
    ) -> None:
        costs = []
        for size in (1, 10, 300):
            client.call(JOBS + "truncate")
            for name in "abc":
                put(client, *[f"{name}{number}" for number in range(size + 1)])
            assert [take(client) for _ in range(3)] == ["a0", "b0", "c0"]
            if is_free:
                put(client, "free")
            with counted(server, monkeypatch) as reads:
                assert take(client) == ("free" if is_free else None)
            costs.append(reads.count)
        assert len(set(costs)) == 1
        assert costs[0] < 10

    def test_acknowledging_does_not_either(
        self, server: TubesServer, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        costs = []
        for size in (1, 10, 300):
            client.call(JOBS + "truncate")
            put(client, *[f"{name}{number}" for number in range(size + 1) for name in "abc"])
            task_id = client.call(JOBS + "take")[0]
            with counted(server, monkeypatch) as reads:
                client.call(JOBS + "ack", task_id)
            costs.append(reads.count)
        assert len(set(costs)) == 1

    def test_a_start_looks_once_at_a_sub_queue(
        self, server: TubesServer, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(client, *[f"{name}{number % 10}" for number in range(300) for name in "abc"])
        driver = server.tube("jobs").raw
        server.as_server(driver.stop)
        with counted(server, monkeypatch) as reads:
            server.as_server(driver.start)
        assert reads.count < 50
        assert heads(server) == 3

    def test_what_is_idle_takes_no_memory(self, server: TubesServer, client: Client) -> None:
        for number in range(100):
            client.call(JOBS + "put", "x", {"utube": str(number)})
        assert heads(server) == 100
        client.call(JOBS + "ack_many", [task[0] for task in client.call(JOBS + "take_many", 100)])
        driver = server.tube("jobs").raw
        assert isinstance(driver, SubQueues)
        assert heads(server) == 0
        assert not driver.heads._ranks
        assert not driver.heads._marked


class TestWhatIsUndone:
    def test_a_transaction_that_fails(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2", "b1")
        tube = server.tube("jobs")

        def procedure() -> None:
            tube.take(0)
            tube.take(0)
            tube.ack(0)
            tube.put("new", {"utube": "c"})
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            server.box.run(client.session, procedure)
        assert heads(server) == 2
        assert [take(client) for _ in range(3)] == ["a1", "b1", None]

    def test_a_part_of_a_transaction(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2", "b1")
        tube, box = server.tube("jobs"), server.box

        def procedure() -> None:
            tube.take(0)
            savepoint = box.savepoint()
            tube.ack(0)
            tube.take(0)
            box.rollback_to_savepoint(savepoint)
            task = tube.take(0)
            assert isinstance(task, Tuple)
            assert list(task) == [2, "t", "b1"]

        box.run(client.session, procedure)
        assert take(client) is None
        assert server.states("jobs") == {"a1": "t", "a2": "r", "b1": "t"}

    def test_a_log_that_cannot_be_written(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2", "b1")
        take(client)
        server.journal.is_slow = True
        client.call(JOBS + "ack", 0)
        assert [take(client) for _ in range(3)] == ["a2", "b1", None]
        server.lose_log()
        assert server.states("jobs") == {"a1": "t", "a2": "r", "b1": "r"}
        assert [take(client) for _ in range(2)] == ["b1", None]

    def test_who_waits_gets_what_is_ready_again(self, server: TubesServer, client: Client) -> None:
        put(client, "a1")
        other = server.connect()
        other.call("queue.identify")
        server.journal.is_slow = True
        take(client)
        waiting = other.call(JOBS + "take", 60)
        server.journal.is_slow = False
        lost = server.box.transactions.take_unwritten()
        server.box.transactions.undo(lost[:1])
        server.clock.advance(0)
        assert list(answered(waiting)) == [0, "t", "a1"]

    def test_a_truncation(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2", "b1")
        tube = server.tube("jobs")

        def procedure() -> None:
            tube.truncate()
            assert tube.take(0) is None
            tube.put("new", {"utube": "a"})
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            server.box.run(client.session, procedure)
        assert heads(server) == 2
        assert [take(client) for _ in range(3)] == ["a1", "b1", None]

    def test_many_undone_puts_are_not_remembered_for_ever(self, server: TubesServer, client: Client) -> None:
        tube = server.tube("jobs")

        def procedure(number: int) -> None:
            tube.put("x", {"utube": str(number)})
            raise ZeroDivisionError

        for number in range(1100):
            with pytest.raises(ZeroDivisionError):
                server.box.run(client.session, procedure, number)
        driver = tube.raw
        assert isinstance(driver, SubQueues)
        assert len(driver.heads._marked) <= 1001


class TestDirectChanges:
    """Clients may change the space like any other."""

    def test_tasks_that_are_inserted(self, server: TubesServer, client: Client, kind: str) -> None:
        put(client, "a1")

        def insert(space: Space) -> None:
            row = list(space.get(0) or ())
            row[0], row[-1] = 7, "b1"
            row[-2] = "b"
            space.insert(row)

        direct(server, insert)
        assert [take(client) for _ in range(3)] == ["a1", "b1", None]

    def test_a_task_that_is_moved_to_another_sub_queue(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2", "b1")
        direct(server, lambda space: space.update(0, [("=", "utube", "b")]))
        assert heads(server) == 2
        assert [take(client) for _ in range(3)] == ["a1", "a2", None]

    def test_a_taken_task_that_is_deleted(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2")
        take(client)
        direct(server, lambda space: space.delete(0))
        assert take(client) == "a2"

    def test_a_space_that_is_truncated(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "b1")
        direct(server, lambda space: space.truncate())
        assert take(client) is None
        put(client, "c1")
        assert heads(server) == 1
        assert take(client) == "c1"

    def test_who_may_only_write_is_not_refused(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2")
        server.as_server(server.box.schema.user.create, "ann")
        server.as_server(server.box.schema.user.grant, "ann", "read,write", "space", "jobs")
        ann = server.connect("ann")
        server.box.run(ann.session, lambda: server.box.space["jobs"].delete(0))
        assert heads(server) == 1
        assert take(client) == "a2"


class TestOpenTransactions:
    """Open transactions, whose rows only they see."""

    def test_what_one_puts_is_not_taken_before_it_has_committed(
        self, server: TubesServer, client: Client
    ) -> None:
        stream = Stream(server)
        stream.request(lambda: server.tube("jobs").put("a1", {"utube": "a"}))
        assert take(client) is None
        stream.commit()
        assert take(client) == "a1"

    def test_what_one_puts_and_undoes_is_not_taken(self, server: TubesServer, client: Client) -> None:
        stream = Stream(server)
        stream.request(lambda: server.tube("jobs").put("a1", {"utube": "a"}))
        stream.roll_back()
        assert take(client) is None
        assert heads(server) == 0

    def test_a_sub_queue_stays_busy_while_an_ack_may_be_undone(
        self, server: TubesServer, client: Client
    ) -> None:
        put(client, "a1", "a2", "b1")
        stream = Stream(server, client)
        assert take(client) == "a1"
        stream.request(lambda: server.tube("jobs").ack(0))
        other = server.connect()
        assert [take(other) for _ in range(2)] == ["b1", None]
        stream.roll_back()
        assert take(other) is None
        client.call(JOBS + "ack", 0)
        assert take(other) == "a2"

    def test_what_is_released_can_be_taken_after_the_commit(
        self, server: TubesServer, client: Client
    ) -> None:
        put(client, "a1")
        stream = Stream(server, client)
        assert take(client) == "a1"
        stream.request(lambda: server.tube("jobs").release(0))
        other = server.connect()

        def insert(space: Space) -> None:
            space.insert([9, "r", *list(space.get(0) or ())[2:]])

        direct(server, insert)
        assert take(other) is None
        stream.commit()
        assert take(other) == "a1"

    def test_what_one_takes_and_gives_back_can_be_taken(self, server: TubesServer, client: Client) -> None:
        put(client, "a1")
        stream = Stream(server)
        stream.request(lambda: server.tube("jobs").take(0))
        stream.roll_back()
        assert take(client) == "a1"


class Stream:
    """A transaction of several requests in a stream.

    Parameters:
        server: the server.
        client: its client; a new one by default.
    """

    def __init__(self, server: TubesServer, client: Client | None = None) -> None:
        self._box = server.box
        self._session = (client or server.connect()).session
        self._transaction = self._box.interactive.begin()

    def request(self, function: Any) -> None:
        self._box.interactive.resume(self._transaction)
        self._box.run_inside(self._session, function)
        assert self._box.interactive.suspend() is self._transaction

    def commit(self) -> None:
        self._box.interactive.commit(self._transaction)

    def roll_back(self) -> None:
        self._box.interactive.roll_back(self._transaction)


class TestStarts:
    def test_tasks_are_there_after_a_restart(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2", "b1")
        take(client)
        server.restart()
        client = server.connect()
        assert heads(server) == 2
        assert [take(client) for _ in range(3)] == ["a1", "b1", None]

    def test_tasks_are_there_after_a_reload(self, server: TubesServer, client: Client) -> None:
        put(client, "a1", "a2", "b1")
        take(client)
        server.reload()
        assert [take(client) for _ in range(2)] == ["b1", None]
        client.call(JOBS + "ack", 0)
        assert take(client) == "a2"
        assert len(server.box.space["jobs"].core().on_replace.functions) in (2, 3)

    def test_a_buffer_that_is_wrong_is_put_right(self, server: TubesServer, client: Client) -> None:
        """The module loses kicked tasks, and then stores a state as the name of a sub-queue."""
        put(client, "a1", "a2", "b1")
        driver = server.tube("jobs").raw
        assert isinstance(driver, SubQueues)
        if driver.buffer.is_wanted:
            buffer = server.box.space["jobs_ready_buffer"]
            row = list(buffer.get(0) or ())
            server.as_server(driver.stop)
            server.as_server(buffer.delete, 0)
            server.as_server(buffer.insert, [1, "r", *row[2:]])
        server.restart()
        assert heads(server) == 2
        assert take(server.connect()) == "a1"

    def test_a_tube_that_is_dropped_leaves_no_triggers(self, server: TubesServer, client: Client) -> None:
        before = len(server.box.space["_truncate"].core().on_replace.functions)
        client.call(JOBS + "drop")
        assert len(server.box.space["_truncate"].core().on_replace.functions) == before - 1
        assert "jobs_ready_buffer" not in server.box.space

    def test_a_tube_without_its_indexes_is_refused(
        self, server: TubesServer, client: Client, kind: str
    ) -> None:
        client.call("queue.create_tube", "plain", "fifo")
        server.as_server(server.box.space["_queue"].delete, "plain")
        server.queue.tube.pop("plain").stop()
        error = client.refused("queue.create_tube", "plain", kind, {"if_not_exists": True})
        assert error == 'space "plain" does not have "utube" index'

    def test_the_module_has_no_buffer_in_vinyl(self, client: Client, kind: str) -> None:
        options = {"storage_mode": "ready_buffer", "engine": "vinyl"}
        with pytest.raises(BoxError):
            client.call("queue.create_tube", "v", kind, options)
