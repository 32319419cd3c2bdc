"""The interface of queues for operators, the same for all dialects: tasks, figures and repairs.

An application registers the queues that it serves:

@app.queues
def queues(box: Box) -> Iterable[ManagedQueue]:
    return [JobsQueue(box)]

The server's procedures `operator.…`, its metrics and its commands use them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate, islice
from typing import Final, Protocol


class TaskState(StrEnum):
    """The states of a task, by the same names in all dialects."""

    READY = "ready"
    TAKEN = "taken"
    DELAYED = "delayed"
    BURIED = "buried"
    DONE = "done"


class QueueState(StrEnum):
    """The states of a queue: a paused one hands out no tasks, a draining one refuses new ones."""

    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"


ACTIONS: Final = (
    *("put", "release", "kick", "bury", "delete", "move", "requeue"),
    *("pause", "drain", "resume", "configure"),
)
"""The possible actions of operators; a queue may lack some. Only dead letters have `requeue`."""


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task as operators see it.

    Attributes:
        id: its id, as clients know it.
        state: its state.
        data: its payload.
        created: when it was put, in seconds since 1970; None if the dialect does not store it.
        due: when it becomes ready, for a delayed task, or ready again, for a taken one with a time to run.
        session: the id of the session that has taken it.
        taken_at: when that session took it; None if it is unknown.
        touched_at: when it last asked for more time; None if it never did.
        details: the dialect's own fields, such as `pri`, `ttl` and `ttr` (in seconds) or `utube`.
    """

    id: int | str
    state: TaskState
    data: object
    created: float | None = None
    due: float | None = None
    session: int | None = None
    taken_at: float | None = None
    touched_at: float | None = None
    details: Mapping[str, object] = field(default_factory=dict)


BOUNDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0),
)
"""The upper bounds of a histogram's intervals, in seconds."""


class Histogram:
    """Counts durations by intervals.

    Parameters:
        bounds: the upper bounds of the intervals, in seconds; a last interval has no bound.

    Attributes:
        counts: the number of durations in each interval, not cumulated.
        sum: the sum of all durations.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = BOUNDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self.counts)

    def cumulated(self) -> list[tuple[float, int]]:
        """Return for each bound, infinity last, the number of durations up to it."""
        return list(zip((*self.bounds, float("inf")), accumulate(self.counts), strict=True))


@dataclass(frozen=True, slots=True)
class StoredQueue:
    """How to read the tasks in a space without the application, such as from the files of a server.

    A package names a function from the names of all fields, by space, to the stored queues among these spaces
    as an entry point of the group `iproto_server.stored_queues`.

    Attributes:
        space: the name of the space.
        dialect: as in `ManagedQueue`.
        states: the states by their values in the field `state`.
        state, created, due, tube: the numbers of fields. A queue with a tube is named `SPACE/TUBE`.
        created_unit, due_unit: units per second of these times since 1970.
    """

    space: str
    dialect: str
    states: Mapping[str, TaskState]
    state: int
    created: int | None = None
    due: int | None = None
    tube: int | None = None
    created_unit: int = 1_000_000
    due_unit: int = 1_000_000


STORED_QUEUES: Final = "iproto_server.stored_queues"
"""The group of entry points."""


class ManagedQueue(Protocol):
    """A queue for operators.

    All methods run within the running transaction, with the rights of its user. An action works on the tasks
    of any session, keeps the queue's statistics, and serves waiting consumers. It raises BoxError with a text
    for operators if a task does not exist or cannot be changed like that.

    Attributes:
        name: its name, unique among all queues of a server.
        dialect: "tutorial", "tube", "legacy", or an application's own word.
        kind: the type within the dialect, such as "fifo"; the dialect's name if there are no types.
        actions: the actions it has, some of `ACTIONS`.
        options: the names of the options that `put` takes.
        state: whether it is running, paused or draining.
        settings: the options of the queue's policy in effect, as `configure` takes them.
        dead_letters_of: the name of the queue whose dead letters it has; None if it is another queue.
    """

    @property
    def name(self) -> str: ...
    @property
    def dialect(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def actions(self) -> frozenset[str]: ...
    @property
    def options(self) -> frozenset[str]: ...
    @property
    def state(self) -> QueueState: ...
    @property
    def settings(self) -> Mapping[str, object]: ...
    @property
    def dead_letters_of(self) -> str | None: ...

    def counts(self) -> Mapping[TaskState, int]:
        """Return the number of stored tasks in each state that the dialect has."""

    def calls(self) -> Mapping[str, int]:
        """Return the number of calls since the start, by the call's name."""

    def oldest_ready(self) -> float | None:
        """Return for how many seconds the oldest ready task has been ready; None without ready tasks.

        A task that has become ready again counts from then on.
        """

    def consumers_waiting(self) -> int:
        """Return the number of calls that wait for a task."""

    def waits(self) -> Histogram | None:
        """Return the seconds that tasks were ready until they were taken; None if they are not measured."""

    def services(self) -> Histogram | None:
        """Return the seconds that tasks were taken until they were acknowledged; None if not measured."""

    def tasks(
        self,
        state: TaskState | None,
        *,
        limit: int,
        after: int | str | None = None,
        older: float | None = None,
    ) -> list[TaskInfo]:
        """Return tasks in the order in which they are taken; without a state, in the order of ids.

        Parameters:
            state: the state; None for all.
            limit: the maximum number.
            after: the id of the task after which to begin, as for the next page.
            older: only tasks that were put, or are taken, for that number of seconds at least.

        Raises:
            BoxError: the task `after` does not exist and its place is unknown, or too many tasks would have
                to be looked at.
        """

    def task(self, task_id: int | str) -> TaskInfo | None:
        """Return a task, or None."""

    def put(self, data: object, options: Mapping[str, object]) -> TaskInfo:
        """Add a task, and return it."""

    def release(self, task_id: int | str) -> TaskInfo:
        """Make a task ready that is taken, delayed or buried, and return it."""

    def bury(self, task_id: int | str) -> TaskInfo:
        """Bury a task in any other state, and return it."""

    def delete(self, task_id: int | str) -> TaskInfo:
        """Delete a task in any state, and return it as it was."""

    def kick(self, count: int) -> int:
        """Make up to `count` buried tasks ready, the first ones first, and return their number."""

    def move(self, task_id: int | str, target: ManagedQueue) -> TaskInfo:
        """Delete a task here and put it into another queue, and return the new task.

        It is ready there, or delayed for the rest of its delay, and keeps the options that both have.
        """

    def requeue(self, task_id: int | str) -> TaskInfo:
        """Put a dead letter back into its queue, ready, and return the task."""

    def pause(self) -> None:
        """Stop handing out tasks until `resume`; consumers keep waiting."""

    def drain(self) -> None:
        """Refuse new tasks until `resume`, while consumers empty the queue."""

    def resume(self) -> None:
        """End a pause, or draining."""

    def configure(self, options: Mapping[str, object]) -> None:
        """Change options of the queue's policy; nil restores an option."""


class WalkedQueue(Protocol):
    """A `ManagedQueue` whose tasks can be looked at in slices, however many there are."""

    def walk(
        self, state: TaskState | None, *, after: int | str | None = None, older: float | None = None
    ) -> Generator[TaskInfo | None, None, None]:
        """Yield the tasks of `ManagedQueue.tasks`, and None for each one that is too young.

        Others may change the queue between two of them.
        """


class WatchedQueue(Protocol):
    """A `ManagedQueue` that tells which consumers hang, and which tasks kill them."""

    def oldest_taken(self) -> float | None:
        """Return for how many seconds the first of the taken tasks has been taken; None without taken tasks.

        A limited number of taken tasks may be looked at.
        """

    def suspicious_tasks(self) -> Mapping[int | str, int]:
        """Return the tasks that have ended at least five connections of consumers, with their number."""


SUSPICIOUS_MAX: Final = 10
"""The maximum number of tasks of a queue that are named because they have ended connections."""


def oldest_taken(queue: ManagedQueue) -> float | None:
    """Return what `WatchedQueue.oldest_taken` does; None of another queue."""
    method: Callable[[], float | None] | None = getattr(queue, "oldest_taken", None)
    return None if method is None else method()


def suspicious_tasks(queue: ManagedQueue) -> Mapping[int | str, int]:
    """Return what `WatchedQueue.suspicious_tasks` does, up to `SUSPICIOUS_MAX`; nothing of another queue."""
    method: Callable[[], Mapping[int | str, int]] | None = getattr(queue, "suspicious_tasks", None)
    return {} if method is None else dict(islice(method().items(), SUSPICIOUS_MAX))


class NamedQueues:
    """Many queues, each of which is made when it is asked for: what the function of `@app.queues` may return.

    Parameters:
        names: the names of all queues.
        find: returns the queue of a name, or None if there is none.
    """

    def __init__(self, names: Iterable[str], find: Callable[[str], ManagedQueue | None]) -> None:
        self.names = names
        self.find = find

    def __iter__(self) -> Iterator[ManagedQueue]:
        for name in sorted(self.names):
            queue = self.find(name)
            if queue is not None:
                yield queue
