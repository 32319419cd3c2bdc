"""The queues that Lua code keeps, for operators: the tutorial's, and the tubes of the module tarantool/queue.

They are found whenever somebody asks, in the variables of the Lua code and in the spaces, so they cost
nothing in between. What such a queue does not note itself, as how long its tasks have waited, is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from iproto_server import Application, Box, ManagedQueue, NamedQueues

if TYPE_CHECKING:
    from queue_lua_compat.lua_queues.lua_queue import LuaQueue

# Every server with Lua has these applications, so they import the rest where there are such spaces only.
_TUTORIAL_SPACE: Final = "queue"
_TUBES_SPACE: Final = "_queue"

# Metrics have the names of the applications: the same as those of the queues in Python.
tutorial: Final = Application("queue")
tubes: Final = Application("tubes")


@tutorial.queues
def tutorial_queues(box: Box) -> Iterable[ManagedQueue]:
    """Return the tutorial's queue, if Lua code keeps it."""
    if _TUTORIAL_SPACE not in box.space:
        return []
    from queue_lua_compat.lua_queues import lua_tutorial

    queue = lua_tutorial.find(box)
    return [] if queue is None else [queue]


@tutorial.metrics
def tutorial_counters(box: Box) -> dict[str, int]:
    """Return the numbers of its tasks by their state."""
    return _counters(tutorial_queues(box))


@tubes.queues
def tube_queues(box: Box) -> Iterable[ManagedQueue]:
    """Return the tubes of the module, if Lua code has loaded it."""
    if _TUBES_SPACE not in box.space:
        return []
    from queue_lua_compat.lua_queues import lua_tubes

    return NamedQueues(lua_tubes.names(box), lambda name: lua_tubes.find(box, name))


@tubes.metrics
def tube_counters(box: Box) -> dict[str, int]:
    """Return the numbers of their tasks by tube and state."""
    return _counters(tube_queues(box))


def _counters(queues: Iterable[ManagedQueue]) -> dict[str, int]:
    found: dict[str, int] = {}
    for queue in queues:
        found |= cast("LuaQueue", queue).counters()
    return found
