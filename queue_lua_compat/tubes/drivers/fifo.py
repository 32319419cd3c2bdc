"""Tubes of the type `fifo`: tasks in order of arrival.

Source: README of github.com/tarantool/queue, "fifo".
"""

from __future__ import annotations

from typing import ClassVar, Final

from iproto_server import Box, BoxError, Space, Tuple, packed_arguments
from queue_lua_compat.tubes.arguments import chosen
from queue_lua_compat.tubes.driver import (
    BURIED,
    READY,
    STATUS,
    TAKEN,
    TASK_ID,
    OnTaskChange,
    Options,
    TubeDriver,
    validate_space,
)

FORMAT: Final = (("task_id", "unsigned"), ("status", "string"), ("data", "*"))
_READY_KEY: Final = [READY]
_TO_READY: Final = (("=", STATUS, READY),)
_TO_TAKEN: Final = (("=", STATUS, TAKEN),)
_TO_BURIED: Final = (("=", STATUS, BURIED),)


class FifoDriver(TubeDriver):
    """Takes tasks in the order of their ids.

    Attributes:
        ids, states: the indexes by id and by state.
    """

    has_dead_letters = True
    put_options: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> None:
        super().__init__(box, space, on_task_change, options)
        self.ids, self.states = space.index[0], space.index["status"]

    @classmethod
    def create_space(cls, box: Box, space_name: str, options: Options) -> Space:
        """Create the space, or check an existing one."""
        if options.get("if_not_exists") and space_name in box.space:
            validate_space(box.space[space_name], "task_id", "status")
            return box.space[space_name]
        space = box.schema.create_space(
            space_name,
            format=FORMAT,
            temporary=chosen(options, "temporary", False),
            engine=options.get("engine") or "memtx",
        )
        space.create_index("task_id", parts=[(0, "unsigned")])
        space.create_index("status", parts=[(1, "string"), (0, "unsigned")])
        return space

    @classmethod
    def new(cls, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> FifoDriver:
        """Create the driver of a tube whose space exists."""
        validate_space(space, "task_id", "status")
        return cls(box, space, on_task_change, options)

    @packed_arguments(0)
    def put(self, data: object, options: Options) -> Tuple:
        """Store a new task, which is ready at once."""
        task = self.space.insert([id_after(self.ids.max()), READY, data])
        self.on_task_change(task, "put")
        return task

    def adopt(self, task: Tuple) -> Tuple:
        """Store a task of another tube."""
        adopted = self.space.insert([free_id(self.space, task[TASK_ID]), READY, *task[STATUS + 1 :]])
        self.on_task_change(adopted, "put")
        return adopted

    def take(self) -> Tuple | None:
        """Take the ready task with the smallest id."""
        first = self.states.first(_READY_KEY)
        return None if first is None else self._change(first[0], _TO_TAKEN, "take")

    def touch(self, task_id: object, delta: int) -> Tuple | None:
        """Raise BoxError: tasks of this type have no times."""
        raise BoxError.procedure("fifo queue does not support touch")

    def release(self, task_id: object, options: Options) -> Tuple | None:
        """Make a task ready again."""
        return self._change(task_id, _TO_READY, "release")

    def bury(self, task_id: object) -> Tuple | None:
        """Bury a task."""
        return self._change(task_id, _TO_BURIED, "bury")

    def kick(self, count: int) -> int:
        """Make buried tasks ready, those with the smallest ids first, and return their number."""
        for kicked in range(count):
            first = self.states.first([BURIED])
            if first is None:
                return kicked
            self._change(first[0], _TO_READY, "kick")
        return count

    def _change(
        self, task_id: object, operations: tuple[tuple[str, int, object], ...], event: str
    ) -> Tuple | None:
        task = self.space.update(task_id, operations)
        if task is not None:
            self.on_task_change(task, event)
        return task


def next_id(space: Space) -> int:
    """Return the id of a new task: the greatest id plus one, or 0."""
    return id_after(space.index[0].max())


def free_id(space: Space, wanted: int) -> int:
    """Return an id if no task has it, otherwise that of a new task."""
    return wanted if space.get(wanted) is None else next_id(space)


def id_after(last: Tuple | None) -> int:
    """Return the id of a new task after that with the greatest id, or None."""
    return 0 if last is None else last[0] + 1
