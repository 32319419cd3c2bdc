"""Arguments of calls with the conventions of Lua.

Clients call the functions under `box.` as Lua functions: omitted arguments are nil, options are a map after
the positional arguments, and a number without a fraction is an integer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from iproto_server.errors import BoxError, ErrorCode

Types = type | tuple[type, ...]

_WORDS: Final[dict[type, str]] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "table",
    dict: "table",
}
NUMBER: Final = (int, float)
TABLE: Final = (list, dict)


def illegal(text: str) -> BoxError:
    """The error 1 for an invalid argument."""
    return BoxError(ErrorCode.ILLEGAL_PARAMS, text)


def argument(arguments: list[Any], number: int) -> Any:
    """The argument of that 0-based number; nil if it was omitted."""
    return arguments[number] if number < len(arguments) else None


def options(arguments: list[Any], number: int, types: Mapping[str, Types]) -> dict[str, Any]:
    """The options map among the arguments, checked as in Tarantool.

    Parameters:
        arguments: all arguments of the call.
        number: the 0-based number of the options.
        types: the types of each option.

    Returns: the options that are not nil.

    Raises:
        BoxError: ILLEGAL_PARAMS for an unknown option or a value of another type.
    """
    given = argument(arguments, number)
    if given is None or given == []:
        return {}
    if not isinstance(given, Mapping):
        raise illegal("options should be a table")
    for name, value in given.items():
        if name not in types:
            raise illegal(f"unexpected option '{name}'")
        if value is not None and not is_of_type(value, types[name]):
            expected = types[name]
            kinds = expected if isinstance(expected, tuple) else (expected,)
            words = list(dict.fromkeys(_WORDS[kind] for kind in kinds))
            if len(words) == 1:
                raise illegal(f"options parameter '{name}' should be of type {words[0]}")
            raise illegal(f"options parameter '{name}' should be one of types: {', '.join(words)}")
    return {name: value for name, value in given.items() if value is not None}


def is_of_type(value: object, expected: Types) -> bool:
    """Whether a value is of one of the types; as in Lua, a boolean is not a number."""
    if isinstance(value, bool):
        return expected is bool or (isinstance(expected, tuple) and bool in expected)
    return isinstance(value, expected)


def lua_type(value: object) -> str:
    """Lua's name for the type of a value from a request."""
    return _WORDS.get(type(value), "cdata")


def lua_text(value: object) -> str:
    """A value as Tarantool's messages show it."""
    if value is None:
        return "nil"
    return str(value).lower() if isinstance(value, bool) else str(value)


def lua_value(value: Any) -> Any:
    """A value as Lua returns it: 1 and 1.0 are the same number there, sent as 1."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and -(2.0**63) <= value < 2.0**64 else value
    if kind is list:
        return [lua_value(item) for item in value]
    if kind is dict:
        return {lua_value(key): lua_value(item) for key, item in value.items()}
    return value
