"""Tubes of the type `fifottl`: tasks by priority and age, with delays, times to live and times to run.

Source: README of github.com/tarantool/queue, "fifottl".
"""

from __future__ import annotations

from typing import Final

from iproto_server import Box, Space, Tuple, Waiter, packed_arguments
from queue_lua_compat.tubes.arguments import chosen
from queue_lua_compat.tubes.driver import READY, OnTaskChange, Options, validate_space
from queue_lua_compat.tubes.drivers.fifo import id_after
from queue_lua_compat.tubes.drivers.ttl import (
    NEXT_EVENT,
    TIMED_FORMAT,
    WATCH_PARTS,
    TimedDriver,
    set_defaults,
)

_DATA: Final = 7
_READY_KEY: Final = [READY]
FORMAT: Final = (*TIMED_FORMAT, ("data", "*"))


class FifoTtlDriver(TimedDriver):
    """Takes tasks in the order of their priorities, the smallest first, and then of their ids."""

    @classmethod
    def create_space(cls, box: Box, space_name: str, options: Options) -> Space:
        """Create the space, or check an existing one."""
        set_defaults(options)
        if options.get("if_not_exists") and space_name in box.space:
            validate_space(box.space[space_name], "task_id", "status", "watch")
            return box.space[space_name]
        space = box.schema.create_space(
            space_name,
            format=FORMAT,
            temporary=chosen(options, "temporary", False),
            engine=options.get("engine") or "memtx",
        )
        space.create_index("task_id", parts=[(0, "unsigned")])
        space.create_index("status", parts=[(1, "string"), (5, "unsigned"), (0, "unsigned")])
        space.create_index("watch", parts=WATCH_PARTS, unique=False)
        return space

    @classmethod
    def new(cls, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> FifoTtlDriver:
        """Create the driver of a tube whose space exists."""
        validate_space(space, "task_id", "status", "watch")
        return cls(box, space, on_task_change, options)

    def normalize_task(self, task: Tuple) -> Tuple:
        """Return a task without its times and its priority."""
        return task.transform(NEXT_EVENT, _DATA - NEXT_EVENT)

    @packed_arguments(0)
    def put(self, data: object, options: Options) -> Tuple | Waiter | None:
        """Store a new task.

        Parameters:
            data: anything.
            options: `ttl`, `ttr`, `delay` in seconds, `pri`.
        """
        return self.store(data, options)

    def store(self, data: object, options: Options) -> Tuple:
        """Store a new task without a check for room."""
        task = self.space.insert([id_after(self.ids.max()), *self.times_of_new(options), data])
        self.on_task_change(task, "put")
        return task

    def take(self) -> Tuple | None:
        """Take the first ready task that has not expired."""
        ready = self.states
        task = ready.first(_READY_KEY)
        if task is not None and self.is_expired(task):
            task = next((other for other in ready.pairs([READY]) if not self.is_expired(other)), None)
        return None if task is None else self.make_taken(task)
