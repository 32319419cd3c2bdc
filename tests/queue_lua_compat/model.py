"""A model of the tutorial's queue: tasks by id, with time that the test advances."""

from __future__ import annotations

from dataclasses import dataclass, field


class Refused(Exception):
    """A call that ends with an error."""


@dataclass(eq=False)
class ModelTask:
    """A task. Its moment is nanoseconds since 1970."""

    id: int
    data: object
    status: str = "R"
    moment: int = 0
    owner: object = None


@dataclass(eq=False)
class Waiting:
    """A call that waits for tasks; without a count for one."""

    client: object
    count: int | None
    deadline: int
    result: list[ModelTask] = field(default_factory=list)
    is_done: bool = False


@dataclass
class Model:
    """The queue."""

    now: int
    tasks: dict[int, ModelTask] = field(default_factory=dict)
    line: list[Waiting] = field(default_factory=list)
    last_id: int = 0

    def put(self, data: object, delay: float | None) -> ModelTask:
        self.last_id = max(self.now, self.last_id + 1)
        task = self.tasks[self.last_id] = ModelTask(self.last_id, data)
        return self.back(task, delay)

    def back(self, task: ModelTask, delay: float | None = None) -> ModelTask:
        task.owner = None
        task.status = "R" if delay is None else "W"
        task.moment = 0 if delay is None else self.now + round(delay * 1e9)
        return task

    def take(self, client: object, count: int) -> list[ModelTask]:
        found = sorted((task for task in self.tasks.values() if task.status == "R"), key=lambda task: task.id)
        for task in found[:count]:
            task.status, task.owner = "T", client
        return found[:count]

    def wait(self, client: object, count: int | None, seconds: float) -> Waiting:
        self.line.append(Waiting(client, count, self.now + round(seconds * 1e9)))
        return self.line[-1]

    def own(self, client: object, task_id: int) -> ModelTask:
        task = self.tasks.get(task_id)
        if task is None:
            raise Refused("was not found")
        if task.status != "T":
            raise Refused("not taken by anybody")
        if task.owner is not client:
            raise Refused("Not you")
        return task

    def serve(self) -> None:
        for waiting in list(self.line):
            waiting.result = self.take(waiting.client, waiting.count or 1)
            if waiting.result:
                self.finish(waiting)

    def finish(self, waiting: Waiting) -> None:
        waiting.is_done = True
        self.line.remove(waiting)

    def close(self, client: object) -> None:
        for waiting in [each for each in self.line if each.client is client]:
            self.finish(waiting)
        for task in self.tasks.values():
            if task.owner is client:
                self.back(task)
        self.serve()

    def advance(self, seconds: float) -> None:
        end = self.now + round(seconds * 1e9)
        while True:
            moments = [task.moment for task in self.tasks.values() if task.status == "W"]
            self.now = min([end, *moments, *(waiting.deadline for waiting in self.line)])
            for task in self.tasks.values():
                if task.status == "W" and task.moment <= self.now:
                    self.back(task)
            for waiting in [each for each in self.line if each.deadline <= self.now]:
                self.finish(waiting)
            self.serve()
            if self.now == end:
                return
