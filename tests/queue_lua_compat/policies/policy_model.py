"""A model of a queue with policies, for every dialect: tasks, dead letters, and keys that are remembered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.queue_lua_compat.policies.worlds import FAILURES, TTR

Counts = dict[str, int]


@dataclass(eq=False)
class ModelTask:
    """A task.

    Attributes:
        id: its id.
        order: its place among the ready ones.
        data: its payload.
        limit: its own release limit; None for that of the queue.
        state: "ready", "taken" or "delayed".
        due: when that ends, in seconds; None for never.
        owner: the client that has taken it.
        counts: its failed attempts.
        key: its unique key, and for how long that is remembered.
    """

    id: Any
    order: Any
    data: object
    limit: int | None = None
    state: str = "ready"
    due: float | None = None
    owner: object = None
    counts: Counts = field(default_factory=lambda: dict.fromkeys(FAILURES, 0))
    key: tuple[str, float] | None = None


class PolicyModel:
    """The queue.

    Parameters:
        is_numbered: whether ids are numbers, which are used again.
        has_delays: whether tasks have times to run, and delays.

    Attributes:
        now: the time in seconds since the start.
        limit, delay: the options `release_limit` and `retry.delay` of the queue; None for none.
        is_dlq: whether its policy is DLQ.
        is_paused, is_draining: its state.
        tasks, dead: the tasks and the dead letters, by id.
        remembered: the ids of tasks that are gone and the times until which their keys are remembered.
    """

    def __init__(self, *, is_numbered: bool, has_delays: bool) -> None:
        self.is_numbered = is_numbered
        self.has_delays = has_delays
        self.now = 0.0
        self.limit: int | None = None
        self.delay: float | None = None
        self.is_dlq = False
        self.is_paused = self.is_draining = False
        self.tasks: dict[Any, ModelTask] = {}
        self.dead: dict[Any, ModelTask] = {}
        self.remembered: dict[str, tuple[Any, float]] = {}

    def find(self, key: str) -> tuple[Any, bool] | None:
        """The id of the task that was put with a key, and whether it exists."""
        for task in self.tasks.values():
            if task.key is not None and task.key[0] == key:
                return task.id, True
        found = self.remembered.get(key)
        return None if found is None or found[1] <= self.now else (found[0], False)

    def add(self, task: ModelTask) -> None:
        """Add a task that was put."""
        assert task.id not in self.tasks
        self.tasks[task.id] = task
        if task.key is not None:
            self.remembered.pop(task.key[0], None)

    def first(self) -> ModelTask | None:
        """The task that a take gets."""
        ready = [task for task in self.tasks.values() if task.state == "ready"]
        return None if self.is_paused or not ready else min(ready, key=lambda task: task.order)

    def take(self, task: ModelTask, owner: object) -> None:
        """Give a task to a client."""
        task.state, task.owner = "taken", owner
        task.due = self.now + TTR if self.has_delays else None

    def remove(self, task: ModelTask) -> None:
        """Remove a task."""
        del self.tasks[task.id]
        if task.key is not None and task.key[1]:
            self.remembered[task.key[0]] = (task.id, self.now + task.key[1])
        task.key = None

    def make_ready(self, task: ModelTask) -> None:
        """Make a task ready."""
        task.state, task.owner, task.due = "ready", None, None

    def fail(self, task: ModelTask, how: str) -> bool:
        """Count a failed attempt of a task; return whether it was the last one."""
        limit = self.limit if task.limit is None else task.limit
        if limit is None and self.delay is None:
            self.make_ready(task)
            return False
        task.counts[how] += 1
        attempts = sum(task.counts.values())
        if limit and attempts >= limit:
            self.remove(task)
            if self.is_dlq:
                self.make_ready(task)
                task.id = self._free(task.id, self.dead)
                self.dead[task.id] = task
            return True
        self.make_ready(task)
        if self.delay is not None:
            task.state, task.due = "delayed", self.now + self.delay * 2 ** (attempts - 1)
        return False

    def requeue(self, task: ModelTask) -> None:
        """Put a dead letter back."""
        del self.dead[task.id]
        task.id = self._free(task.id, self.tasks)
        if self.is_numbered:
            task.order = task.id
        task.counts = dict.fromkeys(FAILURES, 0)
        task.limit = None
        self.tasks[task.id] = task

    def close(self, owner: object) -> None:
        """End a client."""
        for task in sorted(self.tasks.values(), key=lambda task: task.id):
            if task.owner is owner:
                self.fail(task, "disconnects")

    def restart(self) -> None:
        """End all clients; that is no failure."""
        for task in self.tasks.values():
            if task.state == "taken":
                self.make_ready(task)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while True:
            due = [task for task in self.tasks.values() if task.due is not None and task.due <= end]
            if not due:
                self.now = end
                return
            first = min(due, key=lambda task: (task.due, task.id))
            assert first.due is not None
            self.now = max(self.now, first.due)
            if first.state == "taken":
                self.fail(first, "timeouts")
            else:
                self.make_ready(first)

    def _free(self, wanted: Any, tasks: dict[Any, ModelTask]) -> Any:
        return max(tasks) + 1 if self.is_numbered and wanted in tasks else wanted
