"""The expected tasks of the queue: put, taken, released, acknowledged, dead letters, or possibly so.

A task is identified by the number in its data, as its id is only known from the answer. Only the owner of a
taken task sends requests about it, so at most one request about a task has an unknown outcome; its put may
have one, too. Some tasks have a limit of releases, after which they are dead letters, and some a unique key,
with which they are put again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from tests.crash.checks.finding import Finding, Kind
from tests.crash.schema import Row

READY, TAKEN, WAITING = "R", "T", "W"
GONE = "-"
_ID, _STATUS, _RUNAT, _DATA = range(4)
_ATTEMPTS_OF, _RELEASES = 1, 2

REMEMBERED = 100
"""The number of acknowledged tasks that are put again."""


class Outcome(Enum):
    """Whether a task is in the queue, as far as is known."""

    UNKNOWN = "perhaps put"
    PRESENT = "in the queue"
    GONE = "acknowledged"


@dataclass(slots=True)
class Task:
    """The expected state of one task.

    Attributes:
        number: Its identity in the test.
        outcome: Whether it is in the queue, as far as acknowledged.
        id: Its id in the queue; None until an answer contains it.
        runat: When it becomes ready, according to the last answer; 0 for a task that is ready or taken;
            None if a request without an answer may have set it.
        holder: The worker that has taken it.
        may_be_gone: Whether an `ack` without an answer was sent.
        releases: How often it was released: the number of its last release.
        limit: How many releases make it a dead letter; None for no limit.
        key: Its unique key.
        failures: How often it was released since it was put, as far as acknowledged; `may_have_failed` counts
            a release without an answer as well. Those of tasks without a limit are not counted.
        is_dead: Whether it is a dead letter, as far as acknowledged.
    """

    number: int
    outcome: Outcome = Outcome.UNKNOWN
    id: int | None = None
    runat: float | None = None
    holder: int | None = None
    may_be_gone: bool = False
    releases: int = 0
    limit: int | None = None
    key: str | None = None
    failures: int = 0
    may_have_failed: int = 0
    is_dead: bool = False


class Tasks:
    """The expected state of all tasks."""

    def __init__(self) -> None:
        self._tasks: dict[int, Task] = {}
        self._next = 0
        self._acknowledged: deque[tuple[str, int]] = deque(maxlen=REMEMBERED)
        self._findings: list[Finding] = []

    def __len__(self) -> int:
        """Return the possible number of tasks in the queue."""
        return len(self._tasks)

    # -- requests --

    def putting(self, *, is_delayed: bool, limit: int | None = None, is_unique: bool = False) -> Task:
        """Record that a task is put."""
        self._next += 1
        task = self._tasks[self._next] = Task(
            self._next,
            runat=None if is_delayed else 0,
            limit=limit,
            key=f"task {self._next}" if is_unique else None,
        )
        return task

    def to_put_again(self, chance: Random) -> tuple[str, int] | None:
        """Return the key and the id of a task that was put, which may be gone; None if there is none."""
        known = [
            (task.key, task.id)
            for task in self._tasks.values()
            if task.key is not None and task.id is not None and not task.is_dead and task.may_have_failed == 0
        ]
        known += self._acknowledged
        return chance.choice(known) if known else None

    def dead_letters(self) -> list[Task]:
        """Return the tasks that are dead letters, and about which no request is under way."""
        return [task for task in self._tasks.values() if task.is_dead and not task.may_be_gone]

    def acknowledging(self, task: Task) -> None:
        """Record that its holder sends an `ack`."""
        task.holder = None
        task.may_be_gone = True

    def releasing(self, task: Task, *, is_delayed: bool) -> int:
        """Record that its holder sends a `release`. Returns the number of the release."""
        task.holder = None
        task.runat = None if is_delayed else 0
        task.releases += 1
        if task.limit is not None:
            task.may_have_failed += 1
        return task.releases

    def deleting(self, task: Task) -> None:
        """Record that a dead letter is deleted."""
        task.may_be_gone = True

    # -- answers --

    def put(self, task: Task, answer: Mapping[str, Any]) -> None:
        """Record the answer to a `put`. By then another worker may have taken the task."""
        if task.outcome is Outcome.UNKNOWN:
            task.outcome = Outcome.PRESENT
            task.runat = answer["runat"]
        self._identify(task, answer["id"])

    def put_again(self, key: str, task_id: int, answer: Mapping[str, Any]) -> None:
        """Record the answer to a second `put` with the same key."""
        if answer["id"] != task_id:
            self._complain(f"the key {key!r} of the task with the id {task_id} gave {answer['id']}")

    def taken(self, answer: Mapping[str, Any], holder: int, now: float) -> Task | None:
        """Record the task in the answer to a `take`.

        Parameters:
            answer: The task.
            holder: The worker that has taken it.
            now: The time, in seconds since 1970.

        Returns:
            The task; None if no task could have been delivered.
        """
        number = answer["data"]["number"]
        task = self._tasks.get(number)
        if task is None:
            self._complain(f"task {number} was given out, but was never put or is acknowledged")
            return None
        if task.holder is not None:
            self._complain(f"task {number} was given to two at once")
        if answer["status"] != TAKEN:
            self._complain(f"task {number} was given out with the status {answer['status']}")
        if task.is_dead or (task.limit is not None and task.failures >= task.limit):
            self._complain(f"task {number} was given out after {task.failures} of {task.limit} releases")
        if task.runat is not None and task.runat > now:
            self._complain(f"task {number} was given out {task.runat - now:.3f} seconds too early")
        task.outcome = Outcome.PRESENT
        task.runat = 0
        task.holder = holder
        self._identify(task, answer["id"])
        return task

    def acknowledged(self, task: Task, answer: Mapping[str, Any]) -> None:
        """Record the answer to an `ack`."""
        self._identify(task, answer["id"])
        self._tasks.pop(task.number, None)
        if task.key is not None:
            self._acknowledged.append((task.key, answer["id"]))

    def deleted(self, task: Task) -> None:
        """Record that a dead letter was deleted."""
        self._tasks.pop(task.number, None)

    def released(self, task: Task, number: int, answer: Mapping[str, Any]) -> None:
        """Record the answer to a `release`. Another worker may have taken and released the task since.

        Parameters:
            task: The task.
            number: The number of the release.
            answer: The answer.
        """
        self._identify(task, answer["id"])
        if task.limit is not None:
            task.failures += 1
            if (answer["status"] == GONE) is not (number >= task.limit):
                self._complain(
                    f"release {number} of task {task.number} gave {answer}; the limit: {task.limit}"
                )
            task.is_dead = answer["status"] == GONE
        if task.runat is None and task.releases == number:
            task.runat = answer["runat"]

    def _identify(self, task: Task, task_id: int) -> None:
        if task.id is None:
            task.id = task_id
        elif task.id != task_id:
            self._complain(f"task {task.number} has the id {task_id}, but had {task.id} before")

    def _complain(self, text: str) -> None:
        self._findings.append(Finding(Kind.TASK, text))

    # -- after a restart --

    def compare(
        self, rows: list[Row], now: float, dead_rows: Sequence[Row] = (), attempts: Sequence[Row] = ()
    ) -> list[Finding]:
        """Compare with the queue after a restart, which is certain from then on.

        Parameters:
            rows: The queue's rows.
            now: The time after they were read, in seconds since 1970.
            dead_rows: The rows of its dead letters.
            attempts: The rows of `_queue_attempts`.
        """
        releases = {row[_ATTEMPTS_OF]: row[_RELEASES] for row in attempts}
        dead = {row[_DATA]["number"]: row for row in dead_rows}
        found: dict[int, Row] = {}
        for row in rows:
            number = row[_DATA]["number"]
            if number in found:
                self._complain(
                    f"task {number} is there twice, with the ids {found[number][_ID]} and {row[_ID]}"
                )
            elif number not in self._tasks:
                what = "is acknowledged, but still there" if number <= self._next else "comes from nowhere"
                self._complain(f"task {number} {what}: {row}")
            found[number] = row
        for number in dead.keys() - self._tasks.keys():
            self._complain(f"the dead letter {number} is deleted, but still there: {dead[number]}")
        for number in dead.keys() & found.keys():
            self._complain(f"task {number} is there, and a dead letter")
        for task in self._tasks.values():
            if task.number in dead:
                self._compare_dead(task, dead[task.number], releases)
            else:
                self._compare_one(task, found.get(task.number), now)
                if task.number in found:
                    self._compare_releases(task, releases)
        for task in self._tasks.values():
            if task.key is not None and task.id is not None and task.number not in found.keys() | dead.keys():
                self._acknowledged.append((task.key, task.id))
        self._tasks = {
            number: self._certain(number, row, releases, number in dead)
            for number, row in (found | dead).items()
        }
        return self.take_findings()

    def take_findings(self) -> list[Finding]:
        """Return and clear the findings."""
        findings, self._findings = self._findings, []
        return findings

    def _certain(self, number: int, row: Row, releases: Mapping[int, int], is_dead: bool) -> Task:
        before = self._tasks.get(number)
        limit = row[_DATA].get("limit")
        failures = 0 if limit is None else releases.get(row[_ID], 0)
        return Task(
            number,
            Outcome.PRESENT,
            row[_ID],
            row[_RUNAT],
            releases=failures,
            limit=limit,
            key=None if before is None else before.key,
            failures=failures,
            may_have_failed=failures,
            is_dead=is_dead,
        )

    def _compare_dead(self, task: Task, row: Row, releases: Mapping[int, int]) -> None:
        self._identify(task, row[_ID])
        self._compare_releases(task, releases)
        if task.limit is None or task.may_have_failed < task.limit:
            self._complain(
                f"task {task.number} is dead after {task.may_have_failed} of {task.limit} releases"
            )

    def _compare_releases(self, task: Task, releases: Mapping[int, int]) -> None:
        if task.limit is None or task.id is None:
            return
        stored = releases.get(task.id, 0)
        if not task.failures <= stored <= task.may_have_failed:
            self._complain(
                f"task {task.number} has {stored} releases, not {task.failures} to {task.may_have_failed}"
            )

    def _compare_one(self, task: Task, row: Row | None, now: float) -> None:
        what = f"task {task.number} (id {task.id})"
        if row is None:
            if task.outcome is not Outcome.UNKNOWN and not task.may_be_gone:
                self._complain(f"{what} is lost")
            return
        self._identify(task, row[_ID])
        status, runat = row[_STATUS], row[_RUNAT]
        if status == READY:
            if runat:
                self._complain(f"{what} is ready, but has the time {runat}")
            if task.runat is not None and task.runat > now:
                self._complain(f"{what} is ready {task.runat - now:.3f} seconds too early")
        elif status != WAITING:
            self._complain(f"{what} has the status {status}, though nobody can have taken it")
        elif task.runat is not None and runat != task.runat:
            self._complain(f"{what} waits for {runat} instead of {task.runat}")
