"""Tubes of the type `utube`: tasks in order of arrival, in sub-queues.

Source: README of github.com/tarantool/queue, "utube".
"""

from __future__ import annotations

from typing import Final

from iproto_server import Box, BoxError, Space, Tuple, packed_arguments
from queue_lua_compat.tubes.arguments import chosen
from queue_lua_compat.tubes.driver import READY, STATUS, TAKEN, TASK_ID, OnTaskChange, Options, validate_space
from queue_lua_compat.tubes.drivers.fifo import FifoDriver, id_after
from queue_lua_compat.tubes.drivers.sub_queues import SubQueues, sub_queue

FORMAT: Final = (("task_id", "unsigned"), ("status", "string"), ("utube", "string"), ("data", "*"))
_INDEXES: Final = ("task_id", "status", "utube")
_UTUBE: Final = 2
_TO_TAKEN: Final = (("=", STATUS, TAKEN),)


class UtubeDriver(SubQueues, FifoDriver):
    """A tube of sub-queues, each strictly first in, first out."""

    utube = _UTUBE
    order = "utube"
    put_options = frozenset({"utube"})

    @classmethod
    def create_space(cls, box: Box, space_name: str, options: Options) -> Space:
        """Create the space, or check an existing one."""
        if options.get("if_not_exists") and space_name in box.space:
            validate_space(box.space[space_name], *_INDEXES)
            return box.space[space_name]
        space = box.schema.create_space(
            space_name,
            format=FORMAT,
            temporary=chosen(options, "temporary", False),
            engine=options.get("engine") or "memtx",
        )
        space.create_index("task_id", parts=[(0, "unsigned")])
        space.create_index("status", parts=[(1, "string"), (0, "unsigned")])
        space.create_index("utube", parts=[(1, "string"), (2, "string"), (0, "unsigned")])
        return space

    @classmethod
    def new(cls, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> UtubeDriver:
        """Create the driver of a tube whose space exists."""
        validate_space(space, *_INDEXES)
        return cls(box, space, on_task_change, options)

    @packed_arguments(0)
    def put(self, data: object, options: Options) -> Tuple:
        """Store a new task at the end of the sub-queue given by the option `utube`."""
        task = self.space.insert([id_after(self.ids.max()), READY, sub_queue(options.get("utube")), data])
        self.on_task_change(task, "put")
        return task

    def take(self) -> Tuple | None:
        """Take the ready task with the smallest id of the sub-queues that are not busy."""
        head = self.heads.first()
        if head is None:
            return None
        task = self.space.update(head[TASK_ID], _TO_TAKEN)
        self.on_task_change(task, "take")
        return task

    def touch(self, task_id: object, delta: int) -> Tuple | None:
        """Raise BoxError: tasks of this type have no times."""
        raise BoxError.procedure("utube queue does not support touch")

    def delete(self, task_id: object) -> Tuple | None:
        """Remove a task, and return its row with the state `DONE`."""
        task = super().delete(task_id)
        if task is not None:
            self.announce_next(task)
        return task

    def bury(self, task_id: object) -> Tuple | None:
        """Bury a task."""
        task = super().bury(task_id)
        if task is not None:
            self.announce_next(task)
        return task
