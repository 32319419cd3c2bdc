"""The queues that Lua code keeps, for operators: the tutorial's, and the tubes of the module tarantool/queue.

They are found whenever somebody asks, in the variables of the Lua code and in the spaces, so they cost
nothing in between. What such a queue does not note itself, as how long its tasks have waited, is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

from iproto_server import Application, Box, ManagedQueue, NamedQueues
from queue_lua_compat.lua_queues import lua_tubes, lua_tutorial

app = Application("queues of Lua")


@app.queues
def tutorial(box: Box) -> Iterable[ManagedQueue]:
    """Return the tutorial's queue, if Lua code keeps it."""
    queue = lua_tutorial.find(box)
    return [] if queue is None else [queue]


@app.queues
def tubes(box: Box) -> Iterable[ManagedQueue]:
    """Return the tubes of the module, if Lua code has loaded it."""
    return NamedQueues(lua_tubes.names(box), lambda name: lua_tubes.find(box, name))


@app.metrics
def counters(box: Box) -> dict[str, int]:
    """Return the numbers of tasks for Graphite, by the names that queues in Python give them."""
    found: dict[str, int] = {}
    queue = lua_tutorial.find(box)
    if queue is not None:
        found |= queue.counters()
    for name in lua_tubes.names(box):
        tube = lua_tubes.find(box, name)
        if tube is not None:
            found |= tube.counters()
    return found
