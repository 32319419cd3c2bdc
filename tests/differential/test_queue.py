"""The same calls to the tutorial's own queue.lua and to our queue: the answers must be equal."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.differential.both import outcome
from tests.iproto_client import (
    CALL,
    DELETE,
    FUNCTION_NAME,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    OFFSET,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
    Answer,
    IprotoClient,
)
from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

WEEK = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Named:
    """The id of a task, which differs between the servers, by its name in the test.

    Parameters:
        name: The name given when it was put.
        as_text: Whether the id is given as a decimal string.
    """

    name: str
    as_text: bool = False


@dataclass
class Side:
    """One of the servers, with its ids for the names of tasks.

    Parameters:
        host: The server's address.
        port: The server's port.
    """

    host: str
    port: int
    clients: dict[str, IprotoClient] = field(default_factory=dict)
    sessions: dict[int, str] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)

    def client(self, who: str) -> IprotoClient:
        """Return a client's connection, opening it on first use."""
        if who not in self.clients:
            self.clients[who] = IprotoClient(self.host, self.port)
            self.sessions[self.clients[who].call("box.session.id").data[0]] = who
        return self.clients[who]

    def send(self, who: str, procedure: str, arguments: tuple[Any, ...]) -> None:
        """Send a call, with this server's ids instead of names."""
        given = [self._own(argument) for argument in arguments]
        self.client(who).send(CALL, {FUNCTION_NAME: f"queue.{procedure}", TUPLE: given})

    def receive(self, who: str, named: str | None) -> Any:
        """Return the answer to a call, with names instead of this server's ids."""
        answer = self.client(who).receive()
        if named is not None:
            self.ids[named] = answer.data[0]["id"]
        return self._neutral(answer)

    def _own(self, argument: Any) -> Any:
        if not isinstance(argument, Named):
            return argument
        identifier = self.ids[argument.name]
        return str(identifier) if argument.as_text else identifier

    def _neutral(self, answer: Answer) -> Any:
        if not answer.ok:
            # Lua's errors begin with a position in the source
            text = re.sub(r"^\S+/queue\.lua:\d+: ", "", answer.error or "")
            text = re.sub(r"^the id must be a number, .*", NO_KEY, text)  # ours says more
            for name, identifier in self.ids.items():
                text = text.replace(str(identifier), f"<{name}>")
            for session, who in self.sessions.items():
                text = re.sub(rf"(by |you \(){session}\b", rf"\1<{who}>", text)
            return (answer.error_code, text, [error["type"] for error in answer.error_stack])
        return [self._neutral_value(value) for value in answer.data]

    def _neutral_value(self, value: Any) -> Any:
        if not isinstance(value, dict) or "id" not in value:
            return value
        names = {identifier: name for name, identifier in self.ids.items()}
        runat = value["runat"]
        # delays are whole weeks, so a rounded one identifies the original
        weeks = round((runat - time.time()) / WEEK) if runat else (0, type(runat))
        return value | {"id": names[value["id"]], "runat": weeks}


class Conversation:
    """Clients that send the same calls to both servers.

    Parameters:
        ours: Our server.
        theirs: A real Tarantool.
    """

    def __init__(self, ours: RunningServer, theirs: RealTarantool) -> None:
        self.sides = [Side(theirs.host, theirs.port), Side(ours.host, ours.port)]
        for side in self.sides:
            side.client("operator").call("box.space.queue:truncate")

    def __call__(self, who: str, procedure: str, *arguments: Any, named: str | None = None) -> Any:
        """Make a client's call, and compare the answers of both servers.

        Parameters:
            who: The client.
            procedure: Its name without `queue.`.
            arguments: Its arguments; a `Named` for the id of a task.
            named: A name for the task in the answer.

        Returns:
            The answer, with names instead of ids.
        """
        self.start(who, procedure, *arguments)
        return self.finish(who, named=named)

    def start(self, who: str, procedure: str, *arguments: Any) -> None:
        """Make a client's call, without waiting."""
        for side in self.sides:
            side.send(who, procedure, arguments)

    def finish(self, who: str, *, named: str | None = None) -> Any:
        """Return the answer to a waiting call, which must be equal on both servers."""
        theirs, ours = [side.receive(who, named) for side in self.sides]
        assert ours == theirs
        return ours

    def request(self, request_type: int, body: dict[int, Any]) -> None:
        """Send any request as the administrator, and compare the answers."""
        theirs, ours = [side.client("operator").request(request_type, body) for side in self.sides]
        assert outcome(ours) == outcome(theirs)

    def leave(self, who: str) -> None:
        """Close a client's connection."""
        for side in self.sides:
            side.clients.pop(who).close()

    def close(self) -> None:
        """Close all connections."""
        for side in self.sides:
            for client in side.clients.values():
                client.close()


@pytest.fixture
def talk(queue_servers: tuple[RunningServer, RealTarantool]) -> Iterator[Conversation]:
    """Start with empty queues."""
    conversation = Conversation(*queue_servers)
    yield conversation
    conversation.close()


def test_the_life_of_a_task(talk: Conversation) -> None:
    talk("ann", "stats")
    talk("ann", "put", {"work": [1, 2.5, "three", None, True]}, named="task")
    talk("ann", "stats")
    taken = talk("bob", "take")
    assert taken == [
        {"id": "task", "status": "T", "runat": (0, int), "data": {"work": [1, 2.5, "three", None, True]}}
    ]
    talk("bob", "stats")
    talk("bob", "release", Named("task"))
    talk("bob", "stats")
    talk("ann", "take", 0)
    talk("ann", "ack", Named("task"))
    talk("ann", "stats")
    assert talk("ann", "take") == []


def test_tasks_are_taken_in_order(talk: Conversation) -> None:
    for name in ("first", "second", "third"):
        talk("ann", "put", name, named=name)
    talk("bob", "take")
    talk("bob", "take")
    talk("bob", "release", Named("first"))
    assert talk("ann", "take")[0]["id"] == "first"
    assert talk("ann", "take")[0]["id"] == "third"


def test_delays(talk: Conversation) -> None:
    talk("ann", "put", "later", {"delay": 2 * WEEK}, named="later")
    talk("ann", "put", "text", {"delay": f"{3 * WEEK}"}, named="text")
    talk("ann", "put", "now", {}, named="now")
    talk("ann", "stats")
    talk("bob", "take")
    assert talk("bob", "release", Named("now"), {"delay": 5 * WEEK})[0]["runat"] == 5
    talk("bob", "take", 0.01)
    talk("ann", "stats")


def test_a_delayed_task_becomes_ready(talk: Conversation) -> None:
    talk("ann", "put", "soon", {"delay": 0.05}, named="soon")
    assert talk("bob", "take", 10)[0]["status"] == "T"
    talk("bob", "stats")


def test_an_id_may_be_text(talk: Conversation) -> None:
    talk("ann", "put", "x", named="x")
    talk("ann", "take")
    talk("ann", "release", Named("x", as_text=True))
    talk("ann", "take")
    talk("ann", "ack", Named("x", as_text=True))


NO_KEY = "Invalid key part count in an exact match (expected 1, got 0)"
NO_IDS: list[Any] = [None, [], "abc", "", "1.5", "1e3", True, [5], {"a": 1}]
IDS: list[Any] = [5, 5.0, -5, 1.5, "5", "-5", "0x10", "5ULL", b"5", " 5 ", 1e300, 2**53, 10**14 - 1, 10**14]
LARGE_IDS: list[Any] = [10**15, -(10**14), 2**63, 2**64 - 1, -(2**63)]


@pytest.mark.parametrize("procedure", ["ack", "release"])
@pytest.mark.parametrize("task_id", [*NO_IDS, *IDS, *LARGE_IDS], ids=repr)
def test_the_forms_of_an_id(talk: Conversation, procedure: str, task_id: object) -> None:
    assert talk("ann", procedure, task_id)[0] in (19, 32)


def test_a_float_that_is_exact_is_an_id(talk: Conversation) -> None:
    insert(talk, [2**60, "R", 0, "exact as a float"])
    talk("ann", "take", named="x")
    talk("ann", "ack", float(2**60))
    talk("ann", "ack", float(2**60))


@pytest.mark.parametrize(
    "data", ["text", "", -1, 1.5, [1, [2]], {"k": {"v": [None]}}, 2**63, -(2**63)], ids=repr
)
def test_data_comes_back_as_it_was(talk: Conversation, data: object) -> None:
    # Except bytes, which Lua converts to a string and our server keeps.
    talk("ann", "put", data, named="x")
    talk("ann", "take")


@pytest.mark.parametrize("options", [{}, {"delay": False}, "text", [], [1], False], ids=repr)
def test_options_without_a_delay(talk: Conversation, options: object) -> None:
    assert talk("ann", "put", "x", options, named="x")[0]["status"] == "R"


def test_too_few_and_too_many_arguments(talk: Conversation) -> None:
    talk("ann", "put")
    talk("ann", "put", "x", {}, "one too many", named="x")
    talk("ann", "take", 0, "one too many")


@pytest.mark.parametrize("timeout", [0, 0.0, -1, "0", "0.01", 0.01], ids=repr)
def test_the_forms_of_a_timeout(talk: Conversation, timeout: object) -> None:
    assert talk("ann", "take", timeout) == []


@pytest.mark.parametrize("row", [[1], ["x", "R", 0, "x"], [3, 5, 0, "x"], [3, "R", "x", "x"], [3, "R", 0]])
def test_the_format_holds_for_direct_changes_too(talk: Conversation, row: list[object]) -> None:
    talk.request(INSERT, {SPACE_ID: 512, TUPLE: row})


def test_the_counters_follow_direct_changes(talk: Conversation) -> None:
    insert(talk, [1, "R", 0, "x"])
    insert(talk, [2, "W", 1e12, "x"])
    talk("ann", "stats")
    talk.request(REPLACE, {SPACE_ID: 512, TUPLE: [1, "W", 1e12, "y"]})
    talk.request(UPDATE, {SPACE_ID: 512, INDEX_ID: 0, KEY: [2], TUPLE: [["=", 1, "R"]]})
    talk("ann", "stats")
    talk.request(DELETE, {SPACE_ID: 512, INDEX_ID: 0, KEY: [2]})
    talk("ann", "stats")
    talk("ann", "put", "x", named="x")
    talk("ann", "take")
    for side in talk.sides:
        side.client("ann").call("box.space.queue:truncate")
    talk("ann", "stats")
    talk("ann", "ack", Named("x"))


@pytest.mark.parametrize(("index", "key"), [(0, []), (1, []), (1, ["R"]), (1, ["W"]), (2, [0]), (2, [])])
def test_a_client_reads_the_space_by_every_index(talk: Conversation, index: int, key: list[object]) -> None:
    for number in range(6):
        insert(talk, [number, "RTW"[number % 3], [0, 1e12][number % 2], "x"])
    for iterator in range(7):
        body = {SPACE_ID: 512, INDEX_ID: index, LIMIT: 100, OFFSET: 0, ITERATOR: iterator, KEY: key}
        talk.request(SELECT, body)


def insert(talk: Conversation, row: list[Any]) -> None:
    """Insert a task directly, without the procedures."""
    for side in talk.sides:
        side.ids["x"] = row[0]
    talk.request(INSERT, {SPACE_ID: 512, TUPLE: row})


@pytest.mark.parametrize("procedure", ["ack", "release"])
def test_errors(talk: Conversation, procedure: str) -> None:
    talk("ann", procedure)
    talk("ann", procedure, False)
    talk("ann", procedure, 1)
    talk("ann", procedure, "12")
    talk("ann", procedure, 10**18)
    talk("ann", procedure, -(10**18))
    talk("ann", procedure, 0.5)
    talk("ann", procedure, "not a number")
    talk("ann", "put", "x", named="x")
    talk("ann", procedure, Named("x"))
    talk("ann", "take")
    assert talk("bob", procedure, Named("x"))[1] == "Task <x>ULL taken by <ann>. Not you (<bob>)"
    talk("ann", procedure, Named("x"))
    talk("ann", procedure, Named("x"))
    talk("ann", "no_such_procedure")


def test_a_put_wakes_one_who_waits(talk: Conversation) -> None:
    talk.start("bob", "take", 30)
    talk("ann", "put", "x", named="x")
    assert talk.finish("bob")[0]["id"] == "x"
    talk("ann", "stats")


def test_a_release_wakes_one_who_waits(talk: Conversation) -> None:
    talk("ann", "put", "x", named="x")
    talk("ann", "take")
    talk.start("bob", "take", 30)
    talk("ann", "release", Named("x"))
    assert talk.finish("bob")[0]["id"] == "x"


def test_the_tasks_of_one_who_left_go_to_one_who_waits(talk: Conversation) -> None:
    talk("ann", "put", "x", named="x")
    talk("ann", "take")
    talk.start("bob", "take", 30)
    talk.leave("ann")
    assert talk.finish("bob")[0]["id"] == "x"
    talk("bob", "ack", Named("x"))
    talk("bob", "stats")


@pytest.mark.parametrize("seed", range(5))
def test_any_conversation(talk: Conversation, seed: int) -> None:
    choose = random.Random(seed)
    names: list[str] = []
    for number in range(150):
        who = choose.choice(["ann", "bob", "cid"])
        action = choose.choice(["put", "put", "take", "take", "ack", "release", "stats"])
        if action == "put":
            names.append(f"task {number}")
            delay = [{"delay": choose.randint(1, 9) * WEEK}] if choose.random() < 0.2 else []
            talk(who, "put", number, *delay, named=names[-1])
        elif action in ("ack", "release") and names:
            delay = [{"delay": WEEK}] if action == "release" and choose.random() < 0.3 else []
            # mostly one of the oldest, which may be taken
            name = choose.choice(names[:6] if choose.random() < 0.8 else names)
            answer = talk(who, action, Named(name, as_text=choose.random() < 0.3), *delay)
            if action == "ack" and isinstance(answer, list):
                names.remove(name)
        elif action in ("take", "stats"):
            talk(who, action)
    talk("ann", "stats")
