"""Methods of spaces and indexes for CALL: `box.space.NAME:select` and so on.

Source: Tarantool reference, "Submodule box.space", "Submodule box.index".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from iproto_server.box.api.lua_arguments import NUMBER, TABLE, Types, argument, illegal, lua_text, options
from iproto_server.box.api.space import Space
from iproto_server.box.api.space_index import Index
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.update import Operations, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import as_key

Method = Callable[[Any, list[Any]], object]

_UINT32_MASK = 0xFFFFFFFF

_INDEX_OPTIONS: dict[str, Types] = {
    "type": str,
    "parts": TABLE,
    "unique": bool,
    "id": NUMBER,
    "if_not_exists": bool,
    "dimension": NUMBER,
    "distance": str,
    "run_count_per_level": NUMBER,
    "run_size_ratio": NUMBER,
    "range_size": NUMBER,
    "page_size": NUMBER,
    "bloom_fpr": NUMBER,
    "sequence": (bool, int, float, str, list, dict),
    "func": (int, float, str),
}


_ALTER_OPTIONS: dict[str, Types] = {
    **{name: types for name, types in _INDEX_OPTIONS.items() if name != "if_not_exists"},
    "name": str,
}


def describe_space(space: Space) -> dict[str, Any]:
    """A space as Lua's serializer sends it to a client."""
    return {
        "id": space.id,
        "name": space.name,
        "engine": space.engine,
        "field_count": space.field_count,
        "temporary": space.temporary,
        "is_local": space.core().flags.get("group_id") == 1,
        "is_sync": bool(space.core().flags.get("is_sync")),
        "enabled": len(space.index) > 0,
        "index": {index.name: describe_index(index) for index in space.index},
    }


def describe_index(index: Index) -> dict[str, Any]:
    """An index as Lua's serializer sends it to a client; fields count from 1."""
    parts = []
    for part in index.tree.key_def.parts:
        described = {"fieldno": part.field_no + 1, "type": str(part.type), "is_nullable": part.is_nullable}
        if part.path is not None:
            described["path"] = part.path
        if part.collation_id:
            described["collation"] = index.space.box.catalog.collation_name(part.collation_id)
        if part.path is not None:
            described["path"] = part.path
        parts.append(described)
    return {
        "id": index.id,
        "name": index.name,
        "type": index.type,
        "unique": index.unique,
        "space_id": index.tree.space_id,
        "parts": parts,
        **_describe_sequence(index),
    }


def _describe_sequence(index: Index) -> dict[str, Any]:
    """The sequence that an index takes values from, if any."""
    attached = index.space.core().attached
    if index.id or attached is None:
        return {}
    described = {
        "sequence_id": attached.sequence.definition.id,
        "sequence_fieldno": attached.field_no + 1,
    }
    return {**described, "sequence_path": attached.path} if attached.path else described


def _selection(arguments: list[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The options of a select or count, or just the iterator's name; unknown options are ignored.

    Raises:
        BoxError: ILLEGAL_PARAMS (1), or ITERATOR_TYPE (72) for an iterator that is neither name nor number.
    """
    given = argument(arguments, 1)
    if isinstance(given, str):
        given = {"iterator": given}
    if given is None or given == []:
        return {}
    if not isinstance(given, Mapping):
        raise illegal("options should be a table")
    result: dict[str, Any] = {}
    for name in names:
        value = given.get(name)
        if value is None:
            continue
        if name == "iterator":
            if value is False:
                continue
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise BoxError(ErrorCode.ITERATOR_TYPE, lua_text(value))
            result[name] = value
        elif isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise illegal(f"options parameter '{name}' should be of type number")
        else:
            result[name] = int(value) & _UINT32_MASK
    return result


def _key(arguments: list[Any]) -> list[Any]:
    """The key in the first argument; in Lua, an empty map is an empty array."""
    key = argument(arguments, 0)
    return [] if key == {} else as_key(key)


def _select(index: Index, arguments: list[Any]) -> object:
    """The rows and, with the option `fetch_pos`, the position of the last one."""
    selection = _selection(arguments, ("iterator", "offset", "limit"))
    given = argument(arguments, 1)
    after, fetch_pos = (
        (given.get("after"), given.get("fetch_pos")) if isinstance(given, Mapping) else (None, None)
    )
    if after is not None and not isinstance(after, str | list):
        raise BoxError(ErrorCode.ITERATOR_POSITION)
    if fetch_pos is not None and not isinstance(fetch_pos, bool):
        raise illegal("options parameter 'fetch_pos' should be of type boolean")
    select = index.select_page if fetch_pos else index.select
    return select(_key(arguments), after=after, **selection)


def _len(counted: Space | Index, index: Index) -> int:
    """The number of rows; refused for views, which do not know it without a scan."""
    space = index.space
    if space.engine == "sysview":
        space.readable()
        raise BoxError(
            ErrorCode.UNSUPPORTED_INDEX_FEATURE, index.name, index.type, space.name, space.engine, "size()"
        )
    return counted.len()


def _count(index: Index, arguments: list[Any]) -> object:
    return index.count(_key(arguments), **_selection(arguments, ("iterator",)))


def _update(index: Index, arguments: list[Any]) -> object:
    operations = argument(arguments, 1)
    if not isinstance(operations, list | dict):
        raise BoxError.procedure("Usage index:update(key, ops)")
    core = index.space.writable()
    return core.update(index.id, _key(arguments), _operations(index.space, operations))


def _operations(space: Space, operations: object) -> Operations:
    """Operations of a Lua call; field numbers count from 1."""
    if not isinstance(operations, list):
        raise BoxError(ErrorCode.TUPLE_NOT_ARRAY)
    parsed = parse_update(codec.pack(operations), space.core().format.names, 1, deferred=True)
    parsed.check()
    return parsed


def _upsert(space: Space, arguments: list[Any]) -> None:
    row, operations, extra = (argument(arguments, number) for number in range(3))
    if extra is not None:
        text = f"Error: extra argument in upsert call: {lua_text(extra)}. Usage :upsert(tuple, operations)"
        raise BoxError.with_message(ErrorCode.PROC_LUA, text, type="ClientError")
    if not isinstance(row, list | dict) or not isinstance(operations, list | dict):
        raise BoxError.procedure("Usage space:upsert(tuple_key, ops)")
    if not isinstance(row, list):
        raise BoxError(ErrorCode.TUPLE_NOT_ARRAY)
    core = space.writable()
    core.upsert(core.row(row), _operations(space, operations))


def _auto_increment(space: Space, arguments: list[Any]) -> Tuple:
    """Insert a row, preceded by a number one above the greatest."""
    last = space.primary.max()
    rest = argument(arguments, 0)
    if not isinstance(rest, list):
        raise illegal("tuple should be a table")
    return space.insert([1 if last is None else last[0] + 1, *rest])


def _create_index(space: Space, arguments: list[Any]) -> object:
    name = argument(arguments, 0)
    if not isinstance(name, str):
        raise illegal("name should be a string")
    given = options(arguments, 1, _INDEX_OPTIONS)
    if isinstance(given.get("parts"), dict):
        given["parts"] = list(given["parts"].values())
    known = {
        name: given.pop(name)
        for name in ("parts", "type", "unique", "if_not_exists", "id", "sequence")
        if name in given
    }
    return describe_index(space.create_index(name, one_based=True, options=given, **known))


def _alter(index: Index, arguments: list[Any]) -> object:
    given = options(arguments, 0, _ALTER_OPTIONS)
    if not given:
        return None
    if isinstance(given.get("parts"), dict):
        given["parts"] = list(given["parts"].values())
    words = ("parts", "type", "unique", "name", "id", "sequence")
    known = {name: given.pop(name) for name in words if name in given}
    index.alter(one_based=True, options=given, **known)
    return None


def _format(space: Space, arguments: list[Any]) -> object:
    given = argument(arguments, 0)
    if given is None:
        if (
            space.box.catalog.space_by_name("_vspace").find(0, [space.id]) is None
        ):  # the caller does not see it
            raise BoxError(ErrorCode.NO_SUCH_SPACE, f"#{space.id}")
        return space.format()
    if not isinstance(given, list | dict):
        raise illegal("format should be a table")
    space.format(list(given.values()) if isinstance(given, dict) else given)
    return None


def _new_name(arguments: list[Any], word: str) -> str:
    name = argument(arguments, 0)
    if not isinstance(name, str):
        raise illegal(f"{word} should be a string")
    return name


INDEX_METHODS: dict[str, Method] = {
    "select": _select,
    "get": lambda index, arguments: index.get(_key(arguments)),
    "count": _count,
    "tuple_pos": lambda index, arguments: index.tuple_pos(argument(arguments, 0)),
    "len": lambda index, arguments: _len(index, index),
    "min": lambda index, arguments: index.min(_key(arguments)),
    "max": lambda index, arguments: index.max(_key(arguments)),
    "update": _update,
    "delete": lambda index, arguments: index.delete(_key(arguments)),
    "alter": _alter,
    "drop": lambda index, arguments: index.drop(),
    "rename": lambda index, arguments: index.rename(_new_name(arguments, "name")),
}
"""Methods of an index: (index, arguments) -> result."""


def _by_primary(name: str) -> Method:
    method = INDEX_METHODS[name]

    def by_primary(space: Space, arguments: list[Any]) -> object:
        # As in Tarantool, nobody needs a right to learn that there is no index.
        if space.core().primary is None:
            raise BoxError(ErrorCode.NO_SUCH_INDEX_ID, 0, space.name)
        return method(space.primary, arguments)

    return by_primary


def _of_rows(name: str) -> Method:
    """A method that counts the rows of a space, of which there are none without an index."""
    method = INDEX_METHODS[name]
    return lambda space, arguments: 0 if _has_no_rows(space) else method(space.primary, arguments)


def _has_no_rows(space: Space) -> bool:
    return space.engine == "memtx" and space.core().primary is None


SPACE_METHODS: dict[str, Method] = {
    **{name: _by_primary(name) for name in ("select", "get", "update", "delete")},
    "count": _of_rows("count"),
    "insert": lambda space, arguments: space.insert(argument(arguments, 0)),
    "replace": lambda space, arguments: space.replace(argument(arguments, 0)),
    "put": lambda space, arguments: space.replace(argument(arguments, 0)),
    "upsert": _upsert,
    "auto_increment": _auto_increment,
    "len": lambda space, arguments: 0 if _has_no_rows(space) else _len(space, space.primary),
    "bsize": lambda space, arguments: space.bsize(),
    "truncate": lambda space, arguments: space.truncate(),
    "drop": lambda space, arguments: space.drop(),
    "rename": lambda space, arguments: space.rename(_new_name(arguments, "space_name")),
    "format": _format,
    "create_index": _create_index,
}
"""Methods of a space: (space, arguments) -> result."""
