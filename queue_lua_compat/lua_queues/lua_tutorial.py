"""The tutorial's queue, kept by Lua code in the global variable `queue` and the space of the same name.

Operators see its tasks in the space. The owners of taken tasks are those in the table `queue.taken`, whose
keys are ids in MessagePack, and consumers wait at the channel `queue._wait`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iproto_server import Box, Space, TaskInfo, TaskState, Tuple
from queue_lua_compat.lua_queues.lua_queue import LuaQueue
from queue_lua_compat.tutorial.rows import TutorialRows
from queue_lua_compat.tutorial.space import READY, RUN_AT, SPACE, STATUS, TAKEN

_FIELDS: Final = ["id", "status", "runat", "data"]
_INDEXES: Final = ("primary", "status")

_IS_KEPT: Final = """\
local queue = rawget(_G, 'queue')
if type(queue) ~= 'table' then return false end
return type(rawget(queue, 'put')) == 'function' and type(rawget(queue, 'take')) == 'function'
"""
_OWNER: Final = """\
local taken = rawget(_G.queue, 'taken')
return type(taken) == 'table' and taken[require('msgpack').encode((...))] or nil
"""
_PUT: Final = "local task = queue.put(...) return task.id"
_FORGET: Final = """\
local key = require('msgpack').encode((...))
local taken, bysid = rawget(_G.queue, 'taken'), rawget(_G.queue, 'bysid')
if type(taken) ~= 'table' or not taken[key] then return end
local ids = type(bysid) == 'table' and bysid[taken[key]]
if ids then ids[key] = nil end
taken[key] = nil
"""
_READERS: Final = """\
local waiting = rawget(_G.queue, '_wait')
return waiting and require('internal.fibers.channel').reader_count(waiting) or 0
"""
_WAKE: Final = """\
local waiting = rawget(_G.queue, '_wait')
if waiting and waiting:has_readers() then waiting:put(true, 0) end
"""


def find(box: Box) -> LuaTutorialQueue | None:
    """Return the queue, whose space exists; None if no Lua code keeps it."""
    space = box.space[SPACE]
    fields = [field.get("name") for field in space.format()]
    if fields != _FIELDS or any(name not in space.index for name in _INDEXES):
        return None
    return LuaTutorialQueue(box, space) if box.evaluate_lua(_IS_KEPT) == [True] else None


class LuaTutorialQueue(TutorialRows, LuaQueue):
    """The queue.

    Parameters:
        box: the box.
        space: its space.
    """

    def __init__(self, box: Box, space: Space) -> None:
        super().__init__(box, space.name, "tutorial")
        self.space = space

    @property
    def actions(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return frozenset({"put", "release", "delete", "move"})

    @property
    def options(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return frozenset({"delay"})

    # -- figures --

    def calls(self) -> dict[str, int]:
        """See `ManagedQueue`. The tutorial's code counts no calls."""
        return {}

    def consumers_waiting(self) -> int:
        """See `ManagedQueue`. They wait at the channel `queue._wait`."""
        waiting: int = self.box.evaluate_lua(_READERS)[0]
        return waiting

    def counters(self) -> dict[str, int]:
        """See `LuaQueue`."""
        counts = self.counts()
        return {
            "total": self.space.len(),
            "ready": counts[TaskState.READY],
            "waiting": counts[TaskState.DELAYED],
            "taken": counts[TaskState.TAKEN],
        }

    # -- tasks --

    def info(self, row: Tuple) -> TaskInfo:
        """See `ListedTasks`."""
        session = None
        if row[STATUS] == TAKEN:
            [session] = self.box.evaluate_lua(_OWNER, row[0])
        return self.described(row, session=session)

    def taken_at(self, row: Tuple) -> float | None:
        """See `ListedTasks`. The tutorial's code does not note it."""
        return None

    # -- actions --

    def put(self, data: object, options: Mapping[str, object]) -> TaskInfo:
        """See `ManagedQueue`."""
        self.check_options(options)
        [task_id] = self.box.evaluate_lua(_PUT, data, dict(options))
        return self.info_of_put(task_id, data)

    def release(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`. A consumer that had the task cannot acknowledge it any more."""
        task = self.existing_not(TaskState.READY, task_id)
        released = self.space.update(task.id, (("=", STATUS, READY), ("=", RUN_AT, 0)))
        assert released is not None
        self.box.on_commit(lambda: self._released(task.id))
        return self.described(released)

    def _released(self, task_id: int | str) -> None:
        self.box.evaluate_lua(_FORGET, task_id)
        self.box.evaluate_lua(_WAKE)

    def delete(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        self.space.delete(row[0])
        self.box.on_commit(lambda: self.box.evaluate_lua(_FORGET, row[0]))
        return task
