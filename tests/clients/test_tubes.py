"""Tubes with client libraries, on our server and, if there is a checkout, with the queue module.

PyPI's `tarantool-queue` is excluded. It is a client of the legacy queue (`queue.put(space, tube, …)`, all
arguments as strings) and needs a `tarantool` before 0.4, which uses Tarantool 1.5's protocol and cannot be
installed for Python 3; with a current one it fails at `Connection(schema=…)`. Node's driver returns tuples in
another form.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from tests.clients.conftest import DRIVERS, OURS, THEIRS
from tests.clients.drivers.driver import ClientError, Driver, OpenDriver, Target
from tests.clients.drivers.tarantool_python import TarantoolPython
from tests.conftest import StartTarantool
from tests.queue_lua_compat.real_tubes import tubes_application, worlds
from tests.running_server import RunningServer

pytestmark = pytest.mark.parametrize("open_driver", DRIVERS[:3], indirect=True)

TUBES_APPLICATION = "queue_lua_compat.tubes:app"

_numbers = count(1)


@pytest.fixture(scope="module", params=worlds(OURS, THEIRS))
def tubes_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    """Start a server of tubes: ours, then a real Tarantool with the queue module."""
    if request.param == THEIRS:
        application = tubes_application()
        start: StartTarantool = request.getfixturevalue("real_tarantool")
        theirs = start(application)
        yield Target(THEIRS, theirs.host, theirs.port)
    else:
        with RunningServer(tmp_path_factory.mktemp("tubes"), [TUBES_APPLICATION]) as ours:
            yield Target(OURS, ours.host, ours.port)


@pytest.fixture
def other(tubes_server: Target) -> Iterator[TarantoolPython]:
    """Open another connection."""
    connection = TarantoolPython(tubes_server)
    yield connection
    connection.close()


@pytest.fixture
def tube(other: TarantoolPython) -> str:
    """Create a tube of the type `fifottl`, and return the prefix of its procedures."""
    name = f"tube{next(_numbers)}"
    try:
        other.call("queue.create_tube", name, "fifottl")
    except ClientError as error:
        # The module has created it, but its result contains functions.
        if not error.message.startswith("unsupported Lua type"):
            raise
    return f"queue.tube.{name}:"


@pytest.fixture
def driver(open_driver: OpenDriver, tubes_server: Target) -> Driver:
    """Connect each of the client libraries in turn."""
    return open_driver(tubes_server)


@pytest.mark.parametrize("data", ["word", 42, None, True, [1, "two"], {"key": ["value"]}, "déjà vu"])
def test_a_task_is_put_taken_and_acknowledged(driver: Driver, tube: str, data: object) -> None:
    assert driver.call(tube + "put", data) == [[0, "r", data]]
    assert driver.call(tube + "take") == [[0, "t", data]]
    assert driver.call(tube + "ack", 0) == [[0, "-", data]]
    assert driver.call(tube + "take", 0) == []


def test_options_are_a_map(driver: Driver, tube: str) -> None:
    assert driver.call(tube + "put", "second", {"pri": 2, "ttl": 100.5}) == [[0, "r", "second"]]
    assert driver.call(tube + "put", "first", {"pri": 1}) == [[1, "r", "first"]]
    assert driver.call(tube + "put", "later", {"delay": 1000}) == [[2, "~", "later"]]
    assert driver.call(tube + "take", 0) == [[1, "t", "first"]]
    assert driver.call(tube + "release", 1, {"delay": 1000}) == [[1, "~", "first"]]
    assert driver.call(tube + "take", 0) == [[0, "t", "second"]]


def test_a_task_is_buried_kicked_peeked_at_and_deleted(driver: Driver, tube: str) -> None:
    driver.call(tube + "put", "x")
    assert driver.call(tube + "bury", 0) == [[0, "!", "x"]]
    assert driver.call(tube + "kick", 3) == [1]
    assert driver.call(tube + "peek", 0) == [[0, "r", "x"]]
    assert driver.call(tube + "delete", 0) == [[0, "-", "x"]]


def test_statistics_are_maps(driver: Driver, tube: str) -> None:
    driver.call(tube + "put", "x")
    [statistics] = driver.call("queue.statistics", tube.split(".")[2].rstrip(":"))
    assert isinstance(statistics, dict)
    assert statistics["tasks"] == {
        "ready": 1, "taken": 0, "buried": 0, "delayed": 0, "done": 0, "total": 1,
    }  # fmt: skip
    assert statistics["calls"]["put"] == 1


def test_a_take_waits_for_a_put(driver: Driver, other: TarantoolPython, tube: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(driver.call, tube + "take", 30)
        other.call(tube + "put", "at last")
        assert waiting.result(timeout=30) == [[0, "t", "at last"]]


def test_a_task_is_its_takers(driver: Driver, other: TarantoolPython, tube: str) -> None:
    other.call(tube + "put", "x")
    other.call(tube + "take")
    with pytest.raises(ClientError) as raised:
        driver.call(tube + "ack", 0)
    assert raised.value.message.endswith("Task was not taken")
    assert raised.value.code in (None, 32)


def test_the_tasks_of_a_closed_connection_are_ready_again(
    open_driver: OpenDriver, tubes_server: Target, other: TarantoolPython, tube: str
) -> None:
    loser = open_driver(tubes_server)
    loser.call(tube + "put", "x")
    loser.call(tube + "take")
    loser.close()
    assert other.call(tube + "take", 30) == [[0, "t", "x"]]


def test_a_tube_that_is_not_there(driver: Driver) -> None:
    with pytest.raises(ClientError) as raised:
        driver.call("queue.tube.nowhere:take")
    assert raised.value.message == "Procedure 'queue.tube.nowhere:take' is not defined"
