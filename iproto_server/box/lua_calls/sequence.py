"""Sequences for CALL: `box.sequence.NAME:next`, `box.schema.sequence.create` and so on.

Source: Tarantool reference, "box.schema.sequence".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from iproto_server.box.api.lua_arguments import NUMBER, Types, argument, illegal, options
from iproto_server.box.api.sequences import Sequence
from iproto_server.errors import BoxError

if TYPE_CHECKING:
    from iproto_server.box.api.box import Box

Method = Callable[[Sequence, list[Any]], object]

_OPTIONS: dict[str, Types] = {
    **dict.fromkeys(("step", "min", "max", "start", "cache"), NUMBER),
    "cycle": bool,
}
_CREATE_OPTIONS: dict[str, Types] = {**_OPTIONS, "if_not_exists": bool}
_ALTER_OPTIONS: dict[str, Types] = {**_OPTIONS, "name": str}


def describe_sequence(sequence: Sequence) -> dict[str, Any]:
    """A sequence as Lua's serializer sends it to a client."""
    definition = sequence.definition
    return {
        "id": definition.id,
        "uid": definition.owner,
        "name": definition.name,
        "step": definition.step,
        "min": definition.min,
        "max": definition.max,
        "start": definition.start,
        "cache": definition.cache,
        "cycle": definition.cycle,
    }


def schema_calls(box: Box) -> dict[str, Callable[[list[Any]], object]]:
    """The functions of `box.schema.sequence`: name -> function of the arguments.

    Parameters:
        box: the box.
    """
    schema = box.schema.sequence

    def create(arguments: list[Any]) -> object:
        name = argument(arguments, 0)
        if not isinstance(name, str):
            raise illegal("name should be a string")
        given = options(arguments, 1, _CREATE_OPTIONS)
        is_there = schema.row(name) is not None
        described = describe_sequence(schema.create(name, **given))
        return (described, "not created") if is_there else described

    def alter(arguments: list[Any]) -> None:
        given = options(arguments, 1, _ALTER_OPTIONS)
        schema.alter(argument(arguments, 0), **given)

    def drop(arguments: list[Any]) -> None:
        given = options(arguments, 1, {"if_exists": bool})
        schema.drop(argument(arguments, 0), **given)

    prefix = "box.schema.sequence"
    return {f"{prefix}.create": create, f"{prefix}.alter": alter, f"{prefix}.drop": drop}


def _set(sequence: Sequence, arguments: list[Any]) -> None:
    value = argument(arguments, 0)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            value = None
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if not isinstance(value, int):
        raise BoxError.procedure("expected int64_t as 2 argument")
    sequence.set(value)


def _alter(sequence: Sequence, arguments: list[Any]) -> None:
    sequence.alter(**options(arguments, 0, _ALTER_OPTIONS))


SEQUENCE_METHODS: dict[str, Method] = {
    "next": lambda sequence, arguments: sequence.next(),
    "current": lambda sequence, arguments: sequence.current(),
    "set": _set,
    "reset": lambda sequence, arguments: sequence.reset(),
    "alter": _alter,
    "drop": lambda sequence, arguments: sequence.drop(),
}
"""Methods of a sequence: (sequence, arguments) -> result."""
