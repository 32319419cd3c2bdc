"""Drivers store the tasks of tubes, one driver per type. Applications can add types.

A driver stores tasks as rows of its tube's space. The queue itself uses only two fields: the first, the
task's id, and the second, its state. The driver reports each change of a task to the queue, which counts it,
records the owner, and wakes waiting calls.

Source: README of github.com/tarantool/queue, "Driver API".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from iproto_server import Box, BoxError, Space, Trigger, Tuple, Waiter
from queue_lua_compat.tubes.arguments import lua_text

READY: Final = "r"
TAKEN: Final = "t"
DONE: Final = "-"
BURIED: Final = "!"
DELAYED: Final = "~"

STATES: Final[Mapping[str, str]] = MappingProxyType(
    {"ready": READY, "taken": TAKEN, "done": DONE, "buried": BURIED, "delayed": DELAYED}
)
"""The states of a task by their names in `queue.statistics`."""

TASK_ID: Final = 0
STATUS: Final = 1

Options = dict[str, Any]
"""Options as a client gives them, or as stored in `_queue`."""

OnTaskChange = Callable[[Tuple | None, str | None], None]
"""Called with a task (its current row; for a removed task the last one, with the state `DONE`) and the event:
"put", "take", "release", "bury", "kick", "delete", "touch", "ttl", "ttr", "delay", or None if the task is
unchanged but can be taken now. A task that is `READY` wakes a waiting call."""


class TubeDriver(ABC):
    """The tasks of one tube. Drivers for new types derive from it and are registered under a name.

    All methods run within the caller's transaction and with its user's rights; an exception undoes the
    changes. State that a driver keeps beside its spaces has to follow a rollback: with `box.on_rollback`, or
    a trigger's `undo`.

    Time: a driver whose tasks have deadlines creates an `iproto_server.DueTimer`, schedules each
    deadline (best from an `on_replace` trigger of its space), begins it in `start` and stops it in `stop`.
    `drivers.ttl.TimedDriver` is an example.

    Parameters:
        box: the box.
        space: the space of the tasks, as created by `create_space`.
        on_task_change: to be called for every change of a task.
        options: the tube's options.

    Attributes:
        supports_grant_role: whether `grant_role` is supported.
        put_options: the names of the options of `put`: operators may give these only, and others are logged
            as unknown. None: a client may give any.
        status_order: the numbers of the fields behind the state in the index `status`.
        has_delays: whether tasks can be delayed, with `postpone`.
        has_dead_letters: whether tasks can become dead letters, with `adopt`.
    """

    supports_grant_role: ClassVar[bool] = True
    has_delays: ClassVar[bool] = False
    has_dead_letters: ClassVar[bool] = False
    put_options: ClassVar[frozenset[str] | None] = None
    status_order: ClassVar[tuple[int, ...]] = (TASK_ID,)

    def __init__(self, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> None:
        self.box = box
        self.space = space
        self.on_task_change = on_task_change
        self.options = options

    @classmethod
    @abstractmethod
    def create_space(cls, box: Box, space_name: str, options: Options) -> Space:
        """Create the space of a new tube, or, with the option `if_not_exists`, check an existing one.

        Parameters:
            box: the box.
            space_name: the name of the tube.
            options: the tube's options; entries added here are stored in `_queue`, too.
        """

    @classmethod
    def new(cls, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> Self:
        """Create the driver of a tube whose space exists, also after a restart. It is inactive until
        `start`."""
        return cls(box, space, on_task_change, options)

    def start(self) -> None:  # noqa: B027  # most drivers have nothing to start
        """Start timers."""

    def stop(self) -> None:  # noqa: B027  # as above
        """Cancel timers, delete triggers, and discard waiting calls. Also called on drop."""

    def normalize_task(self, task: Tuple) -> Tuple:
        """Return a task as clients see it: id, state and data."""
        return task

    @abstractmethod
    def put(self, data: object, options: Options) -> Tuple | Waiter | None:
        """Store a new task.

        Parameters:
            data: anything; what a client has sent is a `Raw` if the method is marked `packed_arguments(0)`.
            options: the options of the call.

        Returns: the stored task; a waiter whose result is the *normalized* task; None if the tube is full.
        """

    @abstractmethod
    def take(self) -> Tuple | None:
        """Take one ready task; return None if there is none."""

    @abstractmethod
    def touch(self, task_id: object, delta: int) -> Tuple | None:
        """Extend the time of a task.

        Parameters:
            task_id: the task's id.
            delta: microseconds, or `time.TIMEOUT_INFINITY`.
        """

    def prolong(self, task_id: object, delta: int) -> Tuple | None:
        """As `touch`, for the present attempt only: the stored `ttr` stays, if the driver can do so."""
        return self.touch(task_id, delta)

    def delete(self, task_id: object) -> Tuple | None:
        """Remove a task, and return its row with the state `DONE`."""
        task = self.space.delete(task_id)
        if task is None:
            return None
        task = with_state(task, DONE)
        self.on_task_change(task, "delete")
        return task

    @abstractmethod
    def release(self, task_id: object, options: Options) -> Tuple | None:
        """Make a task ready again, or delayed with the option `delay`."""

    @abstractmethod
    def bury(self, task_id: object) -> Tuple | None:
        """Bury a task: it is not taken until it is kicked."""

    @abstractmethod
    def kick(self, count: int) -> int:
        """Make up to `count` buried tasks ready, and return their number."""

    def postpone(self, task_id: object, seconds: float) -> None:
        """Make a ready task delayed, without an event. Only drivers with `has_delays` have it."""
        raise BoxError.procedure("tasks of this type have no delay")

    def is_expired(self, task: Tuple) -> bool:
        """Whether a task that still exists has outlived its time."""
        return False

    def adopt(self, task: Tuple) -> Tuple:
        """Store a task of another tube of the same type and the same options, ready.

        It keeps its id, unless there is another task with it, and gets the time to live of this tube. Only
        drivers with `has_dead_letters` have it.

        Parameters:
            task: its row in the other tube.

        Returns: the new row.
        """
        raise BoxError.procedure("tasks of this type cannot change their tube")

    def peek(self, task_id: object) -> Tuple | None:
        """Return a task, or None."""
        return self.space.get(task_id)

    def tasks_by_state(self, state: str) -> Iterator[Tuple]:
        """Return the tasks in a state, by the index `status`; they may be changed meanwhile."""
        return self.space.index["status"].pairs([state])

    def created(self, task: Tuple) -> int | None:
        """Return when a task was put, in microseconds since 1970; None if its row does not have it."""
        return None

    def due_at(self, task: Tuple) -> int | None:
        """Return when a delayed or taken task becomes ready, in microseconds since 1970; None if never."""
        return None

    def details(self, task: Tuple) -> dict[str, object]:
        """Return a task's other fields for operators: options of `put` by name, durations in seconds."""
        return {}

    def truncate(self) -> None:
        """Remove all tasks."""
        self.space.truncate()

    def drop(self) -> None:
        """Remove the space of the tube, and other spaces of the driver."""
        self.space.drop()

    def grant(self, user: str, *, if_not_exists: bool = True) -> None:
        """Grant a user read and write access to the tube's spaces."""
        self.box.schema.user.grant(user, "read,write", "space", self.space.name, if_not_exists=if_not_exists)

    def grant_role(self, role: str, *, if_not_exists: bool = True) -> None:
        """Grant a role read and write access to the tube's spaces."""
        self.box.schema.role.grant(role, "read,write", "space", self.space.name, if_not_exists=if_not_exists)


class Drivers(dict[str, type[TubeDriver]]):
    """The types of tubes by name."""

    def register(self, name: str, driver: type[TubeDriver]) -> None:
        """Add a type.

        Parameters:
            name: the type's name in `queue.create_tube`.
            driver: a subclass of `TubeDriver`.

        Raises:
            BoxError: the name is in use, or the driver is not such a subclass.
        """
        given: object = driver
        if not (isinstance(given, type) and issubclass(given, TubeDriver)):
            raise BoxError.procedure('tube control methods must contain functions "create_space" and "new"')
        if name in self:
            raise BoxError.procedure(f'overriding registered driver "{name}"')
        self[name] = driver

    def of(self, kind: object) -> type[TubeDriver]:
        """Return the driver of a type.

        Raises:
            BoxError: there is no such type.
        """
        driver = self.get(kind) if isinstance(kind, str) else None
        if driver is None:
            raise BoxError.procedure(f"Unknown tube type {lua_text(kind)}")
        return driver


drivers: Final = Drivers()
"""The registered types. The module's own register here when `tubes` imports them."""


def register_driver(name: str, driver: type[TubeDriver]) -> None:
    """Register a type of tubes; see `Drivers.register`."""
    drivers.register(name, driver)


def with_state(task: Tuple, state: str) -> Tuple:
    """Copy a task with another state, as drivers report removed tasks."""
    return task.transform(STATUS, 1, state)


def validate_space(space: Space, *indexes: str) -> None:
    """Check that an existing space has the indexes that a driver needs.

    Raises:
        BoxError: an index is missing.
    """
    for index in indexes:
        if index not in space.index:
            raise BoxError.procedure(f'space "{space.name}" does not have "{index}" index')


def follow(space: Space, changed: Trigger, undone: Trigger) -> None:
    """Call a driver's functions when rows of a space change, and when a change is undone. Repeated calls add
    nothing."""
    if changed not in space.core().on_replace.functions:
        space.on_replace(changed, undo=undone)


def unfollow(box: Box, space_name: str, changed: Trigger) -> None:
    """Remove the functions, if the space still exists."""
    if space_name in box.space and changed in box.space[space_name].core().on_replace.functions:
        box.space[space_name].on_replace(None, changed)
