"""A reload with many tubes: they start and stop in slices, or at the first call."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from itertools import pairwise

import pytest

from iproto_server import Box, ManualClock, Timer, Waiter
from queue_lua_compat.tubes.queue import Queue
from queue_lua_compat.tubes.tube.tube import Tube
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer, answered

TUBES = 200
LAST = f"tube{TUBES - 1:03}"
AT_ONCE = 60
"""More than a slice, and fewer than all tubes."""


class NotingClock(ManualClock):
    """A clock that calls a function after each of its callbacks."""

    def __init__(self) -> None:
        super().__init__()
        self.note: Callable[[], object] = lambda: None

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """See `Clock`."""

        def noted() -> None:
            callback()
            self.note()

        return super().call_later(delay, noted)


@pytest.fixture
def server() -> TubesServer:
    server = TubesServer(NotingClock())
    client = Client(server)
    for number in range(TUBES):
        client.call("queue.create_tube", f"tube{number:03}", "fifottl", {})
    return server


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[Tube]:
    """The tubes that were stopped."""
    stopped: list[Tube] = []
    stop: Callable[[Tube], None] = Tube.stop

    def noted(tube: Tube) -> None:
        stopped.append(tube)
        stop(tube)

    monkeypatch.setattr(Tube, "stop", noted)
    return stopped


def started(queue: Queue) -> int:
    return len(queue.tube)


def finish(server: TubesServer) -> None:
    """Let all slices run."""
    server.clock.advance(0.001)


def test_tubes_start_and_stop_in_slices(server: TubesServer, stops: list[Tube]) -> None:
    assert isinstance(server.clock, NotingClock)
    old = list(server.queue.tube.values())
    seen: list[tuple[int, int]] = []
    server.clock.note = lambda: seen.append((started(server.queue), len(stops)))
    server.reload()
    server.clock.note()
    assert 0 < seen[0][0] < AT_ONCE
    assert 0 < seen[0][1] < AT_ONCE
    server.clock.advance(0)
    for (starts, ends), (more_starts, more_ends) in pairwise(seen):
        assert more_starts - starts + more_ends - ends < AT_ONCE
    assert seen[-1] == (TUBES, TUBES)
    assert set(stops) == set(old)
    assert server.queue.tube.start_stored is None


def test_all_names_are_known_at_once(server: TubesServer) -> None:
    client = Client(server)
    names = client.call("queue.tube")
    server.reload()
    assert started(server.queue) < AT_ONCE
    assert client.call("queue.tube") == names
    assert client.call("queue.tube", LAST) is True
    assert client.call("queue.tube", "another") is False
    assert len(server.queue.counters(server.box)) == 5 * TUBES
    assert client.call("queue.create_tube", LAST, "fifottl", {"if_not_exists": True})["name"] == LAST
    assert "already exists" in client.refused("queue.create_tube", "tube150", "fifottl", {})


def test_a_call_starts_its_tube(server: TubesServer) -> None:
    client = Client(server)
    client.call(f"queue.tube.{LAST}:put", "before")
    taken = client.call(f"queue.tube.{LAST}:take", 0)
    server.reload()
    client.call(f"queue.tube.{LAST}:put", "after")
    assert client.call(f"queue.tube.{LAST}:take", 0)[2] == "after"
    assert client.call(f"queue.tube.{LAST}:ack", taken[0])[2] == "before"
    assert started(server.queue) < AT_ONCE
    finish(server)
    assert client.call("queue.statistics", LAST)["tasks"]["taken"] == 1


def test_a_call_that_fails_leaves_its_tube_to_the_next(server: TubesServer) -> None:
    client = Client(server)
    server.reload()

    def fail() -> None:
        assert server.queue.tube[LAST].name == LAST
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        server.as_server(fail)
    assert server.queue.tube.running(LAST) is None
    client.call(f"queue.tube.{LAST}:put", "data")
    finish(server)
    assert client.call(f"queue.tube.{LAST}:take", 0)[2] == "data"


def test_who_waits_is_served_by_a_put_and_by_a_row(server: TubesServer) -> None:
    client, worker = Client(server), Client(server)
    by_put: Waiter = worker.call(f"queue.tube.{LAST}:take", 60)
    by_row: Waiter = worker.call("queue.tube.tube150:take", 60)
    server.reload()
    now = server.clock.time_ns() // 1000
    row = [0, "r", now + 10**12, 10**12, 10**12, 0, now, "by row"]
    server.box.run(client.session, server.box.space.tube150.insert, row)
    client.call(f"queue.tube.{LAST}:put", "by put")
    assert answered(by_put)[2] == "by put"
    finish(server)
    assert answered(by_row)[2] == "by row"


def test_due_tasks_of_a_tube_that_nobody_calls_are_not_lost(server: TubesServer) -> None:
    client = Client(server)
    client.call(f"queue.tube.{LAST}:put", "delayed", {"delay": 0.0005})
    client.call("queue.tube.tube150:put", "taken", {"ttr": 0.0005})
    client.call("queue.tube.tube150:take", 0)
    server.reload()
    finish(server)
    assert client.call("queue.statistics", LAST)["tasks"]["ready"] == 1
    assert client.call("queue.statistics", "tube150")["tasks"]["ready"] == 1


def test_another_reload_takes_over_what_has_not_started(server: TubesServer) -> None:
    client = Client(server)
    waiter: Waiter = client.call(f"queue.tube.{LAST}:take", 60)
    first = server.queue
    server.reload()
    middle = server.queue
    server.reload()
    finish(server)
    assert (started(first), started(middle), started(server.queue)) == (0, 0, TUBES)
    assert Client(server).call(f"queue.tube.{LAST}:put", "data")[2] == "data"
    assert answered(waiter)[2] == "data"


@pytest.mark.parametrize("kind", ["fifo", "fifottl", "limfifottl", "utube", "utubettl"])
def test_old_tubes_are_freed_without_the_garbage_collector(kind: str) -> None:
    server = TubesServer(ManualClock())
    client = Client(server)
    client.call("queue.create_tube", "jobs", kind, {"capacity": 10} if kind == "limfifottl" else {})
    client.call("queue.tube.jobs:put", "data")
    client.call("queue.tube.jobs:take", 0)
    tube, driver = weakref.ref(server.queue.tube["jobs"]), weakref.ref(server.queue.tube["jobs"].raw)
    gc.collect()
    gc.disable()
    try:
        server.reload()
        finish(server)
        assert (tube(), driver()) == (None, None)
    finally:
        gc.enable()


def test_a_setup_that_fails_leaves_all_tubes_to_the_old_code(server: TubesServer, stops: list[Tube]) -> None:
    client, worker = Client(server), Client(server)
    waiters = [worker.call(f"queue.tube.{name}:take", 60) for name in ("tube000", LAST)]
    client.call("queue.tube.tube001:put", "delayed", {"delay": 0.0005})
    old = server.queue

    def fail(box: Box) -> None:
        raise ZeroDivisionError

    server.when_made = lambda: server.application.setup(fail)
    with pytest.raises(ZeroDivisionError):
        server.reload()
    finish(server)
    assert server.queue is old
    assert len(old.tube) == TUBES
    assert set(stops).isdisjoint(old.tube.values())
    for name, waiter in zip(("tube000", LAST), waiters, strict=True):
        client.call(f"queue.tube.{name}:put", name)
        assert answered(waiter)[2] == name
    assert client.call("queue.tube.tube001:take", 0)[2] == "delayed"


def test_a_tube_may_be_dropped_before_it_has_started(server: TubesServer) -> None:
    client = Client(server)
    server.reload()
    assert client.call(f"queue.tube.{LAST}:drop") is True
    assert client.call("queue.tube", LAST) is False
    finish(server)
    assert started(server.queue) == TUBES - 1


def test_a_server_that_becomes_read_only_meanwhile_starts_no_more(server: TubesServer) -> None:
    server.reload()
    server.box.set_read_only(True)
    count = started(server.queue)
    finish(server)
    assert started(server.queue) == count
    server.box.set_read_only(False)
    assert started(server.queue) == TUBES
