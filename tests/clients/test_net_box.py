"""The tutorial's producer and consumer in Lua, run by Debian's tarantool, and specifics of net.box."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from iproto_server.testing.logged_process import LoggedProcess
from tests.clients.conftest import create_space
from tests.clients.drivers.bridge import HERE, NetBox
from tests.clients.drivers.driver import ClientError, Target
from tests.clients.drivers.tarantool_python import TarantoolPython
from tests.programs import require_program

pytestmark = pytest.mark.real_tarantool

RunLua = Callable[..., LoggedProcess]


@pytest.fixture
def run_lua(target: Target) -> Iterator[RunLua]:
    """Start a script with the server's address and further arguments."""
    program = require_program("tarantool", "tarantool")
    with ExitStack() as running:

        def run(script: str, *arguments: object) -> LoggedProcess:
            process = LoggedProcess(
                [program, HERE / "lua" / script, target.address, *map(str, arguments)], cwd=HERE
            )
            running.callback(process.kill)
            return process

        yield run


@pytest.fixture
def stats(target: Target) -> Iterator[Callable[[], dict[str, int]]]:
    """Return the queue's counters."""
    admin = TarantoolPython(target)

    def ask() -> dict[str, int]:
        [counters] = admin.call("queue.stats")
        assert isinstance(counters, dict)
        return counters

    yield ask
    admin.close()


def task_in(process: LoggedProcess, event: str) -> dict[str, Any]:
    """Return the task of the next such line of a script's output."""
    found: dict[str, Any] = json.loads(process.wait_for(rf"^{event} (.*)$")[1])
    return found


def tasks_in(process: LoggedProcess, event: str) -> list[dict[str, Any]]:
    """Return the tasks of all such lines of a script that has ended."""
    assert process.wait() == 0, process.output
    return [json.loads(line.removeprefix(event)) for line in process.lines if line.startswith(f"{event} ")]


def test_a_producer_puts_and_a_consumer_takes_and_acknowledges(
    run_lua: RunLua, stats: Callable[[], dict[str, int]]
) -> None:
    [put] = tasks_in(run_lua("producer.lua", "hello", "world"), "put")
    assert put == {"id": put["id"], "status": "R", "runat": 0, "data": ["hello", "world"]}
    consumer = run_lua("consumer.lua", "ack", 1, 1)
    assert tasks_in(consumer, "took") == [put | {"status": "T"}]
    assert tasks_in(consumer, "acknowledged") == [put | {"status": "T"}]
    assert stats() == {"total": 0, "ready": 0, "waiting": 0, "taken": 0}


def test_a_released_task_is_taken_again(run_lua: RunLua, stats: Callable[[], dict[str, int]]) -> None:
    [put] = tasks_in(run_lua("producer.lua", "again"), "put")
    consumer = run_lua("consumer.lua", "release", 1, 3)
    assert tasks_in(consumer, "took") == [put | {"status": "T"}] * 3
    assert tasks_in(consumer, "released") == [put] * 3
    assert stats() == {"total": 1, "ready": 1, "waiting": 0, "taken": 0}


def test_a_consumer_finds_an_empty_queue(run_lua: RunLua) -> None:
    consumer = run_lua("consumer.lua", "ack", 0, 2)
    assert consumer.wait() == 0
    assert consumer.lines == ["no more tasks"] * 2


def test_a_waiting_consumer_gets_a_task_when_it_is_put(run_lua: RunLua) -> None:
    consumer = run_lua("consumer.lua", "ack", 30, 1)
    [put] = tasks_in(run_lua("producer.lua", "at last"), "put")
    assert tasks_in(consumer, "acknowledged") == [put | {"status": "T"}]


def test_another_consumer_gets_the_task_of_one_killed(
    run_lua: RunLua, stats: Callable[[], dict[str, int]]
) -> None:
    [put] = tasks_in(run_lua("producer.lua", "survivor"), "put")
    victim = run_lua("consumer.lua", "hold", 5, 1)
    assert task_in(victim, "took") == put | {"status": "T"}
    heir = run_lua("consumer.lua", "ack", 30, 1)
    assert stats()["taken"] == 1
    victim.kill()
    assert tasks_in(heir, "acknowledged") == [put | {"status": "T"}]


def test_every_task_goes_to_one_consumer_only(run_lua: RunLua, stats: Callable[[], dict[str, int]]) -> None:
    consumers = [run_lua("consumer.lua", "ack", 30, 10) for _ in range(2)]
    producers = [run_lua("producer.lua", number) for number in range(20)]
    put = [task["id"] for producer in producers for task in tasks_in(producer, "put")]
    done = [task["id"] for consumer in consumers for task in tasks_in(consumer, "acknowledged")]
    assert len(set(put)) == 20
    assert sorted(done) == sorted(put)
    assert stats()["total"] == 0


def test_a_connection_notices_a_space_that_somebody_else_made(target: Target) -> None:
    admin = TarantoolPython(target)
    connection = NetBox(target)
    create_space(admin, "noticed", [["id", "unsigned"]])
    admin.call("box.space.noticed:create_index", "primary", {"parts": ["id"]})
    try:
        assert connection.request("wait_for_space", "noticed")
        assert connection.insert("noticed", [7]) == [[7]]
    finally:
        admin.call("box.space.noticed:drop")
        connection.close()
        admin.close()


def test_the_greeting_tells_the_instance(target: Target) -> None:
    admin = TarantoolPython(target)
    connection = NetBox(target)
    [info] = admin.call("box.info")
    assert isinstance(info, dict)
    assert connection.request("instance_uuid") == info["uuid"]
    connection.close()
    admin.close()


def test_an_error_keeps_its_code_and_its_type(target: Target) -> None:
    connection = NetBox(target)
    with pytest.raises(ClientError) as raised:
        connection.call("no.such.procedure")
    assert (raised.value.code, raised.value.kind) == (33, "ClientError")
    with pytest.raises(ClientError) as raised:
        connection.call("queue.ack", 1)
    assert raised.value.message.endswith("Task {1} was not found")
    assert raised.value.kind == "LuajitError"
    connection.close()


def test_calls_are_made_at_once_and_answered_each_for_itself(target: Target) -> None:
    connection = NetBox(target)
    calls: list[object] = [["features.echo", [number]] for number in range(20)]
    calls.insert(10, ["features.wait", ["net.box at once"]])
    calls += [["no.such.procedure", []], ["features.open", ["net.box at once"]]]
    answers = connection.request("call_at_once", calls)
    assert answers == [
        *([number] for number in range(10)),
        ["open"],
        *([number] for number in range(10, 20)),
        {"error": "Procedure 'no.such.procedure' is not defined"},
        [],
    ]
    connection.close()


def test_a_call_is_given_up_and_its_late_answer_ignored(target: Target) -> None:
    connection = NetBox(target)
    with pytest.raises(ClientError) as raised:
        connection.request("call_with_timeout", "features.wait", ["net.box timeout"], 0.01)
    assert raised.value.message == "Timeout exceeded"
    connection.call("features.open", "net.box timeout")
    assert connection.call("features.echo", 1) == [1]
    connection.close()


def test_an_answer_comes_as_bytes_into_a_buffer(target: Target) -> None:
    connection = NetBox(target)
    assert connection.request("call_into_buffer", "features.echo", [1, "two"]) == [1, "two"]
    connection.close()


@pytest.mark.parametrize(
    ("kind", "text", "shown"),
    [
        ("decimal", "-12.3400", "-12.3400"),
        ("decimal", "9" * 38, "9" * 38),
        ("uuid", "f6423bdf-b49e-4913-b361-0740c9702e4b", "f6423bdf-b49e-4913-b361-0740c9702e4b"),
        ("unsigned", "18446744073709551615", "18446744073709551615ULL"),
    ],
)
def test_a_value_of_its_own_comes_back(target: Target, values: str, kind: str, text: str, shown: str) -> None:
    connection = NetBox(target)
    assert connection.request("store", values, 1, kind, text) == [shown] * 3
    connection.close()


def test_lua_and_sql_are_refused_with_an_error(our_server: Target) -> None:
    connection = NetBox(our_server)
    for method, name in (("eval", "EVAL"), ("execute", "EXECUTE")):
        with pytest.raises(ClientError) as raised:
            connection.request(method, "return 1")
        assert (raised.value.code, raised.value.message) == (
            5,
            f"This server does not support {name} requests",
        )
    connection.ping()
    connection.close()


def test_a_connection_knows_its_state(target: Target) -> None:
    connection = NetBox(target)
    assert connection.request("state") == {"state": "active", "connected": True, "protocol": "Binary"}
    assert connection.request("close_and_ping") == {
        "told": ["disconnected"],
        "ping": False,
        "state": "closed",
    }
    connection.close()
