"""One conversation with the tutorial's queue, held with a real Tarantool and with our server: the same
answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgpack
import pytest

from iproto_server import codec
from iproto_server.protocol.constants import Key, RequestType
from tests.conftest import StartServer, StartTarantool
from tests.programs import require_seed
from tests.real_tarantool import queue_application
from tests.running_server import QUEUE_APPLICATION
from tests.wire import RawClient, Response

_LUA_PLACE = re.compile(r"^\S*queue\.lua:\d+: ")
_SESSION = re.compile(r"(taken by |Not you \()(\d+)")
_NUMBER = re.compile(r"\d+")
_CLOCK_ID = 10**18


class Conversation:
    """Talks to one server through several connections and writes down what it answers.

    What differs between any two runs is written as what it stands for: ids by the order in which the tasks
    were put, times as before or after the put, sessions by the connection's name.

    Parameters:
        address: the server.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.connections: dict[str, RawClient] = {}
        self.ids: list[int] = []
        self.transcript: list[Any] = []
        self._sessions: dict[int, str] = {}

    def connection(self, name: str) -> RawClient:
        if name not in self.connections:
            self.connections[name] = RawClient(self.address)
            session_id = self.connections[name].call("box.session.id").data[0]
            self._sessions[session_id] = name
        return self.connections[name]

    def say(self, name: str, procedure: str, *arguments: object) -> Any:
        """Call `queue.procedure` through a connection and write the answer down."""
        response = self.connection(name).call(f"queue.{procedure}", *arguments)
        return self._write(name, procedure, response)

    def ask(self, name: str, procedure: str, *arguments: object) -> int:
        """Call without waiting for the answer."""
        body = {Key.FUNCTION_NAME: f"queue.{procedure}", Key.TUPLE: list(arguments)}
        return self.connection(name).send(RequestType.CALL, body)

    def hear(self, name: str, sync: int) -> Any:
        """The answer to `ask`."""
        response = self.connections[name].receive()
        assert response.sync == sync
        return self._write(name, "heard", response)

    def request(self, name: str, kind: RequestType, body: dict[Key, Any]) -> None:
        """Any request, its answer written down."""
        self._write(name, kind.name, self.connection(name).request(kind, body))

    def hang_up(self, name: str) -> None:
        """Close a connection and wait until the server has noticed: its tasks are ready again then."""
        self.connections.pop(name).close()
        # Both servers serve connections in the order of events, so a later connection comes after the end.
        for _ in range(3):
            RawClient(self.address).close()

    def _write(self, name: str, what: str, response: Response) -> Any:
        answer: Any = self._error(response) if response.code else self._plain(response.data)
        self.transcript.append((name, what, answer))
        return None if response.code else response.data

    def _error(self, response: Response) -> tuple[int, str]:
        code, text = response.error
        text = _LUA_PLACE.sub("", text)
        text = _SESSION.sub(lambda match: match[1] + self._sessions[int(match[2])], text)
        return code, _NUMBER.sub(lambda match: self._name_of(int(match[0])), text)

    def _name_of(self, number: int) -> str:
        return f"<task {self.ids.index(number)}>" if number in self.ids else str(number)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._plain(item) for key, item in sorted(value.items())}
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if isinstance(value, int) and value > _CLOCK_ID:
            if value not in self.ids:
                self.ids.append(value)
            return f"<task {self.ids.index(value)}>"
        if isinstance(value, float) and value > 1e9:
            return "<a time>"
        return value


def put_and_take(talk: Conversation) -> None:
    # Not among them: bytes, which Lua makes a string of and ours keeps.
    for data in ("text", 1, -1, 1.5, None, True, [1, [2]], {"k": {"v": [None]}}, 2**63, -(2**63), ""):
        talk.say("a", "put", data)
    for _ in range(13):
        talk.say("b", "take")
    talk.say("b", "stats")


def options(talk: Conversation) -> None:
    talk.say("a", "put")
    for delay in (
        {},
        {"delay": 1000},
        {"delay": "1000"},
        {"delay": 0.001},
        {"delay": False},
        "text",
        [],
        [1],
        False,
    ):
        talk.say("a", "put", "x", delay)
    talk.say("a", "put", "x", {}, "one too many")


def ids(talk: Conversation) -> None:
    talk.say("a", "put", "x")
    task = talk.ids[0]
    forms: list[object] = [
        None,
        [],
        "abc",
        "",
        5,
        5.0,
        -5,
        1.5,
        "5",
        "-5",
        "1.5",
        "0x10",
        "5ULL",
        "1e3",
        True,
        [5],
    ]
    forms += [
        {"a": 1},
        b"5",
        " 5 ",
        1e300,
        2**63,
        2**64 - 1,
        -(2**63),
        10**14,
        10**14 - 1,
        10**15,
        -(10**14),
        2**53,
    ]
    forms += [msgpack.ExtType(1, codec.pack(Decimal(5))[2:]), str(task), task, f" {task} "]
    for procedure in ("ack", "release"):
        talk.say("a", procedure)
        for form in forms:
            talk.say("a", procedure, form)
    talk.say("b", "take")
    talk.say("a", "ack", task)
    talk.say("a", "release", str(task))
    talk.say("b", "release", str(task))
    talk.say("b", "take")
    talk.say("b", "ack", f"{task}ULL")
    talk.say("b", "ack", task)


def exact_floats(talk: Conversation) -> None:
    row = {Key.SPACE_ID: space_id(talk), Key.TUPLE: [2**60, "R", 0, "exact as a float"]}
    talk.request("a", RequestType.INSERT, row)
    talk.request("a", RequestType.INSERT, {**row, Key.TUPLE: [2**60 + 1, "R", 0, "not exact"]})
    talk.say("b", "take")
    talk.say("b", "take")
    talk.say("b", "ack", float(2**60))
    talk.say("b", "ack", float(2**60))


def timeouts(talk: Conversation) -> None:
    for timeout in (0, 0.0, -1, "0", 0.001):
        talk.say("a", "take", timeout)


def waiting(talk: Conversation) -> None:
    first, second = talk.ask("first", "take", 30), talk.ask("second", "take", 30)
    talk.say("first-is-parked", "stats")
    talk.say("a", "put", 1)
    talk.hear("first", first)
    talk.say("a", "put", 2)
    talk.hear("second", second)
    third = talk.ask("second", "take", 30)
    talk.say("a", "put", "soon", {"delay": 0.05})
    talk.hear("second", third)


def release(talk: Conversation) -> None:
    for data in range(3):
        talk.say("a", "put", data)
    task = talk.say("a", "take")[0]["id"]
    talk.say("a", "release", task)
    talk.say("a", "take")
    talk.say("a", "release", task, {"delay": 1000})
    talk.say("a", "release", task)
    talk.say("a", "take")
    talk.say("a", "stats")


def disconnect(talk: Conversation) -> None:
    for data in range(3):
        talk.say("a", "put", data)
    talk.say("gone", "take")
    talk.say("gone", "take")
    talk.say("a", "stats")
    talk.hang_up("gone")
    talk.say("a", "stats")
    for _ in range(4):
        talk.say("a", "take")


def direct_changes(talk: Conversation) -> None:
    space = {Key.SPACE_ID: space_id(talk), Key.INDEX_ID: 0}
    talk.request("a", RequestType.INSERT, {**space, Key.TUPLE: [1, "R", 0, "x"]})
    talk.request("a", RequestType.INSERT, {**space, Key.TUPLE: [2, "W", 1e12, "x"]})
    talk.request("a", RequestType.REPLACE, {**space, Key.TUPLE: [1, "W", 1e12, "y"]})
    talk.request("a", RequestType.UPDATE, {**space, Key.KEY: [2], Key.TUPLE: [["=", 1, "R"]]})
    talk.say("a", "stats")
    talk.request("a", RequestType.DELETE, {**space, Key.KEY: [2]})
    talk.say("a", "stats")
    for wrong in ([1], ["x", "R", 0, "x"], [3, 5, 0, "x"], [3, "R", "x", "x"], [3, "R", 0]):
        talk.request("a", RequestType.INSERT, {**space, Key.TUPLE: wrong})
    talk.say("a", "put", "z")
    talk.say("a", "take")
    talk.connection("a").call("box.space.queue:truncate")
    talk.say("a", "stats")
    talk.say("a", "ack", talk.ids[0])


def select(talk: Conversation) -> None:
    for data in range(4):
        talk.say("a", "put", data)
    talk.say("a", "put", "later", {"delay": 1000})
    talk.say("a", "take")
    space = {Key.SPACE_ID: space_id(talk), Key.LIMIT: 100, Key.OFFSET: 0}
    for index, key in ((0, []), (1, []), (1, ["R"]), (1, ["T"]), (2, [0]), (2, [])):
        for iterator in range(7):
            body = {**space, Key.INDEX_ID: index, Key.ITERATOR: iterator, Key.KEY: key}
            talk.request("a", RequestType.SELECT, body)


def space_id(talk: Conversation) -> int:
    body = {
        Key.SPACE_ID: 281,
        Key.INDEX_ID: 2,
        Key.LIMIT: 1,
        Key.OFFSET: 0,
        Key.ITERATOR: 0,
        Key.KEY: ["queue"],
    }
    found: int = talk.connection("a").request(RequestType.SELECT, body).data[0][0]
    return found


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "conversation",
    [
        put_and_take,
        options,
        ids,
        exact_floats,
        timeouts,
        waiting,
        release,
        disconnect,
        direct_changes,
        select,
    ],
)
def test_the_same_answers(
    start_server: StartServer, real_tarantool: StartTarantool, conversation: Callable[[Conversation], None]
) -> None:
    theirs = Conversation(real_tarantool(queue_application(require_seed("queue.lua"))).address)
    ours = Conversation(start_server([QUEUE_APPLICATION]).address)
    conversation(theirs)
    conversation(ours)
    assert ours.transcript == theirs.transcript
