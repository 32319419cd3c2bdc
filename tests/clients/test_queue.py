"""The tutorial's five procedures, called with every client library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.clients.conftest import OURS, THEIRS
from tests.clients.drivers.bridge import NodeDriver
from tests.clients.drivers.driver import ClientError, Driver, OpenDriver, Target
from tests.clients.drivers.tarantool_python import TarantoolPython
from tests.conftest import StartTarantool
from tests.real_tarantool import queue_application
from tests.running_server import RunningServer

Task = dict[str, Any]


LUA = "iproto-server with Lua"


@pytest.fixture(scope="module", params=[OURS, LUA, pytest.param(THEIRS, marks=pytest.mark.real_tarantool)])
def queue_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    """Start a server with the queue: ours in Python, ours in Lua, then a real Tarantool."""
    if request.param == LUA:
        folder = tmp_path_factory.mktemp("lua")
        (folder / "init.lua").write_text(f"box.cfg{{}}\n{queue_application()}")
        with RunningServer(folder, [str(folder / "init.lua")]) as server:
            yield Target(LUA, server.host, server.port)
    elif request.param == OURS:
        yield request.getfixturevalue("our_server")
    else:
        start: StartTarantool = request.getfixturevalue("real_tarantool")
        tarantool = start(queue_application())
        yield Target(THEIRS, tarantool.host, tarantool.port)


@pytest.fixture
def admin(target: Target) -> Iterator[TarantoolPython]:
    """Open another connection, to inspect the queue and to act as another client."""
    connection = TarantoolPython(target)
    yield connection
    connection.close()


@pytest.fixture
def known_id(driver: Driver, admin: TarantoolPython) -> Callable[[Task], Any]:
    """Return a task's id as received, or as a decimal string for Node's driver, which would round it."""

    def name(task: Task) -> Any:
        if not isinstance(driver, NodeDriver):
            return task["id"]
        [row] = [
            row for row in admin.select("queue", "primary", [], iterator="ALL") if row[3] == task["data"]
        ]
        return str(row[0])

    return name


def put(driver: Driver, data: object, **options: object) -> Task:
    return one_task(driver.call("queue.put", data, *([options] if options else [])))


def take(driver: Driver, timeout: float = 0) -> Task:
    return one_task(driver.call("queue.take", timeout))


def one_task(answer: list[Any]) -> Task:
    """Return the task, the only value of an answer."""
    [task] = answer
    assert set(task) == {"id", "status", "runat", "data"}
    return dict(task)


def stats(driver: Driver) -> dict[str, int]:
    [counters] = driver.call("queue.stats")
    assert isinstance(counters, dict)
    return counters


def counted(*, ready: int = 0, waiting: int = 0, taken: int = 0) -> dict[str, int]:
    return {"total": ready + waiting + taken, "ready": ready, "waiting": waiting, "taken": taken}


def fails_with(error: ClientError, message: str) -> bool:
    """Whether it is a procedure's error (32) with that text; Lua prepends a source position.

    Large numbers have Lua's suffix: they are 64-bit integers there, not doubles.
    """
    return error.message.endswith(message) and error.code in (None, 32)


@pytest.mark.parametrize("data", ["word", 42, None, True, [1, "two"], {"key": ["value"]}, ["déjà vu"]])
def test_put_answers_the_task_as_a_map(driver: Driver, data: object) -> None:
    task = put(driver, data)
    assert task == {"id": task["id"], "status": "R", "runat": 0, "data": data}
    assert task["id"] > 1_500_000_000_000_000_000


def test_take_answers_the_task_with_its_new_status(driver: Driver) -> None:
    task = put(driver, "x")
    assert take(driver) == task | {"status": "T"}


def test_take_of_nothing_answers_no_value(driver: Driver) -> None:
    assert driver.call("queue.take") == []
    assert driver.call("queue.take", 0) == []
    assert driver.call("queue.take", 0.01) == []


def test_tasks_are_taken_in_the_order_they_were_put(driver: Driver) -> None:
    for number in range(5):
        put(driver, number)
    assert [take(driver)["data"] for _ in range(5)] == [0, 1, 2, 3, 4]


def test_ack_answers_the_task_and_removes_it(driver: Driver, known_id: Callable[[Task], Any]) -> None:
    put(driver, "x")
    taken = take(driver)
    assert one_task(driver.call("queue.ack", known_id(taken))) == taken
    assert driver.select("queue", "primary", [], iterator="ALL") == []


def test_release_makes_the_task_ready_again(driver: Driver, known_id: Callable[[Task], Any]) -> None:
    task = put(driver, "x")
    taken = take(driver)
    assert one_task(driver.call("queue.release", known_id(taken))) == task
    assert take(driver) == taken


def test_release_with_a_delay_makes_the_task_wait(driver: Driver, known_id: Callable[[Task], Any]) -> None:
    put(driver, "x")
    released = one_task(driver.call("queue.release", known_id(take(driver)), {"delay": 1000}))
    assert released["status"] == "W"
    assert released["runat"] > released["id"] / 1e9 + 999
    assert driver.call("queue.take") == []


def test_a_delayed_task_waits_and_then_becomes_ready(driver: Driver) -> None:
    task = put(driver, "later", delay=0.2)
    assert task["status"] == "W"
    assert task["runat"] == pytest.approx(task["id"] / 1e9 + 0.2, abs=0.1)
    assert driver.call("queue.take") == []
    assert take(driver, 30) == task | {"status": "T", "runat": 0}


def test_the_id_of_a_task_may_be_a_decimal_string(driver: Driver, admin: TarantoolPython) -> None:
    put(driver, "x")
    take(driver)
    [[identifier, *_]] = admin.select("queue", "primary", [], iterator="ALL")
    driver.call("queue.release", str(identifier))
    take(driver)
    driver.call("queue.ack", str(identifier))
    assert stats(driver) == counted()


def test_small_ids_of_rows_inserted_by_a_client_serve_as_well(driver: Driver) -> None:
    driver.insert("queue", [7, "R", 0, "by hand"])
    assert take(driver) == {"id": 7, "status": "T", "runat": 0, "data": "by hand"}
    assert one_task(driver.call("queue.ack", 7))["id"] == 7


def test_an_id_is_required(driver: Driver) -> None:
    for procedure in ("queue.ack", "queue.release"):
        with pytest.raises(ClientError) as raised:
            driver.call(procedure)
        assert fails_with(raised.value, "Task id required")


def test_a_task_must_be_there(driver: Driver) -> None:
    for procedure in ("queue.ack", "queue.release"):
        with pytest.raises(ClientError) as raised:
            driver.call(procedure, 1)
        assert fails_with(raised.value, "Task {1} was not found")


def test_a_task_must_be_taken(driver: Driver, known_id: Callable[[Task], Any]) -> None:
    identifier = known_id(put(driver, "x"))
    for procedure in ("queue.ack", "queue.release"):
        with pytest.raises(ClientError) as raised:
            driver.call(procedure, identifier)
        assert fails_with(raised.value, f"Task {identifier}ULL not taken by anybody")


def test_a_task_must_be_ones_own(
    driver: Driver, admin: TarantoolPython, known_id: Callable[[Task], Any]
) -> None:
    identifier = known_id(put(driver, "x"))
    take(admin)
    [me], [other] = driver.call("box.session.id"), admin.call("box.session.id")
    for procedure in ("queue.ack", "queue.release"):
        with pytest.raises(ClientError) as raised:
            driver.call(procedure, identifier)
        assert fails_with(raised.value, f"Task {identifier}ULL taken by {other}. Not you ({me})")


def test_the_tasks_of_a_closed_connection_are_ready_again(
    open_driver: OpenDriver, target: Target, admin: TarantoolPython
) -> None:
    loser = open_driver(target)
    task = put(loser, "x")
    take(loser)
    loser.close()
    assert take(admin, 30)["data"] == task["data"]


def test_a_waiting_take_is_answered_by_a_put(driver: Driver, admin: TarantoolPython) -> None:
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(take, driver, 30)
        put(admin, "at last")
        assert waiting.result(timeout=30)["data"] == "at last"


def test_stats_count_the_tasks_by_status(driver: Driver, known_id: Callable[[Task], Any]) -> None:
    assert stats(driver) == counted()
    put(driver, "first")
    put(driver, "second")
    put(driver, "third", delay=1000)
    assert stats(driver) == counted(ready=2, waiting=1)
    taken = take(driver)
    assert stats(driver) == counted(ready=1, waiting=1, taken=1)
    driver.call("queue.ack", known_id(taken))
    assert stats(driver) == counted(ready=1, waiting=1)


def test_stats_are_right_after_a_client_changed_the_space_itself(driver: Driver) -> None:
    driver.insert("queue", [1, "R", 0, None])
    driver.replace("queue", [2, "W", 4e9, None])
    driver.upsert("queue", [3, "T", 0, None], [])
    assert stats(driver) == counted(ready=1, waiting=1, taken=1)
    driver.update("queue", "primary", [1], [("=", "status", "T")])
    driver.upsert("queue", [2, "W", 0, None], [("=", "status", "R"), ("=", "runat", 0)])
    assert stats(driver) == counted(ready=1, taken=2)
    driver.delete("queue", "primary", [3])
    assert stats(driver) == counted(ready=1, taken=1)
    driver.call("box.space.queue:truncate")
    assert stats(driver) == counted()
