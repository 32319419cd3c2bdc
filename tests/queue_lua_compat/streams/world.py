"""A queue, its clients and the model, and calls whose answers are compared."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from iproto_server import BoxError, ErrorCode, ManualClock, Tuple, Waiter
from iproto_server.box.txn.interactive_transaction import InteractiveTransaction
from tests.queue_lua_compat.slow_journal import SlowJournal
from tests.queue_lua_compat.streams.dialects import DIALECTS, Dialect
from tests.queue_lua_compat.streams.model import SECOND, Model, Refused, Waiting

DELAYS: Final = (0, 0, 0, 1.137, 9.137)
LIVES: Final = (0, 0, 0, 3.2291, 12.2291)
TIMES_TO_RUN: Final = (0, 0, 1.0713, 5.0713)
WAITS: Final = (0.3117, 4.3117)
TIMEOUTS: Final = (0, 0, 0, 0.7719, 2.7719)
"""Seconds. Clients act at multiples of half a second, so that nothing becomes due at the same
time."""
SPACES: Final = {"tutorial": "queue", "legacy": "queue_0"}
"""The space of tasks for queues without the tube `jobs`, by the kind of queue."""
_ENDED: Final = (ErrorCode.TRANSACTION_CONFLICT, ErrorCode.TRANSACTION_TIMEOUT, ErrorCode.TRANSACTION_YIELD)


class World:
    """A queue, its clients, and the model.

    Parameters:
        kind: the kind of queue, from `DIALECTS`.
        seed: the seed of all random choices.

    Attributes:
        log: the events, to find the cause of a finding.
        counts: the numbers of events.
    """

    def __init__(self, kind: str, seed: int) -> None:
        self._random = random.Random(f"{kind} {seed}")
        self.clock = ManualClock()
        self.journal = SlowJournal()
        self.dialect = DIALECTS[kind](self.clock, self.journal)
        self.box = self.dialect.box
        self.model = Model(self.clock.time_ns(), kind not in ("tutorial", "legacy"))
        self._order_by_call = kind == "legacy"
        self.clients: list[Client] = []
        self._waiting: list[tuple[Waiter, Waiting]] = []
        self._number = 0
        self._given_back_at = 0
        self.log: list[str] = []
        self.counts: dict[str, int] = {}
        self._fails = False
        self._space = SPACES.get(kind, "jobs")
        self._set_sabotage()
        for _ in range(3):
            self._connect()

    def _set_sabotage(self) -> None:
        """Set a trigger of another application, before or after the queue's own."""
        triggers = self.box.catalog.space_by_name(self._space).on_replace
        if self._random.random() < 0.5:
            triggers.functions = (self._sabotage, *triggers.functions)
        else:
            triggers.functions = (*triggers.functions, self._sabotage)

    def _sabotage(self, old: Tuple | None, new: Tuple | None) -> None:
        if self._fails:
            raise Failure

    # -- calls --

    def _do(self, client: Client, call: Callable[..., Any]) -> Done:
        """Let a client make a random call."""
        what = self._random.choice(
            ("put", "put", "take", "take", "take_many", "ack", "ack", "ack_many", "change")
        )
        delay = self._random.choice(DELAYS) if self.dialect.has_delays else 0
        if what == "put":
            self._number += 1
            ttl, ttr = 0.0, 0.0
            if self.dialect.has_times:
                ttl, ttr = self._random.choice(LIVES), self._random.choice(TIMES_TO_RUN)
            data = f"data {self._number}"
            arguments: tuple[Any, ...] = (self._number, data, delay, ttl, ttr)
            name, *given = self.dialect.put(data, delay, ttl, ttr)
        elif what in ("take", "take_many"):
            count = self._random.randint(1, 3)
            arguments = () if what == "take" else (count,)
            name, *given = self.dialect.take(0) if what == "take" else self.dialect.take_many(count)
        elif what == "ack_many":
            ids = [self._any_id(client) for _ in range(self._random.randint(1, 3))]
            arguments = (ids,)
            name, *given = self.dialect.ack_many(ids)
        else:
            operation = (
                "ack"
                if what == "ack"
                else self._random.choice(("release", *self.dialect.operations, "delete"))
            )
            task_id = self._any_id(client)
            arguments = (operation, task_id, delay if operation == "release" else 0)
            what = "change"
            name, *given = self.dialect.change(*arguments)
        try:
            answer = call(self.dialect.function(name), *given)
        except BoxError as error:
            if error.code in _ENDED:
                raise
            return Done(what, self.model.now, arguments, None)
        if what == "change":
            # The tutorial's clients delete from the space: a missing task is no error.
            return Done(what, self.model.now, arguments, None if answer is None else [arguments[1]])
        many = answer if what in ("take_many", "ack_many") else [answer]
        return Done(what, self.model.now, arguments, self._ids(many))

    def _ids(self, answers: Any) -> list[Any]:
        return [self.dialect.task(answer)[0] for answer in answers or () if answer is not None]

    def _plainly(self, client: Client, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.box.run(client.session, function, self.box, *arguments)

    def _inside(self, client: Client, stream: Stream, function: Callable[..., Any], *arguments: Any) -> Any:
        """Do as the server does for a request of a stream's transaction."""
        assert stream.transaction is not None
        self.box.interactive.resume(stream.transaction)
        try:
            return self.box.run_inside(client.session, function, self.box, *arguments)
        finally:
            stream.transaction = self.box.interactive.suspend()

    def _repeat(self, who: str, done: Done) -> None:
        """Apply a committed transaction to the model."""
        self._count(done.what)
        model = self.model
        expected: list[Any] | None
        try:
            if done.what == "put":
                number, data, *seconds = done.arguments
                assert done.answer is not None
                [task_id] = done.answer
                delay, ttl, ttr = (round(each * SECOND) for each in seconds)
                place = number if self._order_by_call else task_id
                model.put(done.at, task_id, data, delay, ttl, ttr, place)
                expected = [task_id]
            elif done.what == "take":
                expected = model.take(done.at, who)
            elif done.what == "take_many":
                expected = model.take(done.at, who, *done.arguments)
            elif done.what == "ack_many":
                [expected] = done.arguments
                before = copy.deepcopy(model.tasks)
                try:
                    for task_id in expected:
                        model.change(done.at, who, "ack", task_id, 0)
                except Refused:
                    model.tasks = before
                    raise
            else:
                operation, task_id, delay = done.arguments
                model.change(done.at, who, operation, task_id, round(delay * SECOND))
                expected = [task_id]
        except Refused:
            expected = None
        if expected != done.answer:
            raise Finding(f"{who}: {done.what}{done.arguments} was answered {done.answer}, not {expected}")

    # -- invariants --

    def _check(self) -> None:
        for waiter, waiting in self._waiting:
            if waiter.is_done != waiting.is_done:
                raise Finding(f"{waiting.who} waits: {not waiter.is_done}, not {not waiting.is_done}")
            if waiter.is_done:
                found = self._ids([waiter.result])
                if waiter.error is not None or found != ([] if waiting.answer is None else [waiting.answer]):
                    raise Finding(f"{waiting.who} was given {found} {waiter.error}, not {waiting.answer}")
        self._waiting = [pair for pair in self._waiting if not pair[0].is_done]
        rows = self.dialect.rows()
        expected = {task.id: (task.status, task.data) for task in self.model.tasks.values()}
        if rows != expected:
            raise Finding(f"tasks: {_difference(rows, expected)}")
        sessions = {client.name: client.session.id for client in self.clients}
        owners = {
            task.id: sessions[task.owner] for task in self.model.tasks.values() if task.owner is not None
        }
        if self.dialect.owners() != owners:
            raise Finding(f"owners: {_difference(self.dialect.owners(), owners)}")

    # -- random choices --

    def _any_client(self) -> Client:
        return self._random.choice(self.clients)

    def _any_stream(self) -> tuple[Client, Stream] | None:
        streams = [(client, stream) for client in self.clients for stream in client.streams]
        return self._random.choice(streams) if streams else None

    def _any_id(self, client: Client) -> Any:
        """Choose a task, mostly one that the client has taken, also in an open stream."""
        tasks = sorted(self.model.tasks.values(), key=lambda task: task.place)
        mine = [task.id for task in tasks if task.owner == client.name]
        for stream in client.streams:
            mine += [
                task_id
                for done in stream.done
                if done.what.startswith("take")
                for task_id in done.answer or ()
            ]
        some = mine if mine and self._random.random() < 0.7 else [task.id for task in tasks]
        return self._random.choice(some) if some else self.dialect.no_task

    def _connect(self) -> None:
        self._number += 1
        self.clients.append(Client(self.dialect, f"client {self._number}"))

    def _tell(self, what: str) -> None:
        self.log.append(what)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


class Finding(Exception):
    """The queue and the model differ."""


@dataclass
class Done:
    """An operation of a transaction: the call, its time, and its answer."""

    what: str
    at: int
    arguments: tuple[Any, ...]
    answer: Any
    """The ids of the tasks; None for a refusal."""


@dataclass(eq=False)
class Stream:
    """A client's stream with an open transaction."""

    number: int
    transaction: InteractiveTransaction | None
    done: list[Done] = field(default_factory=list)

    @property
    def is_writer(self) -> bool:
        """Whether it has changed something: one that has only read may have seen an older state."""
        return self.transaction is not None and bool(self.transaction.statements)


class Client:
    """A connection."""

    def __init__(self, dialect: Dialect, name: str) -> None:
        self.name = name
        self.session = dialect.box.session.open("binary", "127.0.0.1:50000", user="admin")
        self.streams: list[Stream] = []
        dialect.connected(self.session)


class Failure(Exception):
    """What a procedure raises that fails."""


def _difference(found: dict[Any, Any], expected: dict[Any, Any]) -> str:
    """Return the differences of two dicts."""
    lines = [
        f"{key} is {found.get(key)}, not {expected.get(key)}"
        for key in {**found, **expected}
        if found.get(key) != expected.get(key)
    ]
    return "; ".join(lines)
