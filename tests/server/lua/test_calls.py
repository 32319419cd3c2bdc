"""Clients call functions of Lua, and evaluate texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tarantool
from tarantool.error import DatabaseError

from tests.running_server import RunningServer

APPLICATION = Path(__file__).with_name("init.lua")

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("lua"), [str(APPLICATION)]) as server:
        yield server


def connected(server: RunningServer, user: str | None = None) -> Any:
    password = None if user is None else "secret"
    return tarantool.connect(server.host, server.port, user=user, password=password)


@pytest.fixture
def client(server: RunningServer) -> Iterator[Any]:
    connection = connected(server)
    yield connection
    connection.close()


def refusal(call: Any, *arguments: Any) -> tuple[int, str]:
    with pytest.raises(DatabaseError) as refused:
        call(*arguments)
    code, message = refused.value.args[:2]
    return code, message


class TestCall:
    def test_returns_values(self, client: Any) -> None:
        assert list(client.call("jobs.values")) == [1, "two", None, {"a": [1, 2]}, 18446744073709551615]

    def test_returns_rows(self, client: Any) -> None:
        assert list(client.call("jobs.add", 1, "data")) == [[1, "data"]]

    def test_returns_nothing(self, client: Any) -> None:
        assert list(client.call("jobs.nothing")) == []

    def test_of_a_method(self, client: Any) -> None:
        assert list(client.call("jobs:method", 5)) == [True, 5]

    @pytest.mark.parametrize(
        "name", ["nothing", "jobs.none", "jobs.add.more", "jobs", "a..b", ":", "", "string:"]
    )
    def test_of_what_is_no_function(self, client: Any, name: str) -> None:
        assert refusal(client.call, name) == (33, f"Procedure '{name}' is not defined")

    def test_of_a_function_of_lua_itself(self, client: Any) -> None:
        assert list(client.call("string.rep", "a", 3)) == ["aaa"]

    def test_fails_with_the_position(self, client: Any) -> None:
        code, message = refusal(client.call, "jobs.fail")
        assert code == 32
        assert re.search(r"init\.lua:\d+: it failed$", message)

    def test_fails_with_a_code(self, client: Any) -> None:
        assert refusal(client.call, "jobs.fail_with_code") == (1234, "its own")

    def test_fails_with_an_error_of_the_box(self, client: Any) -> None:
        client.call("jobs.add", 2)
        message = "Duplicate key exists in unique index 'primary' in space 'jobs'"
        assert refusal(client.call, "jobs.add", 2) == (3, message)

    def test_keeps_what_was_changed_before_it_failed(self, client: Any) -> None:
        refusal(client.call, "jobs.half")
        assert list(client.select("jobs", 2000)) == [[2000]]

    def test_runs_in_a_fiber_of_its_own(self, client: Any) -> None:
        code = (
            "local fiber = require('fiber') local own, seen = fiber.self(), fiber.self().storage.seen "
            "own.storage.seen, own = true, own:name('used') return fiber.id(), seen, fiber.name()"
        )
        answers = [list(client.eval(code)) for _ in range(3)]
        assert [answer[1:] for answer in answers] == [[None, "used"]] * 3
        assert len({answer[0] for answer in answers}) == 3

    def test_gives_each_fiber_another_number(self, client: Any) -> None:
        numbers = [client.eval("return require('fiber').id()")[0] for _ in range(3)]
        assert numbers == sorted(set(numbers))

    def test_is_found_by_its_number(self, client: Any) -> None:
        code = (
            "local fiber = require('fiber') local id, inside = fiber.id(), nil "
            "fiber.create(function() inside = fiber.info()[id] ~= nil and fiber.find(id) ~= nil end) "
            "return fiber.info()[id] ~= nil, inside"
        )
        assert list(client.eval(code)) == [True, True]

    def test_is_found_by_what_it_creates(self, client: Any) -> None:
        code = (
            "local fiber = require('fiber') local before, inside = 0, 0 "
            "for _ in pairs(fiber.info()) do before = before + 1 end "
            "fiber.create(function() for _ in pairs(fiber.info()) do inside = inside + 1 end end) "
            "return inside - before"
        )
        assert list(client.eval(code)) == [1]

    def test_fails_and_the_next_one_does_not(self, client: Any) -> None:
        for _ in range(3):
            assert refusal(client.eval, "error('no')")[1] == "eval:1: no"
            assert list(client.eval("return 1")) == [1]

    def test_undoes_a_transaction_that_it_leaves_open(self, client: Any) -> None:
        code, message = refusal(client.call, "jobs.leave_transaction_open")
        assert (code, message) == (30, "Transaction is active at return from function")
        assert list(client.select("jobs", 1000)) == []

    def test_undoes_a_transaction_in_which_it_waits(self, client: Any) -> None:
        code, _ = refusal(client.call, "jobs.wait_in_transaction")
        assert code == 154
        assert list(client.select("jobs", 3000)) == []

    def test_waits_as_its_own_session(self, server: RunningServer) -> None:
        waiting, other = connected(server), connected(server)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(waiting.call, "jobs.wait", 30)
            while list(other.eval("return jobs.waiting")) != [True]:
                pass
            other.call("jobs.give", "a value")
            value, user, name = answer.result()
        assert (value, user) == ("a value", "guest")
        assert name.startswith("session ")
        waiting.close()
        other.close()

    def test_pushes_messages(self, client: Any) -> None:
        pushed: list[Any] = []
        result = client.call(
            "jobs.push", 3, on_push=lambda message, context: context.append(message), on_push_ctx=pushed
        )
        assert list(result) == ["done"]
        assert [list(message) for message in pushed] == [[1], [2], [3]]


class TestEval:
    def test_returns_values(self, client: Any) -> None:
        assert list(client.eval("local a, b = ... return a + b, {a = 1}", 2, 3)) == [5, {"a": 1}]

    def test_of_what_is_no_chunk(self, client: Any) -> None:
        assert refusal(client.eval, "x y z") == (32, "eval:1: '=' expected near 'y'")

    def test_uses_the_box(self, client: Any) -> None:
        client.call("jobs.add", 20, "data")
        assert list(client.eval("return box.space.jobs:get(20), box.space.jobs:get(9999)")) == [[20, "data"]]

    def test_returns_what_cannot_be_sent(self, client: Any) -> None:
        assert refusal(client.eval, "return print") == (32, "unsupported Lua type 'function'")

    def test_runs_out_of_stack(self, client: Any) -> None:
        code, message = refusal(client.eval, "local function f() return 1 + f() end return f()")
        assert code == 32
        assert "stack overflow" in message
        client.ping()


class TestRights:
    def test_of_a_user_without_any(self, server: RunningServer) -> None:
        stranger = connected(server, "stranger")
        message = "Execute access to function 'jobs.add' is denied for user 'stranger'"
        assert refusal(stranger.call, "jobs.add", 30) == (42, message)
        assert refusal(stranger.eval, "return 1") == (
            42,
            "Execute access to universe '' is denied for user 'stranger'",
        )
        stranger.close()

    def test_of_a_user_who_may_execute_one_function(self, server: RunningServer) -> None:
        worker = connected(server, "worker")
        assert list(worker.call("jobs.add", 31)) == [[31]]
        assert refusal(worker.call, "jobs.nothing")[0] == 42
        worker.close()

    def test_of_the_owner(self, server: RunningServer, client: Any) -> None:
        client.call("jobs.add", 40)
        stranger = connected(server, "stranger")
        assert list(stranger.call("jobs.as_owner", 40)) == [[40]]
        assert refusal(stranger.call, "box.space.jobs:get", 40)[0] == 42
        stranger.close()


class TestSessions:
    def test_begin_and_end_with_triggers(self, server: RunningServer, client: Any) -> None:
        other = connected(server)
        [number] = other.eval("return box.session.id()")
        assert list(client.eval(f"return connected[{number}]")) == ["guest"]
        other.close()
        ended = "for _, name in ipairs(disconnected) do if name == ... then return true end end return false"
        while list(client.eval(ended, f"session {number}")) != [True]:
            pass


class TestDurability:
    def test_of_answered_calls(self, tmp_path: Path) -> None:
        """Rows of a call that was answered outlive the process."""
        server = RunningServer(tmp_path, [str(APPLICATION)], ["--wal-mode", "write"])
        client = connected(server)
        for number in range(100):
            client.call("jobs.add", number, "data")
        server.kill()
        with RunningServer(tmp_path, [str(APPLICATION)]) as again:
            client = connected(again)
            assert list(client.eval("return box.space.jobs:len(), box.space.jobs:get(99)")) == [
                100,
                [99, "data"],
            ]
            client.close()
