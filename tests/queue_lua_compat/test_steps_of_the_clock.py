"""Steps of the wall clock: it was set, or the machine was suspended.

Delays that begin later keep their length, and deadlines that the clock has skipped are due at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from iproto_server import ManualClock
from tests.queue_lua_compat.conftest import QueueServer, answered
from tests.queue_lua_compat.legacy.conftest import LegacyServer
from tests.queue_lua_compat.tubes.tubes_server import TubesServer

DAY_NS = 86_400 * 10**9


class Dialect(NamedTuple):
    """The calls of one queue."""

    connect: Callable[[], Any]
    put: Callable[[str, float, float], tuple[Any, ...]]
    take: Callable[[float], tuple[Any, ...]]


def tutorial(clock: ManualClock) -> Dialect:
    server = QueueServer(clock)
    return Dialect(
        server.connect,
        lambda data, delay, ttl: ("put", data, {"delay": delay} if delay else {}),
        lambda timeout: ("take", timeout),
    )


def legacy(clock: ManualClock) -> Dialect:
    server = LegacyServer(clock)
    return Dialect(
        server.connect,
        lambda data, delay, ttl: ("put", 0, "tube", delay, ttl, 0, 0, data),
        lambda timeout: ("take", 0, "tube", timeout),
    )


def tubes(kind: str) -> Callable[[ManualClock], Dialect]:
    def make(clock: ManualClock) -> Dialect:
        server = TubesServer(clock)
        server.connect().call("queue.create_tube", "jobs", kind)
        return Dialect(
            server.connect,
            lambda data, delay, ttl: (
                "queue.tube.jobs:put",
                data,
                {name: value for name, value in (("delay", delay), ("ttl", ttl), ("utube", data)) if value},
            ),
            lambda timeout: ("queue.tube.jobs:take", timeout),
        )

    return make


ALL = [tutorial, legacy, *(tubes(kind) for kind in ("fifottl", "limfifottl", "utubettl"))]
WITH_TTL = ALL[1:]
WAIT = 10**6


@pytest.fixture(params=ALL, ids=["tutorial", "legacy", "fifottl", "limfifottl", "utubettl"])
def dialect(request: pytest.FixtureRequest, clock: ManualClock) -> Dialect:
    made: Dialect = request.param(clock)
    return made


def data_of(task: Any) -> object:
    return task["data"] if isinstance(task, Mapping) else task[-1]


def test_a_new_delay_is_as_long_as_it_should_be_after_a_step_over_a_pending_moment(
    dialect: Dialect, clock: ManualClock
) -> None:
    client, consumers = dialect.connect(), [dialect.connect() for _ in range(2)]
    client.call(*dialect.put("pending", 1000, 0))
    clock.set_wall_clock(clock.time_ns() + DAY_NS)
    client.call(*dialect.put("new", 1, 0))
    waiting = [consumer.call(*dialect.take(WAIT)) for consumer in consumers]
    clock.advance(0)
    assert [waiter.is_done for waiter in waiting] == [True, False]
    assert data_of(answered(waiting[0])) == "pending"
    clock.advance(1)
    assert data_of(answered(waiting[1])) == "new"


def test_a_pending_delay_is_shorter_when_the_clock_has_stepped_forward(
    dialect: Dialect, clock: ManualClock
) -> None:
    client = dialect.connect()
    client.call(*dialect.put("pending", 1000, 0))
    waiting = client.call(*dialect.take(WAIT))
    clock.set_wall_clock(clock.time_ns() + 970 * 10**9)
    clock.advance(29)
    assert not waiting.is_done
    clock.advance(1)
    assert data_of(answered(waiting)) == "pending"


def test_a_new_delay_is_as_long_as_it_should_be_after_a_step_back(
    dialect: Dialect, clock: ManualClock
) -> None:
    client = dialect.connect()
    client.call(*dialect.put("pending", 1000, 0))
    clock.set_wall_clock(clock.time_ns() - DAY_NS)
    client.call(*dialect.put("new", 1, 0))
    waiting = client.call(*dialect.take(WAIT))
    clock.advance(1)
    assert data_of(answered(waiting)) == "new"


@pytest.mark.parametrize("make", WITH_TTL, ids=["legacy", "fifottl", "limfifottl", "utubettl"])
def test_a_task_whose_life_the_clock_has_stepped_over_is_never_given_out(
    make: Callable[[ManualClock], Dialect], clock: ManualClock
) -> None:
    dialect = make(clock)
    client = dialect.connect()
    client.call(*dialect.put("short", 0, 10))
    client.call(*dialect.put("delayed and short", 10, 10))
    client.call(*dialect.put("long", 0, 10 * 86_400))
    clock.set_wall_clock(clock.time_ns() + DAY_NS)
    # Before any timer has called, and after.
    assert data_of(client.call(*dialect.take(0))) == "long"
    assert client.call(*dialect.take(0)) is None
    clock.advance(0)
    assert client.call(*dialect.take(0)) is None
