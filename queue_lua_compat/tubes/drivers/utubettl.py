"""Tubes of the type `utubettl`: tasks with priorities and times, in sub-queues.

Source: README of github.com/tarantool/queue, "utubettl".
"""

from __future__ import annotations

from typing import ClassVar, Final

from iproto_server import Box, Space, Tuple, packed_arguments
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import chosen
from queue_lua_compat.tubes.driver import (
    DELAYED,
    STATUS,
    TAKEN,
    TASK_ID,
    OnTaskChange,
    Options,
    validate_space,
)
from queue_lua_compat.tubes.drivers.fifo import id_after
from queue_lua_compat.tubes.drivers.sub_queues import SubQueues, sub_queue
from queue_lua_compat.tubes.drivers.ttl import (
    NEXT_EVENT,
    PRI,
    TIMED_FORMAT,
    TTR,
    WATCH_PARTS,
    TimedDriver,
    set_defaults,
)

FORMAT: Final = (*TIMED_FORMAT, ("utube", "string"), ("data", "*"))
_INDEXES: Final = ("task_id", "status", "utube", "watch", "utube_pri")
_UTUBE: Final = 7


class UtubeTtlDriver(SubQueues, TimedDriver):
    """Sub-queues whose tasks are taken by priority, the smallest first."""

    utube = _UTUBE
    order = "utube_pri"
    sorts = (PRI, TASK_ID)
    put_options: ClassVar[frozenset[str]] = TimedDriver.put_options | {"utube"}
    status_order = TimedDriver.status_order

    @classmethod
    def create_space(cls, box: Box, space_name: str, options: Options) -> Space:
        """Create the space, or check an existing one; default times are stored with the options."""
        set_defaults(options)
        if options.get("if_not_exists") and space_name in box.space:
            validate_space(box.space[space_name], *_INDEXES)
            return box.space[space_name]
        space = box.schema.create_space(
            space_name,
            format=FORMAT,
            temporary=chosen(options, "temporary", False),
            engine=options.get("engine") or "memtx",
        )
        state, utube, pri, task_id = (1, "string"), (7, "string"), (5, "unsigned"), (0, "unsigned")
        space.create_index("task_id", parts=[task_id])
        space.create_index("status", parts=[state, pri, task_id])
        space.create_index("watch", parts=WATCH_PARTS, unique=False)
        space.create_index("utube", parts=[state, utube, task_id])
        space.create_index("utube_pri", parts=[state, utube, pri, task_id])
        return space

    @classmethod
    def new(cls, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> UtubeTtlDriver:
        """Create the driver of a tube whose space exists."""
        validate_space(space, *_INDEXES)
        return cls(box, space, on_task_change, options)

    @packed_arguments(0)
    def put(self, data: object, options: Options) -> Tuple:
        """Store a new task in the sub-queue given by the option `utube`."""
        times = self.times_of_new(options)
        task = self.space.insert([id_after(self.ids.max()), *times, sub_queue(options.get("utube")), data])
        self.on_task_change(task, "put")
        return task

    def take(self) -> Tuple | None:
        """Take the first ready task, by priority and id, of the sub-queues that are not busy."""
        while (head := self.heads.first()) is not None:
            if not self.is_expired(head):
                return self.make_taken(head)
            self._expire(head)
        return None

    def make_taken(self, task: Tuple) -> Tuple:
        """Make a task taken until its time to run ends, even if its life ends before."""
        until = timestamps.now(self.box) + task[TTR]
        if until > timestamps.NEVER:
            until = timestamps.NEVER
        return self.change(task, "take", ("=", STATUS, TAKEN), ("=", NEXT_EVENT, until))

    def delete(self, task_id: object) -> Tuple | None:
        """Remove a task, and return its row with the state `DONE`."""
        before = self.space.get(task_id)
        task = super().delete(task_id)
        if task is not None and before is not None and before[STATUS] == TAKEN:
            self.announce_next(task)
        return task

    def release(self, task_id: object, options: Options) -> Tuple | None:
        """Make a task ready again, or delayed with `delay`, which lets others of its sub-queue come
        first."""
        task = super().release(task_id, options)
        if task is not None and task[STATUS] == DELAYED:
            self.announce_next(task)
        return task

    def postpone(self, task_id: object, seconds: float) -> None:
        """Make a ready task delayed, which lets others of its sub-queue come first."""
        super().postpone(task_id, seconds)
        task = self.space.get(task_id)
        if task is not None:
            self.announce_next(task)

    def bury(self, task_id: object) -> Tuple | None:
        """Bury a task until it expires."""
        task = super().bury(task_id)
        if task is not None:
            self.announce_next(task)
        return task
