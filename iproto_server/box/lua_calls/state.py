"""State and options of the instance for CALL: `box.info`, `box.stat`, `box.cfg`.

Source: Tarantool reference, "Submodule box.info", "box.stat", "box.slab", "box.cfg".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from iproto_server.box.api.lua_arguments import argument, lua_type
from iproto_server.errors import BoxError

if TYPE_CHECKING:
    from iproto_server.box.api.box import Box

Call = Callable[[list[Any]], object]


def state_calls(box: Box) -> dict[str, Call]:
    """Functions of a call's arguments, by name. As in Lua, surplus arguments are ignored."""

    def configure(arguments: list[Any]) -> None:
        options = argument(arguments, 0)
        if options is None or options == []:
            return
        if not isinstance(options, dict):
            # A list is a table with the keys 1, 2 and so on.
            if isinstance(options, list):
                options = dict(enumerate(options, 1))
            else:
                raise BoxError.procedure(
                    f"bad argument #1 to 'pairs' (table expected, got {lua_type(options)})"
                )
        box.cfg({str(name): value for name, value in options.items()})

    return {
        "box.info": lambda arguments: box.info(),
        "box.info.memory": lambda arguments: box.info.memory(),
        "box.info.gc": lambda arguments: box.info.gc(),
        "box.info.sql": lambda arguments: box.info.sql(),
        "box.stat": lambda arguments: box.stat(),
        "box.stat.net": lambda arguments: box.stat.net(),
        "box.stat.net.thread": lambda arguments: box.stat.net.thread(),
        "box.stat.reset": lambda arguments: box.stat.reset(),
        "box.slab.info": lambda arguments: box.slab.info(),
        "box.runtime.info": lambda arguments: box.runtime.info(),
        "box.cfg": configure,
    }
