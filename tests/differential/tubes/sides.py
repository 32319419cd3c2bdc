"""A server of tubes and its clients."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.differential.tubes.conversation import HOUR, TUBE, WAITING, SessionOf, Step
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE, Answer, IprotoClient

_PLACE: Final = re.compile(r"^\S+\.lua:\d+: ")
"""Lua's errors begin with a position in the source."""

_ADDRESS: Final = re.compile(r"0x[0-9a-f]{4,}")

_SPACES: Final = ("_queue_taken_2", "_queue_consumers", "_queue_session_ids", "_queue_shared_sessions")
_POLLS: Final = 20_000

Outcome = tuple[str, object]
"""An answer, with names instead of values that differ between the servers."""


class Side:
    """One of the servers.

    Parameters:
        host: The server's address.
        port: The server's port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._people: dict[str, IprotoClient] = {}
        self._connections: dict[int, str] = {}
        self._sessions: dict[str, str] = {}
        self._early: dict[str, Answer] = {}
        self.connect(host, port)

    def connect(self, host: str, port: int) -> None:
        """Connect to a server that has the data of the last one.

        Parameters:
            host: The server's address.
            port: The server's port.
        """
        self._where = (host, port)
        self._operator = IprotoClient(host, port)

    def lose_connections(self) -> None:
        """Forget all connections, since the server has ended."""
        self.close()
        self._people.clear()
        self._connections.clear()
        self._early.clear()

    # -- clients --

    def do(self, step: Step) -> Outcome | None:
        """Make a client's call.

        Returns:
            The answer; None where there is none (yet).
        """
        if step.action == "leave":
            self.leave(step.who)
            return None
        client = self._client(step.who)
        arguments = [self._own(argument) for argument in step.arguments]
        if step.action == "wait":
            client.send(CALL, {FUNCTION_NAME: f"queue.tube.{TUBE}:take", TUPLE: [WAITING]})
            self._pass(client, step.who)
            return None
        prefix = "" if step.action.startswith("queue.") else f"queue.tube.{TUBE}:"
        return self._outcome(client.call(prefix + step.action, *arguments))

    def answer_to(self, who: str) -> Outcome:
        """Return the answer to a waiting call."""
        early = self._early.pop(who) if who in self._early else None
        return self._outcome(self._people[who].receive() if early is None else early)

    def leave(self, who: str) -> None:
        """Close a client's connection, and wait until the server has noticed."""
        client = self._people.pop(who, None)
        if client is None:
            return
        [number] = [number for number, name in self._connections.items() if name == who]
        client.close()
        self._early.pop(who, None)
        self._connections[number] = f"{who}, who left"
        for _ in range(_POLLS):
            if not self._is_known(number):
                return
        raise AssertionError(f"{self._where}: connection {number} is still there")

    def leave_all(self) -> None:
        """Close the connections of all clients, and wait until the server has noticed."""
        for who in list(self._people):
            self.leave(who)

    def waiting(self) -> set[str]:
        """Return the clients that wait for a task."""
        return {self._connections[row[0]] for row in self._select("_queue_consumers")}

    # -- all that can be seen --

    def look(self) -> dict[str, object]:
        """The tubes, their tasks, the sessions: with names for what differs, and times in hours."""
        return {
            "tubes": self._select("_queue"),
            "tasks": self._tasks(),
            "taken": [[row[0], row[1], self._named(row[3])] for row in self._select("_queue_taken_2")],
            "waiting": sorted(self.waiting()),
            "sessions": sorted(
                [self._connections[row[0]], self._named(row[1])]
                for row in self._select("_queue_session_ids")
                if row[0] in self._connections
            ),
            "shared sessions": sorted(
                [self._named(row[0]), row[2], row[1] > 0] for row in self._select("_queue_shared_sessions")
            ),
            "statistics": self._outcome(self._operator.call("queue.statistics", TUBE)),
        }

    def begin(self, kind: object, options: object) -> None:
        """Create a tube, without anything else."""
        self._operator.call("queue.create_tube", TUBE, kind, options)

    def clear(self) -> None:
        """Close all clients, and drop the tube."""
        self.leave_all()
        for space in _SPACES:
            self._operator.call(f"box.space.{space}:truncate")
        self._operator.call(f"queue.tube.{TUBE}:drop")
        # the remains of a tube that could not be created
        self._operator.call(f"box.space.{TUBE}:drop")
        assert self._operator.call("queue.cfg", {"ttr": 0, "in_replicaset": False}).ok
        assert self._select("_queue") == []
        self._connections.clear()
        self._sessions.clear()

    def call(self, procedure: str) -> None:
        """Call a procedure, which must succeed."""
        answer = self._operator.call(procedure)
        assert answer.ok, answer

    def close(self) -> None:
        """Close all connections."""
        for client in (*self._people.values(), self._operator):
            client.close()

    # -- internal --

    def _client(self, who: str) -> IprotoClient:
        if who not in self._people:
            self._people[who] = client = IprotoClient(*self._where)
            [number] = client.call("box.session.id").data
            self._connections[number] = who
            self._sessions[client.call("queue.identify").data[0]] = f"session {len(self._sessions)} of {who}"
        return self._people[who]

    def _pass(self, client: IprotoClient, who: str) -> None:
        """Make sure that the server has received a client's request."""
        last = client.send(CALL, {FUNCTION_NAME: "box.session.id", TUPLE: []})
        while (answer := client.receive()).sync != last:
            self._early[who] = answer

    def _own(self, argument: object) -> object:
        if isinstance(argument, SessionOf):
            [session_uuid] = self._client(argument.who).call("queue.identify").data
            return session_uuid.encode("utf-8", "surrogateescape")
        return argument

    def _is_known(self, connection: int) -> bool:
        """Whether the queue still has state of a connection."""
        rows = [*self._select("_queue_session_ids"), *self._select("_queue_consumers")]
        return any(row[0] == connection for row in rows)

    def _select(self, space: str) -> list[Any]:
        rows: list[Any] = without_addresses(self._operator.call(f"box.space.{space}:select").data[0])
        return rows

    def _tasks(self) -> object:
        answer = self._operator.call(f"box.space.{TUBE}:select")
        if not answer.ok:
            return answer.failure
        return [_without_moments(row) for row in without_addresses(answer.data[0])]

    def _named(self, value: object) -> object:
        return self._sessions.get(value, value) if isinstance(value, str) else value

    def _outcome(self, answer: Answer) -> Outcome:
        if answer.ok:
            return "answer", [self._named(value) for value in without_addresses(answer.data)]
        text = _PLACE.sub("", answer.error or "")
        return "error", (answer.error_code, without_addresses(text))


def without_addresses(value: Any) -> Any:
    """A value in whose texts tables and functions of Lua have no addresses."""
    match value:
        case str():
            return _ADDRESS.sub("ADDRESS", value)
        case list():
            return [without_addresses(each) for each in value]
        case dict():
            return {without_addresses(key): without_addresses(each) for key, each in value.items()}
    return value


def _without_moments(row: list[Any]) -> list[Any]:
    """A task with the moment of its next event in hours since it was put, and without that moment itself."""
    if len(row) < 8:
        return row
    hours = round((row[2] - row[6]) / 1e6 / HOUR) if row[2] < 2**64 - 1 else None
    return [*row[:2], hours, *row[3:6], *row[7:]]
