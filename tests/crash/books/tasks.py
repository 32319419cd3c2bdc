"""The expected tasks of the queue: put, taken, released, acknowledged, or possibly so.

A task is identified by the number in its data, as its id is only known from the answer. Only the owner of a
taken task sends requests about it, so at most one request about a task has an unknown outcome; its put may
have one, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.crash.finding import Finding, Kind
from tests.crash.schema import Row

READY, TAKEN, WAITING = "R", "T", "W"
_ID, _STATUS, _RUNAT, _DATA = range(4)


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
    """

    number: int
    outcome: Outcome = Outcome.UNKNOWN
    id: int | None = None
    runat: float | None = None
    holder: int | None = None
    may_be_gone: bool = False
    releases: int = 0


class Tasks:
    """The expected state of all tasks."""

    def __init__(self) -> None:
        self._tasks: dict[int, Task] = {}
        self._next = 0
        self._findings: list[Finding] = []

    def __len__(self) -> int:
        """Return the possible number of tasks in the queue."""
        return len(self._tasks)

    # -- requests --

    def putting(self, *, is_delayed: bool) -> Task:
        """Record that a task is put."""
        self._next += 1
        task = self._tasks[self._next] = Task(self._next, runat=None if is_delayed else 0)
        return task

    def acknowledging(self, task: Task) -> None:
        """Record that its holder sends an `ack`."""
        task.holder = None
        task.may_be_gone = True

    def releasing(self, task: Task, *, is_delayed: bool) -> int:
        """Record that its holder sends a `release`. Returns the number of the release."""
        task.holder = None
        task.runat = None if is_delayed else 0
        task.releases += 1
        return task.releases

    # -- answers --

    def put(self, task: Task, answer: Mapping[str, Any]) -> None:
        """Record the answer to a `put`. By then another worker may have taken the task."""
        if task.outcome is Outcome.UNKNOWN:
            task.outcome = Outcome.PRESENT
            task.runat = answer["runat"]
        self._identify(task, answer["id"])

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

    def released(self, task: Task, number: int, answer: Mapping[str, Any]) -> None:
        """Record the answer to a `release`. Another worker may have taken and released the task since.

        Parameters:
            task: The task.
            number: The number of the release.
            answer: The answer.
        """
        self._identify(task, answer["id"])
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

    def compare(self, rows: list[Row], now: float) -> list[Finding]:
        """Compare with the queue after a restart, which is certain from then on.

        Parameters:
            rows: The queue's rows.
            now: The time after they were read, in seconds since 1970.
        """
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
        for task in self._tasks.values():
            self._compare_one(task, found.get(task.number), now)
        self._tasks = {
            number: Task(number, Outcome.PRESENT, row[_ID], row[_RUNAT]) for number, row in found.items()
        }
        return self.take_findings()

    def take_findings(self) -> list[Finding]:
        """Return and clear the findings."""
        findings, self._findings = self._findings, []
        return findings

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
