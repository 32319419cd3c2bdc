"""A short model of the legacy queue: tasks in lists, with time that the test advances."""

from __future__ import annotations

from dataclasses import dataclass, field

SECOND = 1_000_000


class Refused(Exception):
    """A call that ends with an error."""


@dataclass(eq=False)
class ModelTask:
    """A task. Times are in microseconds."""

    id: str
    tube: str
    data: list[object]
    priority: int
    created: int
    life: int
    ttr: int
    rank: int = 0
    status: str = "ready"
    owner: object = None
    event: int = 0

    @property
    def end(self) -> int:
        return self.created + self.life

    @property
    def place(self) -> tuple[int, int, int]:
        return self.rank, -self.priority, self.created

    def answer(self) -> list[object]:
        return [self.id, self.tube, self.status, *self.data]


@dataclass(eq=False)
class Waiting:
    """A call that waits for tasks."""

    client: object
    tube: str
    count: int
    deadline: int
    result: list[ModelTask] | None = None
    is_done: bool = False


@dataclass
class Model:
    """A space of tubes."""

    now: int
    tasks: dict[str, ModelTask] = field(default_factory=dict)
    line: list[Waiting] = field(default_factory=list)
    last_created: int = 0

    def ready(self, tube: str) -> list[ModelTask]:
        return sorted(self.of(tube, "ready"), key=lambda task: task.place)

    def of(self, tube: str, status: str) -> list[ModelTask]:
        return [task for task in self.tasks.values() if (task.tube, task.status) == (tube, status)]

    def put(
        self, task_id: str, tube: str, delay: float, ttl: float, ttr: float, pri: int, data: object
    ) -> None:
        self.last_created = max(self.now, self.last_created + 1)
        life, wait = round((ttl or 25 * 86_400) * SECOND), round(delay * SECOND)
        task = ModelTask(
            task_id, tube, [data], pri, self.last_created, life + wait, round((ttr or 60) * SECOND)
        )
        self.tasks[task_id] = task
        if wait:
            task.status, task.event = "delayed", self.now + wait

    def put_urgent(self, task_id: str, tube: str, delay: float, *rest: float | object) -> None:
        first = self.ready(tube)[:1]
        self.put(task_id, tube, delay, *rest)  # type: ignore[arg-type]  # the remaining arguments of put
        if not delay:
            self.tasks[task_id].rank = min(*(task.rank for task in first), 0, 0) - 1

    def take(self, client: object, tube: str, count: int = 1) -> list[ModelTask]:
        found = self.ready(tube)[:count]
        for task in found:
            task.status, task.owner = "taken", client
            task.event = self.now + task.ttr
        return found

    def wait(self, client: object, tube: str, count: int, seconds: float) -> Waiting:
        waiting = Waiting(client, tube, count, self.now + round(seconds * SECOND))
        self.line.append(waiting)
        return waiting

    def serve(self) -> None:
        for waiting in list(self.line):
            waiting.result = self.take(waiting.client, waiting.tube, waiting.count) or None
            if waiting.result:
                self.finish(waiting)

    def finish(self, waiting: Waiting) -> None:
        waiting.is_done = True
        self.line.remove(waiting)

    def own(self, client: object, task_id: str, what: str) -> ModelTask:
        task = self.known(task_id)
        if task.status != "taken":
            raise Refused("Task is not taken")
        if task.owner is not client:
            raise Refused(f"Only consumer that took the task can it {what}")
        return task

    def known(self, task_id: str) -> ModelTask:
        if task_id not in self.tasks:
            raise Refused("Task not found")
        return self.tasks[task_id]

    def leave(self, task: ModelTask, status: str = "ready") -> ModelTask:
        task.status, task.owner = status, None
        return task

    def requeue(self, task: ModelTask) -> ModelTask:
        last = self.ready(task.tube)[-1:]
        task.rank = last[0].rank + 1 if last else 0
        return self.leave(task)

    def release(self, task: ModelTask, delay: float, ttl: float) -> ModelTask:
        wait = round(delay * SECOND)
        if ttl:
            task.life = self.now - task.created + round(ttl * SECOND) + wait
        task.event = self.now + wait
        return self.leave(task, "delayed" if wait else "ready")

    def close(self, client: object) -> None:
        for waiting in [each for each in self.line if each.client is client]:
            self.finish(waiting)
        for task in self.tasks.values():
            if task.owner is client:
                self.leave(task)
        self.serve()

    def advance(self, seconds: float) -> None:
        end = self.now + round(seconds * SECOND)
        while (moment := min([end, *self._moments()])) < end:
            self._happen(moment)
        self._happen(end)

    def _moments(self) -> list[int]:
        changes = [task.event for task in self.tasks.values() if task.status in ("delayed", "taken")]
        return [*changes, *(task.end for task in self.tasks.values()), *(each.deadline for each in self.line)]

    def _happen(self, moment: int) -> None:
        self.now = moment
        for task in list(self.tasks.values()):
            if task.end <= moment:
                del self.tasks[task.id]
            elif task.status in ("delayed", "taken") and task.event <= moment:
                self.leave(task)
        for waiting in [each for each in self.line if each.deadline <= moment]:
            self.finish(waiting)
        self.serve()
