"""What is known of the queue's tasks: put, given out, given back, acknowledged, or perhaps so.

A task is known by the number in its data, for the id comes with the answer. While it is in somebody's hands,
only that client does something to it, so at most one request about a task has an unknown fate; its put may be
unknown, too.
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


class Fate(Enum):
    """Whether a task is in the queue."""

    UNKNOWN = "perhaps put"
    PRESENT = "in the queue"
    GONE = "acknowledged"


@dataclass(slots=True)
class Task:
    """The books about one task.

    Attributes:
        number: What it is known by.
        fate: Whether it is in the queue, as far as acknowledged.
        id: Its id in the queue; None until an answer tells it.
        runat: When it becomes ready, as the last answer about it said; 0 for a task that is ready or taken;
            None if a request that is not answered may have set it.
        holder: The worker that has it in hands.
        may_be_gone: Whether an `ack` was sent that has no answer yet.
    """

    number: int
    fate: Fate = Fate.UNKNOWN
    id: int | None = None
    runat: float | None = None
    holder: int | None = None
    may_be_gone: bool = False


class Tasks:
    """The books about all tasks."""

    def __init__(self) -> None:
        self._tasks: dict[int, Task] = {}
        self._next = 0
        self._findings: list[Finding] = []

    def __len__(self) -> int:
        """How many tasks may be in the queue."""
        return len(self._tasks)

    # -- what is asked for --

    def putting(self, *, is_delayed: bool) -> Task:
        """A new task is put, but not answered yet."""
        self._next += 1
        task = self._tasks[self._next] = Task(self._next, runat=None if is_delayed else 0)
        return task

    def acknowledging(self, task: Task) -> None:
        """Its holder sends an `ack`."""
        task.holder = None
        task.may_be_gone = True

    def releasing(self, task: Task, *, is_delayed: bool) -> None:
        """Its holder sends a `release`."""
        task.holder = None
        task.runat = None if is_delayed else 0

    # -- what is answered --

    def put(self, task: Task, answer: Mapping[str, Any]) -> None:
        """A `put` was answered. By then somebody may have taken the task, and more."""
        if task.fate is Fate.UNKNOWN:
            task.fate = Fate.PRESENT
            task.runat = answer["runat"]
        self._identify(task, answer["id"])

    def taken(self, answer: Mapping[str, Any], holder: int, now: float) -> Task | None:
        """A `take` was answered with a task.

        Args:
            answer: The task.
            holder: The worker that has it now.
            now: The time, in seconds since 1970.

        Returns:
            The task; None if there is none that could have been given.
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
        task.fate = Fate.PRESENT
        task.runat = 0
        task.holder = holder
        self._identify(task, answer["id"])
        return task

    def acknowledged(self, task: Task, answer: Mapping[str, Any]) -> None:
        """An `ack` was answered."""
        self._identify(task, answer["id"])
        self._tasks.pop(task.number, None)

    def released(self, task: Task, answer: Mapping[str, Any]) -> None:
        """A `release` was answered. By then somebody may have taken the task again."""
        self._identify(task, answer["id"])
        if task.runat is None:
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
        """Compare with the queue after a restart; from now on that is what is certain.

        Args:
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
            number: Task(number, Fate.PRESENT, row[_ID], row[_RUNAT]) for number, row in found.items()
        }
        return self.take_findings()

    def take_findings(self) -> list[Finding]:
        """What was found to be wrong since this was last asked."""
        findings, self._findings = self._findings, []
        return findings

    def _compare_one(self, task: Task, row: Row | None, now: float) -> None:
        what = f"task {task.number} (id {task.id})"
        if row is None:
            if task.fate is not Fate.UNKNOWN and not task.may_be_gone:
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
