"""Events and messages for CALL: `box.broadcast`, `box.watch_once`, `box.session.push`.

Source: Tarantool reference, "Event watchers", "box.session.push()".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from iproto_server.box.api.lua_arguments import argument, lua_type
from iproto_server.errors import BoxError

if TYPE_CHECKING:
    from iproto_server.box.api.box import Box

Call = Callable[[list[Any]], object]


def event_calls(box: Box) -> dict[str, Call]:
    """Functions of a call's arguments, by name."""

    def broadcast(arguments: list[Any]) -> None:
        if not 1 <= len(arguments) <= 2:
            raise BoxError.procedure("Usage: box.broadcast(key[, value])")
        box.broadcast(_key(arguments), argument(arguments, 1))

    def watch(arguments: list[Any]) -> None:
        if len(arguments) != 2:
            raise BoxError.procedure("Usage: box.watch(key, function)")
        _key(arguments)
        # A function cannot be sent.
        raise BoxError.procedure(f"bad argument #2 to '?' (function expected, got {lua_type(arguments[1])})")

    def watch_once(arguments: list[Any]) -> object:
        if len(arguments) != 1:
            raise BoxError.procedure("Usage: box.watch_once(key)")
        return box.watch_once(_key(arguments))

    def push(arguments: list[Any]) -> bool:
        if len(arguments) != 1:
            raise BoxError.procedure("Usage: box.session.push(data)")
        return box.session.push(arguments[0])

    return {
        "box.broadcast": broadcast,
        "box.watch": watch,
        "box.watch_once": watch_once,
        "box.session.push": push,
    }


def _key(arguments: list[Any]) -> str:
    """The first argument as a string; as in Lua, a number is converted."""
    given = arguments[0]
    if isinstance(given, int | float) and not isinstance(given, bool):
        return str(given)
    if not isinstance(given, str):
        raise BoxError.procedure(f"bad argument #1 to '?' (string expected, got {lua_type(given)})")
    return given
