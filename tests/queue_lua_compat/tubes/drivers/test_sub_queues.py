"""Random sequences of calls to tubes of sub-queues, compared with a model: order, no loss, one owner.

Clients put, take, wait, make bulk calls and disconnect; time passes, the server stops as by a power failure
and starts again, code is reloaded, and transactions and log writes fail. After each step the tasks, their
owners, the waiting calls, the heads and the answers must match the
model.

Events of tasks happen at whole seconds and ends of waits at halves, so that the result does not depend on the
order of simultaneous events.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
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
from queue_lua_compat.tubes.drivers.sub_queues import SubQueues
from tests.plugins.profiles import examples
from tests.queue_lua_compat.tubes.models.sub_queue_model import FOR_EVER, SubQueueModel, Wait
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer

SECOND = 10**6
NOT_TAKEN = "Task was not taken"

people = st.sampled_from(["ann", "bob", "cid"])
utubes = st.sampled_from(["a", "b", "c"])
numbers = st.integers(0, 6)
spans = st.integers(1, 12)
doings = st.lists(
    st.tuples(
        people,
        st.sampled_from(["put", "take", "ack", "release", "bury", "delete", "kick", "truncate"]),
        numbers,
    ),
    max_size=8,
)


class SubQueueMachine(RuleBasedStateMachine):
    """Clients and a tube, beside the model."""

    kind: ClassVar[str]
    mode: ClassVar[str]

    @property
    def has_times(self) -> bool:
        return self.kind == "utubettl"

    @initialize()
    def begin(self) -> None:
        self.server = TubesServer(ManualClock())
        self.server.connect().call("queue.create_tube", "t", self.kind, {"storage_mode": self.mode})
        self.model = SubQueueModel(self.now)
        self.clients: dict[str, Client] = {}
        self.waits: list[tuple[Waiter, Wait]] = []

    # -- calls --

    @rule(
        who=people, utube=utubes, pri=st.integers(0, 2), ttl=spans | st.none(), ttr=spans | st.none(),
        delay=st.sampled_from([0, 0, 1, 5]), copies=st.sampled_from([0, 0, 2]),
    )  # fmt: skip
    def put(
        self, who: str, utube: str, pri: int, ttl: int | None, ttr: int | None, delay: int, copies: int
    ) -> None:
        options: dict[str, object] = {"utube": utube}
        if self.has_times:
            options |= {"pri": pri, "delay": delay}
            options |= {name: span for name, span in (("ttl", ttl), ("ttr", ttr)) if span is not None}
        else:
            pri, ttl, ttr, delay = 0, None, None, 0
        life = FOR_EVER if ttl is None else ttl * SECOND
        run = FOR_EVER if ttr is None else ttr * SECOND
        expected = [self.model.put(utube, pri, life, run, delay * SECOND) for _ in range(copies or 1)]
        if copies:
            self.expect(expected, who, "put_many", [["data", options]] * copies)
        else:
            self.expect(expected[0], who, "put", "data", options)

    @rule(who=people, timeout=st.sampled_from([0, 0, 2.5, 7.5]))
    def take(self, who: str, timeout: float) -> None:
        number = self.model.take(who)
        self.expect(
            self.wait(who, timeout, None) if number is None and timeout else number, who, "take", timeout
        )

    @rule(who=people, most=st.integers(1, 4), timeout=st.sampled_from([0, 0, 2.5, 7.5]))
    def take_many(self, who: str, most: int, timeout: float) -> None:
        taken = self.model.take_many(who, most)
        expected = taken or (self.wait(who, timeout, most) if timeout else None)
        self.expect(expected, who, "take_many", most, timeout)

    @rule(who=people, number=numbers)
    def ack(self, who: str, number: int) -> None:
        if self.model.has(who, number):
            del self.model.tasks[number]
            self.expect(number, who, "ack", number)
        else:
            self.expect(NOT_TAKEN, who, "ack", number)

    @rule(who=people, chosen=st.lists(numbers, min_size=1, max_size=3))
    def ack_many(self, who: str, chosen: list[int]) -> None:
        wrong = [
            number
            for place, number in enumerate(chosen)
            if not self.model.has(who, number) or number in chosen[:place]
        ]
        if not wrong:
            for number in chosen:
                del self.model.tasks[number]
        self.expect(f"task {wrong[0]}: {NOT_TAKEN}" if wrong else chosen, who, "ack_many", chosen)

    @rule(who=people, delay=st.sampled_from([0, 0, 3]), number=numbers)
    def release(self, who: str, number: int, delay: int) -> None:
        if not self.model.has(who, number):
            self.expect(NOT_TAKEN, who, "release", number)
            return
        self.model.release(number, delay * SECOND if self.has_times else 0)
        self.expect(number, who, "release", number, {"delay": delay})

    @rule(who=people, number=numbers, method=st.sampled_from(["bury", "delete"]))
    def remove(self, who: str, number: int, method: str) -> None:
        if number not in self.model.tasks:
            self.expect(f"Task {number} not found", who, method, number)
            return
        if method == "bury":
            self.model.bury(number)
        else:
            del self.model.tasks[number]
        self.expect(number, who, method, number)

    @rule(who=people, count=st.integers(1, 3))
    def kick(self, who: str, count: int) -> None:
        self.expect(self.model.kick(count), who, "kick", count)

    @precondition(lambda self: self.has_times)
    @rule(who=people, number=numbers, longer=spans)
    def touch(self, who: str, number: int, longer: int) -> None:
        if self.model.has(who, number):
            self.model.touch(number, longer * SECOND)
            self.expect(number, who, "touch", number, longer)
        else:
            self.expect(NOT_TAKEN, who, "touch", number, longer)

    @rule(who=people, method=st.sampled_from(["release_all", "truncate"]))
    def clear(self, who: str, method: str) -> None:
        if method == "truncate":
            if any(task.state == "t" for task in self.model.tasks.values()):
                return  # as in the module, the former owners keep the ids
            self.model.tasks.clear()
        else:
            self.model.release_of("ann", "bob", "cid")
        self.expect(None, who, method)

    # -- events --

    @rule(who=people)
    def leave(self, who: str) -> None:
        client = self.clients.pop(who, None)
        if client is not None:
            self.waits = [(waiter, wait) for waiter, wait in self.waits if wait.who != who]
            self.model.waits = [wait for wait in self.model.waits if wait.who != who]
            self.model.release_of(who)
            client.close()

    @rule(seconds=st.integers(1, 15))
    def time_passes(self, seconds: int) -> None:
        self.server.clock.advance(seconds)
        self.model.advance(self.now)

    @rule(down=st.integers(0, 5))
    def the_power_fails(self, down: int) -> None:
        self.server.clock = ManualClock(self.server.clock.time_ns() + down * 10**9)
        self.server.restart()
        self.clients, self.waits, self.model.waits = {}, [], []
        self.model.now = self.now
        self.model.release_of("ann", "bob", "cid")

    @rule()
    def new_code_is_loaded(self) -> None:
        self.server.reload()

    @rule(who=people, doings=doings)
    def a_transaction_fails(self, who: str, doings: list[tuple[str, str, int]]) -> None:
        client = self.client(who)

        def procedure() -> None:
            for _, method, number in doings:
                self.tries(self.server.tube("t"), method, number)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            self.server.box.run(client.session, procedure)

    @precondition(lambda self: not self.model.waits)
    @rule(doings=doings)
    def the_log_fails(self, doings: list[tuple[str, str, int]]) -> None:
        """Roll back everything since the last write of the log."""
        before = deepcopy(self.model)
        clients = {who: self.client(who) for who, _, _ in doings}
        self.server.journal.is_slow = True
        for who, method, number in doings:
            self.server.box.run(clients[who].session, self.tries, self.server.tube("t"), method, number)
        self.server.lose_log()
        self.server.clock.advance(0)
        self.model = before

    # -- invariants --

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        if not hasattr(self, "server"):
            return
        self.model.happen()
        for waiter, wait in self.waits:
            assert waiter.is_done == (wait.result != "waits"), wait
            if waiter.is_done:
                assert outcome(lambda: waiter.result) == wait.result  # noqa: B023  # it is called at once
        self.waits = [(waiter, wait) for waiter, wait in self.waits if not waiter.is_done]
        assert self.rows() == self.model.rows(has_times=self.has_times)
        owners = {client.call("queue.identify"): who for who, client in self.clients.items()}
        assert {row[1]: owners[row[3]] for row in self.server.rows("_queue_taken_2")} == {
            number: task.owner for number, task in self.model.tasks.items() if task.state == "t"
        }
        driver = self.server.tube("t").raw
        assert isinstance(driver, SubQueues)
        assert len(driver.heads) == len(self.model.heads())
        if self.mode == "ready_buffer":
            tasks = self.model.tasks
            assert [row[:2] for row in self.server.rows("t_ready_buffer")] == [
                [number, tasks[number].utube] for number in sorted(self.model.heads())
            ]

    # -- internal --

    @property
    def now(self) -> int:
        return self.server.clock.time_ns() // 1000

    def client(self, who: str) -> Client:
        """Return a client's connection, opening it on first use."""
        if who not in self.clients:
            self.clients[who] = self.server.connect()
            self.clients[who].call("queue.identify")
        return self.clients[who]

    def wait(self, who: str, timeout: float, most: int | None) -> Wait:
        wait = Wait(who, self.now + round(timeout * SECOND), most)
        self.model.waits.append(wait)
        return wait

    def expect(self, expected: object, who: str, method: str, *arguments: object) -> None:
        """Call as a client, and expect the ids of tasks."""
        client = self.client(who)
        answer = outcome(lambda: client.call(f"queue.tube.t:{method}", *arguments))
        if isinstance(expected, Wait):
            assert isinstance(answer, Waiter)
            self.waits.append((answer, expected))
        else:
            assert answer == expected

    def tries(self, tube: Any, method: str, number: int) -> None:
        """Call as a client; the result will be rolled back."""
        arguments: dict[str, tuple[object, ...]] = {
            "put": ("lost", {"utube": "abc"[number % 3]}), "take": (0,), "kick": (2,), "truncate": (),
        }  # fmt: skip
        outcome(lambda: getattr(tube, method)(*arguments.get(method, (number,))))

    def rows(self) -> list[list[Any]]:
        rows = self.server.rows("t")
        if not self.has_times:
            return [row[:3] for row in rows]
        return [[row[0], row[1], row[7], row[2], row[6] + row[3], row[4], row[5]] for row in rows]


def outcome(call: Callable[[], object]) -> object:
    """Return the answer, with ids in place of tasks, or the text of the error."""
    try:
        answer = call()
    except BoxError as error:
        return error.message
    if isinstance(answer, Tuple):
        return answer[0]
    return [task[0] for task in answer] if isinstance(answer, list) else answer


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize("mode", ["default", "ready_buffer"])
@pytest.mark.parametrize("kind", ["utube", "utubettl"])
def test_a_tube_does_what_its_model_does(kind: str, mode: str) -> None:
    machine = type("Machine", (SubQueueMachine,), {"kind": kind, "mode": mode})
    run_state_machine_as_test(machine, settings=examples(25, stateful_step_count=30))
