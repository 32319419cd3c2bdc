"""Drivers: how the tubes of one type keep their tasks, and how an application brings a type of its own.

A driver stores tasks as rows of its tube's space. All that the queue knows of a row is its first field, the
task's id, and its second, the state. Whatever happens to a task the driver tells the queue, which counts it,
remembers who has taken it, and wakes those who wait.

Source: README of github.com/tarantool/queue, "Driver API".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from iproto_server import Box, BoxError, Space, Trigger, Tuple, Waiter, pack

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
"""Options as a client gives them, or as they stand in `_queue`."""

OnTaskChange = Callable[[Tuple | None, str | None], None]
"""Told of a task (as it is now; of a removed one as it was, with the state `DONE`) and of what has happened:
"put", "take", "release", "bury", "kick", "delete", "touch", "ttl", "ttr", "delay", or None for a task that
nothing has happened to but that can be taken now. A task that is `READY` wakes one who waits."""


class TubeDriver(ABC):
    """One tube's tasks. A driver for a type of one's own derives from it and is registered under a name.

    Everything runs within the transaction of whoever calls, and with the rights of its user; what is raised
    undoes what was changed. What a driver keeps beside its spaces has to follow when a transaction is undone:
    `box.on_rollback`, or a trigger's `undo`.

    Time: a driver whose tasks have deadlines creates a `queue_lua_compat.due_timer.DueTimer`, schedules each
    deadline (best from an `on_replace` trigger of its space), begins it in `start` and stops it in `stop`.
    `drivers.ttl.TimedDriver` is an example.

    Parameters:
        box: the box.
        space: where the tasks are, as `create_space` made it.
        on_task_change: to be told of every change of a task.
        options: the tube's.

    Attributes:
        supports_grant_role: whether `grant_role` may be called.
    """

    supports_grant_role: ClassVar[bool] = True

    def __init__(self, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> None:
        self.box = box
        self.space = space
        self.on_task_change = on_task_change
        self.options = options

    @classmethod
    @abstractmethod
    def create_space(cls, box: Box, space_name: str, options: Options) -> Space:
        """Make the space of a new tube, or, with the option `if_not_exists`, check one that is there.

        Parameters:
            box: the box.
            space_name: the tube's name.
            options: the tube's; what is put into it here is stored in `_queue`, too.
        """

    @classmethod
    def new(cls, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> Self:
        """Make the driver of a tube whose space is there, also after a restart. Nothing happens before
        `start`."""
        return cls(box, space, on_task_change, options)

    def start(self) -> None:  # noqa: B027  # most drivers have nothing to start
        """Begin: set timers."""

    def stop(self) -> None:  # noqa: B027  # as above
        """End: cancel timers, delete triggers, give up those who wait. Called on drop, too."""

    def normalize_task(self, task: Tuple) -> Tuple:
        """A task as clients see it: id, state and data."""
        return task

    @abstractmethod
    def put(self, data: object, options: Options) -> Tuple | Waiter | None:
        """Store a new task.

        Parameters:
            data: anything.
            options: the call's.

        Returns: the task as stored; a waiter whose result is the *normalized* task; None if there is no room.
        """

    @abstractmethod
    def take(self) -> Tuple | None:
        """Make one ready task taken, and answer it, or None where none is ready."""

    @abstractmethod
    def touch(self, task_id: object, delta: int) -> Tuple | None:
        """Give a task more time.

        Parameters:
            task_id: the task's id.
            delta: microseconds, or `time.TIMEOUT_INFINITY`.
        """

    def delete(self, task_id: object) -> Tuple | None:
        """Remove a task. Returns: it, as it was but `DONE`."""
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
        """Set a task aside."""

    @abstractmethod
    def kick(self, count: int) -> int:
        """Make up to `count` buried tasks ready. Returns: how many."""

    def peek(self, task_id: object) -> Tuple | None:
        """A task, or None."""
        return self.space.get(task_id)

    def tasks_by_state(self, state: str) -> Iterator[Tuple]:
        """The tasks in a state, by the index `status`; they may be changed on the way."""
        return self.space.index["status"].pairs([state])

    def truncate(self) -> None:
        """Remove all tasks."""
        self.space.truncate()

    def drop(self) -> None:
        """Remove the tube's space (and others that the driver has made)."""
        self.space.drop()

    def grant(self, user: str, *, if_not_exists: bool = True) -> None:
        """Let a user read and write the tube's spaces."""
        self.box.schema.user.grant(user, "read,write", "space", self.space.name, if_not_exists=if_not_exists)

    def grant_role(self, role: str, *, if_not_exists: bool = True) -> None:
        """Let a role read and write the tube's spaces."""
        self.box.schema.role.grant(role, "read,write", "space", self.space.name, if_not_exists=if_not_exists)


class Drivers(dict[str, type[TubeDriver]]):
    """The types of tubes by name."""

    def register(self, name: str, driver: type[TubeDriver]) -> None:
        """Add a type.

        Parameters:
            name: the type's name in `queue.create_tube`.
            driver: a subclass of `TubeDriver`.

        Raises:
            BoxError: there is a type of that name, or the driver is none.
        """
        given: object = driver
        if not (isinstance(given, type) and issubclass(given, TubeDriver)):
            raise BoxError.procedure('tube control methods must contain functions "create_space" and "new"')
        if name in self:
            raise BoxError.procedure(f'overriding registered driver "{name}"')
        self[name] = driver


drivers: Final = Drivers()
"""The types there are. Those of the module register here when they are imported by `tubes`."""


def register_driver(name: str, driver: type[TubeDriver]) -> None:
    """Add a type of tubes; see `Drivers.register`."""
    drivers.register(name, driver)


def with_state(task: Tuple, state: str) -> Tuple:
    """A copy of a task in another state, as a driver reports a task that it has removed."""
    fields = list(task.fields)
    fields[STATUS] = state
    return Tuple(pack(fields), task.format, fields)


def validate_space(space: Space, *indexes: str) -> None:
    """See whether a space that was there before its tube has the indexes that the driver needs.

    Raises:
        BoxError: one is missing.
    """
    for index in indexes:
        if index not in space.index:
            raise BoxError.procedure(f'space "{space.name}" does not have "{index}" index')


def follow(space: Space, changed: Trigger, undone: Trigger) -> None:
    """Call a driver's functions when rows of a space change, and when that is undone; once, however often
    this is called."""
    if changed not in space.core().on_replace.functions:
        space.on_replace(changed, undo=undone)


def unfollow(box: Box, space_name: str, changed: Trigger) -> None:
    """Call them no more, if the space is still there."""
    if space_name in box.space and changed in box.space[space_name].core().on_replace.functions:
        box.space[space_name].on_replace(None, changed)
