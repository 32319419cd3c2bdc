"""A model of a queue's committed state: tasks by id, with time that the test advances.

Transactions are serializable in the order of their commits, so the model applies a whole transaction at its
commit, and compares all of its answers then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

SECOND: Final = 10**9
NEVER: Final = 2**62


class Refused(Exception):
    """A call that ends with an error."""


@dataclass
class Task:
    """A task; times are in nanoseconds. `due` is the end of its status, `end` that of its life."""

    id: Any
    data: str
    place: Any
    status: str
    due: int
    end: int
    ttr: int
    owner: str | None = None


@dataclass
class Waiting:
    """A call that waits for a task."""

    who: str
    deadline: int
    answer: Any = None
    is_done: bool = False


@dataclass
class Model:
    """The queue.

    Parameters:
        now: the time.
        is_tube: whether anybody may bury, and a delayed release extends the task's life.
    """

    now: int
    is_tube: bool
    tasks: dict[Any, Task] = field(default_factory=dict)
    line: list[Waiting] = field(default_factory=list)

    def put(self, at: int, task_id: Any, data: str, delay: int, ttl: int, ttr: int, place: Any) -> None:
        end = at + ttl + delay if ttl else NEVER
        status, due = ("d", at + delay) if delay else ("r", NEVER)
        self.tasks[task_id] = Task(task_id, data, place, status, due, end, ttr or NEVER)

    def take(self, at: int, who: str, count: int = 1) -> list[Any]:
        """Take tasks. Returns: their ids."""
        taken = self._first_ready(at, count)
        for task in taken:
            task.status, task.owner, task.due = "t", who, at + task.ttr
        return [task.id for task in taken]

    def _first_ready(self, at: int, count: int = 1) -> list[Task]:
        ready = [task for task in self.tasks.values() if task.status == "r" and task.end > at]
        return sorted(ready, key=lambda task: task.place)[:count]

    def change(self, at: int, who: str, operation: str, task_id: Any, delay: int) -> None:
        """Apply an operation to a task. Raises Refused."""
        task = self.tasks.get(task_id)
        if task is None:
            raise Refused
        if operation == "delete":
            del self.tasks[task_id]
        elif operation == "dig":
            if task.status != "b":
                raise Refused
            self._back(task, "r")
        elif operation == "bury" and self.is_tube:
            self._back(task, "b")
        elif task.owner != who:
            raise Refused
        elif operation == "ack":
            del self.tasks[task_id]
        elif operation == "touch":
            task.due = at + task.ttr
        elif operation == "bury":
            self._back(task, "b")
        else:
            assert operation == "release"
            if delay and self.is_tube:
                task.end = min(task.end + delay, NEVER)
            self._back(task, "d" if delay else "r")
            task.due = at + delay if delay else NEVER

    def _back(self, task: Task, status: str) -> None:
        task.status, task.owner, task.due = status, None, NEVER

    def leave(self, who: str) -> None:
        """Close a client's connection."""
        self.line = [each for each in self.line if each.who != who]
        for task in self.tasks.values():
            if task.owner == who:
                self._back(task, "r")
        self.happen()

    def wait(self, who: str, seconds: float) -> Waiting:
        self.line.append(Waiting(who, self.now + round(seconds * SECOND)))
        return self.line[-1]

    def serve(self) -> None:
        """Serve waiting calls, first come, first served."""
        while self.line and self._serve_first():
            pass

    def serve_as(self, answers: list[Any]) -> None:
        """Handle a commit: serve waiting calls, and process due events.

        The order of the two is undefined, so the queue's answers decide.

        Parameters:
            answers: the ids that the first waiting calls received.
        """
        for answer in answers:
            first = self._first_ready(self.now)
            if not first or first[0].id != answer:
                self._become_due()
            self._serve_first()
        self.happen()

    def _serve_first(self) -> bool:
        taken = self.take(self.now, self.line[0].who)
        if taken:
            self._finish(self.line[0], taken[0])
        return bool(taken)

    def happen(self) -> None:
        """Process due events."""
        self._become_due()
        for waiting in [each for each in self.line if each.deadline <= self.now]:
            self._finish(waiting, None)
        self.serve()

    def _become_due(self) -> None:
        for task in list(self.tasks.values()):
            if task.end <= self.now:
                del self.tasks[task.id]
            elif task.due <= self.now:
                self._back(task, "r")

    def advance(self, seconds: float) -> None:
        """Advance the time."""
        end = self.now + round(seconds * SECOND)
        while self.now < end:
            dues = [min(task.due, task.end) for task in self.tasks.values()]
            dues += [waiting.deadline for waiting in self.line]
            self.now = min([end, *(due for due in dues if due > self.now)])
            self.happen()

    def _finish(self, waiting: Waiting, answer: Any) -> None:
        waiting.answer, waiting.is_done = answer, True
        self.line.remove(waiting)
