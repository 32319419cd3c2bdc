"""Sub-queues within a tube, with at most one taken task each: the common part of utube and utubettl.

Source: README of github.com/tarantool/queue, "utube".
"""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar
from uuid import UUID

from iproto_server import Box, BoxError, Space, Tuple
from queue_lua_compat.lua_numbers import described, shown
from queue_lua_compat.tubes.driver import READY, TASK_ID, OnTaskChange, Options, TubeDriver
from queue_lua_compat.tubes.drivers.ready_buffer import ReadyBuffer
from queue_lua_compat.tubes.drivers.ready_heads import ReadyHeads

_ADMINISTRATIVE_FROM = 2


class SubQueues(TubeDriver):
    """A driver whose tasks are in sub-queues. Another base class provides the other rules.

    Attributes:
        utube: the number of the field that names the sub-queue; the data follows it.
        order: the name of the index by state, sub-queue, and the ordering fields.
        sorts: the numbers of the ordering fields, the id last.
        heads: the tasks that can be taken.
        buffer: the space of their ids, for `storage_mode = "ready_buffer"`.
    """

    utube: ClassVar[int]
    order: ClassVar[str]
    sorts: ClassVar[tuple[int, ...]] = (TASK_ID,)

    def __init__(self, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> None:
        super().__init__(box, space, on_task_change, options)
        self._utubes = space.index["utube"]
        self.buffer = ReadyBuffer(box, space, options, self.sorts[:-1])
        moved = self.buffer.keep if self.buffer.is_wanted else None
        self.heads = ReadyHeads(box, space, self.order, (*self.sorts, self.utube), moved)

    def start(self) -> None:
        """Find the tasks that can be taken, and follow their changes."""
        self.buffer.open()
        self.heads.start()
        self.buffer.prune(self.heads)
        super().start()

    def stop(self) -> None:
        """Stop following changes."""
        super().stop()
        self.heads.stop()

    def normalize_task(self, task: Tuple) -> Tuple:
        """Return a task as clients see it: id, state and data."""
        return task.transform(_ADMINISTRATIVE_FROM, self.utube + 1 - _ADMINISTRATIVE_FROM)

    def details(self, task: Tuple) -> dict[str, object]:
        """See `TubeDriver`."""
        return super().details(task) | {"utube": task[self.utube]}

    def announce_next(self, task: Tuple) -> None:
        """Report the next task of a sub-queue that a task no longer blocks."""
        following = self._utubes.first([READY, task[self.utube]])
        if following is not None:
            self.on_task_change(following, None)

    def truncate(self) -> None:
        """Remove all tasks."""
        super().truncate()
        self.buffer.truncate()

    def drop(self) -> None:
        """Remove the spaces."""
        super().drop()
        self.buffer.drop()

    def grant(self, user: str, *, if_not_exists: bool = True) -> None:
        """Grant a user read and write access to the spaces."""
        super().grant(user, if_not_exists=if_not_exists)
        self.buffer.grant(self.box.schema.user, user, if_not_exists=if_not_exists)

    def grant_role(self, role: str, *, if_not_exists: bool = True) -> None:
        """Grant a role read and write access to the spaces."""
        super().grant_role(role, if_not_exists=if_not_exists)
        self.buffer.grant(self.box.schema.role, role, if_not_exists=if_not_exists)


def sub_queue(name: object) -> str:
    """Convert the name of a sub-queue like Lua's `tostring`.

    Parameters:
        name: a string, a number, a boolean or a UUID; None for the sub-queue of tasks without a name.

    Raises:
        BoxError: it is something else, which Lua would convert to its memory address.
    """
    if name is None:
        return "nil"
    if isinstance(name, str):
        return name
    if isinstance(name, bool):
        return "true" if name else "false"
    if isinstance(name, (int, float)):
        return shown(name)
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    if isinstance(name, UUID):
        return str(name)
    if isinstance(name, Decimal):
        return f"{name:f}"
    raise BoxError.procedure(f"utube must be a text, a number, a boolean or a UUID, not {described(name)}")
