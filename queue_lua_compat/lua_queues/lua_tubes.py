"""Tubes of the module github.com/tarantool/queue, which Lua code has loaded.

Operators see their tasks in the spaces of the module, and its own counters of calls. Changes are made by the
module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from iproto_server import Box, BoxError, IteratorType, Space, TaskInfo, TaskState, Tuple
from queue_lua_compat.lua_queues.lua_queue import LuaQueue
from queue_lua_compat.tubes.driver import TubeDriver
from queue_lua_compat.tubes.drivers.fifo import FifoDriver
from queue_lua_compat.tubes.drivers.fifottl import FifoTtlDriver
from queue_lua_compat.tubes.drivers.utube import UtubeDriver
from queue_lua_compat.tubes.drivers.utubettl import UtubeTtlDriver
from queue_lua_compat.tubes.rows import TubeRows
from queue_lua_compat.tubes.statistics import tasks_by_state
from queue_lua_compat.tubes.system.system_spaces import CONSUMERS, QUEUE
from queue_lua_compat.tubes.system.system_spaces import TAKEN as TAKEN_SPACE

_DRIVERS: Final[Mapping[str, type[TubeDriver]]] = {
    "fifo": FifoDriver,
    "fifottl": FifoTtlDriver,
    "limfifottl": FifoTtlDriver,
    "utube": UtubeDriver,
    "utubettl": UtubeTtlDriver,
}
"""What reads the rows of the module's types; another type's rows are read as those of `fifo`."""

_NUMBER, _SPACE, _KIND, _OPTIONS = 1, 2, 3, 4

_NAMES: Final = """\
local abstract, names = package.loaded['queue.abstract'], {}
if type(abstract) == 'table' and type(abstract.tube) == 'table' then
    for name in pairs(abstract.tube) do names[#names + 1] = name end
end
return names
"""
_IS_KEPT: Final = """\
local abstract = package.loaded['queue.abstract']
return type(abstract) == 'table' and type(abstract.tube) == 'table' and rawget(abstract.tube, (...)) ~= nil
"""
_CALLS: Final = """\
local calls = {}
for name, count in pairs(rawget(package.loaded['queue.abstract'].stat, (...)) or {}) do
    if type(count) == 'number' and name ~= 'done' then calls[name] = count end
end
return setmetatable(calls, {__serialize = 'map'})
"""
_CALL: Final = """\
local name, method, argument, options = ...
local tube = package.loaded['queue.abstract'].tube[name]
local answer = tube[method](tube, argument, options)
return box.tuple.is(answer) and answer[1] or answer
"""
_RELEASE: Final = """\
local name, id = ...
local tube = package.loaded['queue.abstract'].tube[name]
return tube.raw:release(id, {}) ~= nil
"""


def names(box: Box) -> list[str]:
    """Return the names of the tubes, whose system spaces exist; none if no Lua code has loaded the module."""
    found: list[str] = box.evaluate_lua(_NAMES)[0]
    return found


def find(box: Box, name: str) -> LuaTube | None:
    """Return the tube of a name; None if Lua code has none, or if its space is of another form."""
    if box.evaluate_lua(_IS_KEPT, name) != [True]:
        return None
    row = box.space[QUEUE].get([name])
    if row is None or row[_SPACE] not in box.space:
        return None
    space = box.space[row[_SPACE]]
    if "status" not in space.index:
        return None
    try:
        return LuaTube(box, name, row, space)
    except BoxError:  # indexes that its type has are missing
        return None


class LuaTube(TubeRows, LuaQueue):
    """A tube.

    Parameters:
        box: the box.
        name: its name.
        row: its row of `_queue`.
        space: the space of its tasks.
    """

    def __init__(self, box: Box, name: str, row: Tuple, space: Space) -> None:
        super().__init__(box, name, row[_KIND])
        self.space = space
        self._number = row[_NUMBER]
        driver = _DRIVERS.get(row[_KIND], FifoDriver)
        self.raw = driver.new(box, space, lambda task, event: None, dict(row[_OPTIONS] or {}))

    @property
    def actions(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return frozenset({"put", "release", "kick", "bury", "delete", "move"})

    @property
    def options(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return self.raw.put_options or frozenset()

    # -- figures --

    def calls(self) -> dict[str, int]:
        """See `ManagedQueue`."""
        calls: dict[str, int] = self.box.evaluate_lua(_CALLS, self.space.name)[0]
        return calls

    def consumers_waiting(self) -> int:
        """See `ManagedQueue`."""
        consumers = self.box.space[CONSUMERS].index["consumer"].tree
        return consumers.count(IteratorType.EQ, [self._number])

    def counters(self) -> dict[str, int]:
        """See `LuaQueue`."""
        return {f"{self.name}.{state}": number for state, number in tasks_by_state(self.space).items()}

    # -- tasks --

    def taken_by(self, task_id: object) -> Tuple | None:
        """See `TubeRows`."""
        return self.box.space[TAKEN_SPACE].get([self._number, task_id])

    def created(self, row: Tuple) -> int | None:
        """See `TubeRows`."""
        stored = self.raw.created(row)
        return None if stored is None else stored * 1000

    # -- actions --

    def put(self, data: object, options: Mapping[str, object]) -> TaskInfo:
        """See `ManagedQueue`."""
        self.check_options(options)
        return self.info_of_put(self._call("put", data, dict(options)), data)

    def release(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        task = self.existing_not(TaskState.READY, task_id)
        self.box.evaluate_lua(_RELEASE, self.name, task.id)
        return self.existing(task.id)[1]

    def bury(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        task = self.existing_not(TaskState.BURIED, task_id)
        self._call("bury", task.id)
        return self.existing(task.id)[1]

    def delete(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        task = self.existing(task_id)[1]
        self._call("delete", task.id)
        return task

    def kick(self, count: int) -> int:
        """See `ManagedQueue`."""
        return int(self._call("kick", count))

    def _call(self, method: str, *arguments: object) -> Any:
        """Call a method of the tube. Returns the id of a task, or what is no task."""
        [answer] = self.box.evaluate_lua(_CALL, self.name, method, *arguments)
        if answer is None:
            raise BoxError.procedure(
                f'the module answers nothing: the queue "{self.name}" is full, or not running'
            )
        return answer
