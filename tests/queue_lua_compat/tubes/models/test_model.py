"""Random sequences of calls to tubes, compared with a model: no task is lost or has two owners.

Clients call, wait, share sessions and disconnect; time passes, the server stops as by a power failure and
starts again, and log writes fail. After each step the tasks, their owners, the waiting calls and their
answers must match the model.

Calls and events of tasks happen at whole seconds, ends of sessions at a quarter, ends of waits at a half,
retries at an eighth of a second, so that the result does not depend on the order of simultaneous events.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from iproto_server import BoxError, ManualClock, Tuple, Waiter
from tests.plugins.profiles import examples
from tests.queue_lua_compat.tubes.models.tube_model import FOR_EVER, RETRY_AFTER, TubeModel, Wait
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer

SECOND = 10**6
TUBE = "queue.tube.t:"

people = st.sampled_from(["ann", "ann", "bob", "bob", "cid"])
places = st.integers(0, 4)
"""Task numbers; taken tasks come first."""

actions = st.sampled_from(["put", "put", "take", "take", "wait", "ack", "release", "bury", "delete", "leave"])
seldom = st.sampled_from([False, False, False, True])
spans = st.integers(1, 12)


class LateJournal:
    """A log whose writes are pending, and may fail."""

    vclock: ClassVar[dict[int, int]] = {}

    def append(self, statements: object) -> bool:
        return True

    def position(self) -> int:
        return 0


class TubeMachine(RuleBasedStateMachine):
    """Clients and a tube, beside the model."""

    kind: ClassVar[str]
    capacities: ClassVar[tuple[int, ...]] = (0,)

    @property
    def has_times(self) -> bool:
        return self.kind != "fifo"

    # -- start and stop --

    @initialize(session_ttr=st.sampled_from([0, 4.25]), in_replicaset=st.booleans(), data=st.data())
    def begin(self, session_ttr: float, in_replicaset: bool, data: st.DataObject) -> None:
        capacity = data.draw(st.sampled_from(self.capacities), "capacity")
        self.settings: dict[str, object] = {"ttr": session_ttr, "in_replicaset": in_replicaset}
        self.server = TubesServer(ManualClock(), self.settings)
        self.model = TubeModel(self.now, capacity, round(session_ttr * SECOND))
        self.server.connect().call("queue.create_tube", "t", self.kind, {"capacity": capacity})
        self.begin_connections()

    def begin_connections(self) -> None:
        self.clients: dict[str, Client] = {}
        self.names: dict[str, str] = {}
        self.sessions: dict[str, str] = {}
        self.waits: list[tuple[Waiter, Wait]] = []
        self.server.box.transactions.journal = LateJournal()

    @rule(down=st.integers(0, 5))
    def the_power_fails(self, down: int) -> None:
        known = dict(self.sessions)
        keeps = bool(self.settings["in_replicaset"] and self.settings["ttr"])
        self.written()
        self.server.clock = ManualClock(self.server.clock.time_ns() + down * 10**9)
        self.server.restart(self.settings)
        self.begin_connections()
        self.sessions = known
        self.model.restart(self.now, keeps_sessions=keeps)
        self.model.happen()

    # -- calls --

    @rule(
        who=people,
        pri=st.integers(0, 2),
        ttl=spans | st.none(),
        ttr=spans | st.none(),
        delay=st.integers(0, 5),
        timeout=st.sampled_from([0, 0, 3.5]),
    )
    def put(self, who: str, pri: int, ttl: int | None, ttr: int | None, delay: int, timeout: float) -> None:
        options = {"pri": pri, "delay": delay, "timeout": timeout}
        options |= {name: span for name, span in (("ttl", ttl), ("ttr", ttr)) if span is not None}
        if not self.has_times:
            pri, ttl, ttr, delay = 0, None, None, 0
        life = FOR_EVER if ttl is None else ttl * SECOND
        run = FOR_EVER if ttr is None else ttr * SECOND
        wait = round(timeout * SECOND) if self.model.capacity else 0
        expected = self.model.put(self.name(who), "data", pri, life, run, delay * SECOND, wait)
        self.calls(who, expected, "put", "data", options)

    @rule(who=people)
    def put_work(self, who: str) -> None:
        self.put(who, 0, None, None, 0, 0)

    @precondition(lambda self: self.has_times)
    @rule(who=people, delay=st.integers(0, 2))
    def put_work_for_a_while(self, who: str, delay: int) -> None:
        self.put(who, 1, 8, 3, delay, 0)

    @precondition(lambda self: self.model.capacity)
    @rule(who=people)
    def put_work_and_wait_for_room(self, who: str) -> None:
        self.put(who, 0, None, None, 0, 9.5)

    @rule(who=people)
    def take_work(self, who: str) -> None:
        self.take(who, 0)

    @rule(who=people, timeout=st.sampled_from([2.5, 7.5]))
    def take(self, who: str, timeout: float) -> None:
        expected = self.model.take(self.name(who), round(timeout * SECOND))
        self.calls(who, expected, "take", timeout)

    @rule(who=people, place=places)
    def ack(self, who: str, place: int) -> None:
        number = self.number(place)
        self.calls(who, self.model.ack(self.name(who), number), "ack", number)

    @rule(who=people, place=places, delay=st.integers(0, 5))
    def release(self, who: str, place: int, delay: int) -> None:
        number = self.number(place)
        later = delay * SECOND if self.has_times else 0
        self.calls(
            who, self.model.release(self.name(who), number, later), "release", number, {"delay": delay}
        )

    @rule(who=people, place=places)
    def bury(self, who: str, place: int) -> None:
        number = self.number(place)
        self.name(who)
        self.calls(who, self.model.bury(number), "bury", number)

    @rule(who=people, place=places)
    def delete(self, who: str, place: int) -> None:
        number = self.number(place)
        self.name(who)
        self.calls(who, self.model.delete(number), "delete", number)

    @rule(who=people, count=st.integers(1, 3))
    def kick(self, who: str, count: int) -> None:
        self.name(who)
        self.calls(who, self.model.kick(count), "kick", count)

    @precondition(lambda self: self.has_times)
    @rule(who=people, place=places, longer=spans)
    def touch(self, who: str, place: int, longer: int) -> None:
        number = self.number(place)
        self.calls(who, self.model.touch(self.name(who), number, longer * SECOND), "touch", number, longer)

    @rule(who=people, really=seldom)
    def release_all(self, who: str, really: bool) -> None:
        if not really:
            return
        self.name(who)
        self.model.release_all()
        self.calls(who, None, "release_all")

    @rule(who=people, really=seldom)
    def truncate(self, who: str, really: bool) -> None:
        if not really:
            return
        self.name(who)
        self.model.truncate()
        self.calls(who, None, "truncate")

    # -- sessions --

    @rule(who=people)
    def leave(self, who: str) -> None:
        client, name = self.clients.pop(who, None), self.names.pop(who, None)
        if client is not None and name is not None:
            self.forget_waits(name)
            self.model.leave(name)
            client.close()
            self.model.serve()

    @rule(who=people, data=st.data())
    def identify(self, who: str, data: st.DataObject) -> None:
        name = self.name(who)
        session = data.draw(st.sampled_from(sorted(self.sessions)), "session")
        if session not in self.model.sessions():
            assert self.clients[who].refused("queue.identify", self.sessions[session]).endswith("is unknown.")
        else:
            self.clients[who].call("queue.identify", self.sessions[session])
            self.model.join(name, session)
            self.model.serve()

    # -- time, and the log --

    @rule(seconds=st.integers(1, 15))
    def time_passes(self, seconds: float) -> None:
        self.server.clock.advance(seconds)
        self.model.advance(self.now)

    @rule(doings=st.lists(st.tuples(people, actions, places), max_size=6))
    def the_log_fails(self, doings: list[tuple[str, str, int]]) -> None:
        """Roll back everything since the last write of the log."""
        self.written()
        self.time_passes(0.125)
        self.written()
        before = len(self.waits)
        for who, action, place in doings:
            name = self.names.get(who)
            if name is None:
                continue
            if action == "leave":
                del self.names[who]
                self.forget_waits(name)
                self.model.waits = [wait for wait in self.model.waits if wait.who != name]
                self.clients.pop(who).close()
                self.model.retries.append((self.now + RETRY_AFTER, name))
            else:
                self.tries(who, action, self.number(place))
        self.undo()
        assert all(waiter.is_done for waiter, _ in self.waits[before:])
        for waiter, wait in self.waits:
            if waiter.is_done and wait in self.model.waits:
                self.model.waits.remove(wait)
        self.waits = [(waiter, wait) for waiter, wait in self.waits if not waiter.is_done]
        self.time_passes(0.875)

    @rule(who=people)
    def the_log_fails_when_somebody_leaves(self, who: str) -> None:
        self.the_log_fails([(who, "leave", 0)])

    @precondition(lambda self: not self.model.waits and not self.model.retries)
    @rule(seconds=st.integers(1, 10))
    def the_log_fails_while_time_passes(self, seconds: int) -> None:
        """The due events happen again."""
        self.written()
        self.time_passes(seconds)
        self.undo()
        self.time_passes(3)

    @precondition(lambda self: self.model.ends and not self.model.waits and not self.model.retries)
    @rule()
    def the_log_fails_when_sessions_end(self) -> None:
        self.the_log_fails_while_time_passes(5)

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        if not hasattr(self, "server"):
            return
        self.written()
        self.model.serve()
        for waiter, wait in self.waits:
            assert waiter.is_done == (wait.result != "waits"), wait
            if waiter.is_done:
                assert outcome(partial(result_of, waiter)) == wait.result
        self.waits = [(waiter, wait) for waiter, wait in self.waits if not waiter.is_done]
        assert self.tasks() == self.model.rows(), f"{self.tasks()}\n{self.model.rows()}"
        taken = {row[1]: row[3] for row in self.server.rows("_queue_taken_2")}
        assert taken == {number: self.sessions[owner] for number, owner in self.model.taken().items()}
        known = {row[0] for row in self.server.rows("_queue_shared_sessions")}
        assert known == {self.sessions[session] for session in self.model.sessions()}
        assert len(self.server.rows("_queue_consumers")) == sum(not wait.put for wait in self.model.waits)

    # -- internal --

    @property
    def now(self) -> int:
        return self.server.clock.time_ns() // 1000

    def name(self, who: str) -> str:
        """Return a client's connection, opening it on first use."""
        if who not in self.clients:
            self.clients[who] = self.server.connect()
            session = f"session {len(self.sessions)}"
            self.sessions[session] = self.clients[who].call("queue.identify")
            self.names[who] = f"{who} in {session}"
            self.model.join(self.names[who], session)
            self.written()
        return self.names[who]

    def number(self, place: int) -> int:
        """Return the number of a task, or one that does not exist."""
        tasks = sorted(self.model.tasks, key=lambda number: (self.model.tasks[number].state != "t", number))
        return tasks[place] if place < len(tasks) else place

    def calls(self, who: str, expected: object, method: str, *arguments: object) -> None:
        """Call as a client, and expect an answer."""
        answer = outcome(lambda: self.clients[who].call(TUBE + method, *arguments))
        if isinstance(expected, Wait):
            assert isinstance(answer, Waiter)
            self.waits.append((answer, expected))
        else:
            assert answer == expected
        self.model.serve()

    def tries(self, who: str, action: str, number: int) -> None:
        """Call as a client that will not receive the answer."""
        arguments: dict[str, tuple[object, ...]] = {"put": ("lost",), "take": (0,), "wait": (9.5,)}
        method = "take" if action == "wait" else action
        answer = outcome(lambda: self.clients[who].call(TUBE + method, *arguments.get(action, (number,))))
        if isinstance(answer, Waiter):
            self.waits.append((answer, Wait(who, 0)))

    def forget_waits(self, name: str) -> None:
        self.waits = [(waiter, wait) for waiter, wait in self.waits if wait.who != name]

    def written(self) -> None:
        self.server.box.transactions.take_unwritten()

    def undo(self) -> None:
        transactions = self.server.box.transactions
        transactions.undo(transactions.take_unwritten())

    def tasks(self) -> list[Any]:
        rows = self.server.rows("t")
        if not self.has_times:
            times = {row[0]: row for row in self.model.rows()}
            return [[*row[:2], *times[row[0]][2:6], row[2]] if row[0] in times else row for row in rows]
        return [[*row[:3], row[6] + row[3], row[4], row[5], row[7]] for row in rows]


def outcome(call: Callable[[], object]) -> object:
    """Return a task's id and state, a number, nil, the waiter, or the text of the error."""
    try:
        answer = call()
    except BoxError as error:
        return error.message
    if isinstance(answer, tuple) and not isinstance(answer, Tuple):
        [answer] = answer
    return (answer[0], answer[1]) if isinstance(answer, Tuple) else answer


def result_of(waiter: Waiter) -> object:
    """Return the answer to a call that has waited."""
    if waiter.error is not None:
        raise waiter.error
    return waiter.result


def machine(kind: str, *capacities: int) -> type[TubeMachine]:
    """Create the machine of a type of tubes, with one of these capacities."""
    return type(f"{kind}_machine", (TubeMachine,), {"kind": kind, "capacities": capacities})


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize(
    ("kind", "capacities"), [("fifo", (0,)), ("fifottl", (0,)), ("limfifottl", (0, 1, 2))], ids=str
)
def test_a_tube_does_what_its_model_does(kind: str, capacities: tuple[int, ...]) -> None:
    run_state_machine_as_test(machine(kind, *capacities), settings=examples(20, stateful_step_count=40))
