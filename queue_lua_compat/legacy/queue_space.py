"""A space with tubes of the legacy queue: its tasks, their owners, waiting calls, and due times."""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any, Final

from iproto_server import (
    STILL_WAITING,
    Box,
    BoxError,
    DueTimer,
    IteratorType,
    Space,
    Tuple,
    Waiter,
    WaitQueue,
)
from queue_lua_compat.legacy.space_rows import tubes_of
from queue_lua_compat.legacy.statistics import Statistics
from queue_lua_compat.legacy.task import (
    BURIED,
    CBURY,
    CID,
    CREATED,
    CTAKEN,
    DELAYED,
    ID,
    IPRI,
    MICROSECONDS,
    MIDDLE_IPRI,
    NEXT_EVENT,
    PRI,
    READY,
    STATUS,
    STATUSES,
    TAKEN,
    TTL,
    TTR,
    TUBE,
    Row,
    Task,
    end_of,
    task_of,
)
from queue_lua_compat.legacy.tube_times import TubeTimes
from queue_lua_compat.long_calls import TAKES, WOKEN_MAX, take_steps
from queue_lua_compat.policies.attempts import Cause
from queue_lua_compat.policies.failures import Failure
from queue_lua_compat.policies.options import QUEUE_OPTIONS, ReleaseLimitPolicy
from queue_lua_compat.policies.queue_policy import DEAD_LETTERS, QueuePolicy
from queue_lua_compat.policies.stored_policies import stored_policies
from queue_lua_compat.task_owners import TaskOwners

logger = logging.getLogger("queue_lua_compat.legacy")

_WAIT_QUEUES_MAX: Final = 1000


class QueueSpace:
    """One space of tubes.

    Parameters:
        box: the box.
        space: the space.
        label: the name of the space in statistics.
        statistics: the counters.
        kept: state that survives reloads; empty for a new space, and after the start.

    Attributes:
        owners: the sessions that own taken tasks.
        due_timer: the timer for the next due time.
        wait_queues: the waiting calls, by tube.
        times: the durations of tasks, by tube.
        policies: the policies of tubes that have one, or that operators have looked at.
    """

    def __init__(
        self, box: Box, space: Space, label: str, statistics: Statistics, kept: dict[str, Any]
    ) -> None:
        self._box = box
        self.space = space.beyond_memory_limit()  # inserts are limited
        self.label = label
        self.statistics = statistics
        self.in_order = self.space.index["tube"]
        self._is_new = not kept
        self.kept = kept
        self.owners = TaskOwners(box, self._give_back, kept)
        self.due_timer = DueTimer(box, self._process_due, f"tasks of the space {space.name}")
        self.wait_queues: dict[str, WaitQueue] = kept.setdefault("lines", {})
        self._wait_queues_max = _WAIT_QUEUES_MAX
        self.times = TubeTimes(box, kept)
        self.policies: dict[str, QueuePolicy] = {}
        kept.setdefault("last_created", 0)

    # -- start and stop --

    def start(self) -> None:
        """Scan the tasks, unless a reload has kept their state, and set the triggers and the timer."""
        for tube in stored_policies(self._box, f"{self.space.name}/"):
            self.policy_of(tube)
        if self._is_new:
            self._scan()
        for tube, line in self.wait_queues.items():
            line.resume_with(partial(self.take, tube))
        self.space.on_replace(self._changed, undo=self._undone)
        self.due_timer.begin()

    def _scan(self) -> None:
        """Release tasks that were taken before a restart, and find the newest creation time."""
        for tube in list(tubes_of(self.space)):
            taken = list(self.in_order.pairs([tube, TAKEN]))
            for row in taken:
                self.make_ready(row)
                self.statistics.count(self.label, tube, "ready_by_restart")
            if taken:
                logger.info("released tasks of tube %s at start: %d", tube, len(taken))
            for status in STATUSES:
                self._see_newest(tube, status)

    def renamed(self, before: str) -> None:
        """Keep the policies of the tubes under the new name of the space.

        Parameters:
            before: the name before.
        """
        for tube in stored_policies(self._box, f"{before}/"):
            self.policies[tube].rename(f"{before}/", f"{self.space.name}/")

    def stop(self) -> None:
        """Cancel the timer of a dropped space; waiting calls get an error."""
        self.due_timer.set(math.inf)
        for line in self.wait_queues.values():
            line.wake(len(line))

    def detach(self) -> None:
        """Remove the triggers."""
        self.space.on_replace(None, self._changed)

    def _see_newest(self, tube: str, status: str) -> None:
        """Ensure that new tasks come after existing ones, even if the clock has stepped back."""
        usual = [tube, status, MIDDLE_IPRI]
        row = self.in_order.first(usual)
        while row is not None and list(row[TUBE : STATUS + 1]) == usual[:2] and row[IPRI] == MIDDLE_IPRI:
            priority = [*usual, row[PRI]]
            newest = self.in_order.max(priority)
            assert newest is not None
            self.kept["last_created"] = max(self.kept["last_created"], newest[CREATED])
            row = next(self.in_order.pairs(priority, iterator="GT"), None)

    # -- time --

    def now(self) -> int:
        """Return the time in microseconds since 1970, rounded up, as timers may fire slightly early."""
        return -(-self._box.clock.time_ns() // 1000)

    def creation(self, now: int) -> int:
        """Return the creation time of a new task: later than that of all tasks before."""
        created: int = max(now, self.kept["last_created"] + 1)
        self.kept["last_created"] = created
        return created

    # -- tasks --

    def take(self, tube: str, count: int | None = None) -> object:
        """Take the first ready tasks for the current session.

        Parameters:
            tube: the tube.
            count: the maximum number; None for one task, not in a list.

        Returns: the task, or the tasks; `STILL_WAITING` if there is none.
        """
        if count is None:
            return self._take_first(tube) or STILL_WAITING
        steps = take_steps(partial(self._take_first, tube), min(count, WOKEN_MAX))
        return self._box.in_one_slice(steps) or STILL_WAITING

    def take_many(self, tube: str, count: int) -> list[Task] | Waiter:
        """Take up to `count` ready tasks, in slices. Returns: the tasks, or a waiter for them."""
        return self._box.in_slices(take_steps(partial(self._take_first, tube), count), size=TAKES)

    def _take_first(self, tube: str) -> Task | None:
        session = self._box.session.current
        policy = self.policies.get(tube)
        if policy is not None and policy.is_paused:
            return None
        while True:
            row = self.in_order.first([tube, READY])
            if row is None or session.is_ended:
                # A coroutine may continue after its client has disconnected: the task would stay taken.
                return None
            now, end = self.now(), end_of(row)
            if now < end:
                break
            self.expire(row)
        task = self.space.update(
            row[ID],
            (
                ("=", STATUS, TAKEN),
                ("=", NEXT_EVENT, min(now + row[TTR], end)),
                ("=", CID, session.id),
                ("+", CTAKEN, 1),
            ),
        )
        assert task is not None
        now = self.times.of(tube).taken(row[ID], row[CREATED] * 1000)
        self.owners.put(row[ID], session.id, now)
        self.statistics.count(self.label, tube, "take")
        return task_of(task)

    def make_ready(self, row: Row, *more: tuple[str, int, Any]) -> Tuple:
        """Make a task ready.

        Parameters:
            row: the task.
            more: further update operations.
        """
        task = self.space.update(
            row[ID], (("=", STATUS, READY), ("=", NEXT_EVENT, end_of(row)), ("=", CID, 0), *more)
        )
        assert task is not None
        return task

    def fail(self, row: Row, cause: Cause) -> Failure | None:
        """Count a failed attempt of a task, and end the task if it was the last one.

        Returns: what follows; None if attempts are not counted.
        """
        # The connections that tasks have ended are counted for each tube.
        policy = self.policy_of(row[TUBE]) if cause is Cause.DISCONNECT else self.policies.get(row[TUBE])
        failure = None if policy is None else policy.failed(row[ID], cause)
        if policy is None or failure is None or not failure.is_final:
            return failure
        logger.warning(
            "the task %s of the tube %s has reached its release_limit: %s", row[ID], row[TUBE], failure.policy
        )
        if failure.policy == ReleaseLimitPolicy.DLQ:
            self._make_dead_letter(row, policy)
        else:
            self.space.delete(row[ID])
        return failure

    def make_ready_after(self, row: Row, cause: Cause) -> None:
        """Make a task ready, or delayed, after a failed attempt that its consumer has not reported."""
        failure = self.fail(row, cause)
        if failure is None or not (failure.is_final or failure.delay):
            self.make_ready(row)
        elif failure.delay and not failure.is_final:
            now = self.now()
            due = min(now + round(failure.delay * MICROSECONDS), end_of(row))
            self.space.update(row[ID], (("=", STATUS, DELAYED), ("=", NEXT_EVENT, due), ("=", CID, 0)))

    def change_tube(self, row: Row, tube: str) -> Tuple:
        """Put a task into another tube, ready, with its time to live from now on."""
        life = row[TTL] + max(self.now() - row[CREATED], 0)
        task = self.space.update(
            row[ID],
            (
                *(("=", TUBE, tube), ("=", STATUS, READY), ("=", IPRI, MIDDLE_IPRI), ("=", CID, 0)),
                *(("=", TTL, life), ("=", NEXT_EVENT, row[CREATED] + life)),
            ),
        )
        assert task is not None
        return task

    def _make_dead_letter(self, row: Row, policy: QueuePolicy) -> None:
        dead_letters = self._dead_letters_of(row[TUBE])
        policy.hand_over(row[ID], dead_letters, row[ID])
        self.change_tube(row, row[TUBE] + DEAD_LETTERS)
        policy.task_removed(row[ID])

    def bury(self, row: Row) -> Tuple:
        """Bury a task until its time to live ends."""
        task = self.space.update(
            row[ID], (("=", STATUS, BURIED), ("=", NEXT_EVENT, end_of(row)), ("=", CID, 0), ("+", CBURY, 1))
        )
        assert task is not None
        return task

    def expire(self, row: Row) -> None:
        """Delete an expired task."""
        self.space.delete(row[ID])
        self.statistics.count(self.label, row[TUBE], "ttl.total")
        self.statistics.count(self.label, row[TUBE], f"ttl.{STATUSES.get(row[STATUS], row[STATUS])}")

    # -- policies --

    def policy_of(self, tube: str) -> QueuePolicy:
        """Return the policy of a tube; a new one applies nothing."""
        policy = self.policies.get(tube)
        if policy is None:
            policy = QueuePolicy(
                self._box,
                f"{self.space.name}/{tube}",
                QUEUE_OPTIONS,
                {},
                partial(self._wake_all, tube),
                partial(self._dead_letters_of, tube),
            )
            policy.start(partial(self._is_in, tube))
            self.policies[tube] = policy
        return policy

    def _dead_letters_of(self, tube: str) -> QueuePolicy:
        """Return the policy of the tube of a tube's dead letters.

        Raises:
            BoxError: there are other tasks in a tube of its name.
        """
        name, dead_tube = f"{self.space.name}/{tube}", tube + DEAD_LETTERS
        policy = self.policy_of(dead_tube)
        if policy.dead_letters_of != name:
            if self.in_order.first([dead_tube]) is not None:
                raise BoxError.procedure(
                    f'the tube "{dead_tube}" has tasks, which are no dead letters of the tube "{tube}"'
                )
            policy.mark_dead_letters_of(name)
        return policy

    def _is_in(self, tube: str, task_id: object) -> bool:
        row = self.space.get(task_id)
        return row is not None and row[TUBE] == tube

    def wait_queue(self, tube: str) -> WaitQueue:
        """Return the wait queue of a tube."""
        line = self.wait_queues.get(tube)
        if line is None:
            if len(self.wait_queues) >= self._wait_queues_max:
                # Clients choose the names of tubes, and most wait queues are not used again.
                for name in [name for name, other in self.wait_queues.items() if not other]:
                    del self.wait_queues[name]
                self._wait_queues_max = max(_WAIT_QUEUES_MAX, 2 * len(self.wait_queues))
            line = self.wait_queues[tube] = WaitQueue(self._box, partial(self.take, tube))
        return line

    def tasks(self, tube: str) -> dict[str, int]:
        """Return the number of tasks in a tube, in all and by status, under their names in statistics."""
        count = self.in_order.tree.count
        return {
            "tasks.total": count(IteratorType.EQ, [tube]),
            **{f"tasks.{name}": count(IteratorType.EQ, [tube, status]) for status, name in STATUSES.items()},
        }

    # -- changes of the space --

    def _changed(self, old: Tuple | None, new: Tuple | None) -> None:
        """Schedule due times, and wake waiting calls if necessary. Runs for every change of the space, by any
        client."""
        if old is not None and (new is None or new[STATUS] != TAKEN):
            self.owners.remove(old[ID])
            if self.owners.touched.values:
                self.owners.forget_touch(old[ID])
        if new is None:
            if old is not None:
                self.times.of(old[TUBE]).removed(old[ID])
                policy = self.policies.get(old[TUBE])
                if policy is not None and policy.has_rows:
                    policy.task_removed(old[ID])
            return
        self.due_timer.schedule(new[NEXT_EVENT] / MICROSECONDS)
        if new[STATUS] == READY:
            if old is not None and old[STATUS] != READY:
                self.times.of(new[TUBE]).became_ready(new[ID])
            # Checked after the commit: a stream's transaction may stay open for long.
            self._box.on_commit(partial(self._wake, new[TUBE]))

    def _undone(self, old: Tuple | None, new: Tuple | None) -> None:
        """Handle the rollback of a change."""
        if old is None:
            return
        self.due_timer.schedule_immediately(old[NEXT_EVENT] / MICROSECONDS)
        if old[STATUS] == READY:
            # If the log could not be written, others have acted on the change: let them try again.
            self._box.clock.call_later(0.0, partial(self._wake, old[TUBE]))

    def _wake(self, tube: str) -> None:
        line = self.wait_queues.get(tube)
        if line:
            line.wake()

    def _wake_all(self, tube: str) -> None:
        line = self.wait_queues.get(tube)
        if line:
            line.wake(len(line))

    def _give_back(self, key: str) -> None:
        """Release a task whose owner's session has ended."""
        row = self.space.get(key)
        if row is not None and row[STATUS] == TAKEN:
            self.make_ready_after(row, Cause.DISCONNECT)
            self.statistics.count(self.label, row[TUBE], "ready_by_disconnect")

    def _process_due(self) -> float:
        """Process due tasks, a limited number at a time, and return when the next one is due."""
        return self.due_timer.process(
            self.space.index["event"].pairs([0], iterator="GE"),
            lambda row: float(row[NEXT_EVENT] / MICROSECONDS),
            self._process_due_task,
        )

    def _process_due_task(self, row: Tuple) -> None:
        if self.now() >= end_of(row):
            self.expire(row)
        elif row[STATUS] == TAKEN:
            self.make_ready_after(row, Cause.TIMEOUT)
        elif row[STATUS] == DELAYED:
            self.make_ready(row)
        else:
            logger.error("the task %s has an event due, but the status %s", row[ID], row[STATUS])
            self.space.update(row[ID], (("=", NEXT_EVENT, end_of(row)),))
