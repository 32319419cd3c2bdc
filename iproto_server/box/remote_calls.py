"""What a client finds under `box.` when it calls: `box.space.NAME:select`, `box.schema.…`, `box.info`.

These are Tarantool's Lua functions as CALL reaches them, so arguments come as Lua has them: options in a map
behind the positional ones, field numbers counted from 1.

Source: Tarantool reference, "Submodule box.space", "Submodule box.index", "Submodule box.schema".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from iproto_server import codec
from iproto_server.box.schema import illegal
from iproto_server.box.space import Index, Space, as_key
from iproto_server.box.update import Operations, parse_update
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.box import Box
    from iproto_server.box.principals import Roles, Users

Call = Callable[[list[Any]], object]

_SPACE = re.compile(r"box\.space\.(?P<space>[^.:]+)(?:\.index\.(?P<index>[^.:]+))?:(?P<method>\w+)")
_NIL_RESULT = (None,)


def argument(arguments: list[Any], number: int) -> Any:
    """The argument of that 0-based number; nil where it was not given."""
    return arguments[number] if number < len(arguments) else None


def options(
    arguments: list[Any], number: int, known: Mapping[str, type | tuple[type, ...]]
) -> dict[str, Any]:
    """The options map among the arguments, checked as Tarantool checks it.

    Raises:
        BoxError: ILLEGAL_PARAMS for an option there is not or a value of another type.
    """
    given = argument(arguments, number)
    if given is None or given == []:
        return {}
    if not isinstance(given, Mapping):
        raise illegal("options should be a table")
    for name, value in given.items():
        if name not in known:
            raise illegal(f"unexpected option '{name}'")
        if value is not None and not isinstance(value, known[name]):
            expected = known[name]
            words = " or ".join(
                _LUA_WORDS[kind] for kind in (expected if isinstance(expected, tuple) else (expected,))
            )
            raise illegal(f"options parameter '{name}' should be of type {words}")
    return {name: value for name, value in given.items() if value is not None}


_LUA_WORDS: dict[type, str] = {str: "string", int: "number", bool: "boolean", list: "table", dict: "table"}


class RemoteCalls:
    """Finds and runs the functions under `box.`.

    Parameters:
        box: the box.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        schema, session = box.schema, box.session
        self._functions: dict[str, Call] = {
            "box.info": lambda arguments: box.info(),
            "box.session.id": lambda arguments: session.id(),
            "box.session.uid": lambda arguments: session.uid(),
            "box.session.euid": lambda arguments: session.euid(),
            "box.session.user": lambda arguments: session.user(),
            "box.session.type": lambda arguments: session.type(),
            "box.session.sync": lambda arguments: session.sync(),
            "box.session.peer": self._peer,
            "box.session.exists": self._session_exists,
            "box.schema.create_space": self._create_space,
            "box.schema.space.create": self._create_space,
            "box.schema.user.create": self._create_user,
            "box.schema.user.passwd": lambda arguments: schema.user.passwd(
                argument(arguments, 0), argument(arguments, 1)
            ),
            "box.schema.user.password": lambda arguments: schema.user.password(argument(arguments, 0)),
            "box.schema.user.enable": lambda arguments: schema.user.enable(argument(arguments, 0)),
            "box.schema.user.disable": lambda arguments: schema.user.disable(argument(arguments, 0)),
            "box.schema.user.info": lambda arguments: schema.user.info(argument(arguments, 0)),
            "box.schema.role.create": lambda arguments: schema.role.create(
                argument(arguments, 0), **options(arguments, 1, {"if_not_exists": bool})
            ),
            "box.schema.role.info": self._role_info,
            "box.schema.func.create": self._create_function,
            "box.schema.func.exists": lambda arguments: schema.func.exists(argument(arguments, 0)),
            "box.schema.func.drop": lambda arguments: schema.func.drop(
                argument(arguments, 0), **options(arguments, 1, {"if_exists": bool})
            ),
            **_calls_of("box.schema.user", schema.user),
            **_calls_of("box.schema.role", schema.role),
        }

    def find(self, name: str) -> Call:
        """The function of that name.

        Raises:
            BoxError: NO_SUCH_PROC (33) when there is none, or no such space or index.
        """
        function = self._functions.get(name)
        if function is not None:
            return function
        match = _SPACE.fullmatch(name)
        if match is None or match["space"] not in self._box.space:
            raise BoxError(ErrorCode.NO_SUCH_PROC, name)
        space = self._box.space[match["space"]]
        if match["index"] is None:
            methods: Mapping[str, Callable[..., object]] = _SPACE_METHODS
            target: Space | Index = space
        else:
            if match["index"] not in space.index:
                raise BoxError(ErrorCode.NO_SUCH_PROC, name)
            methods = _INDEX_METHODS
            target = space.index[match["index"]]
        method = methods.get(match["method"])
        if method is None:
            raise BoxError(ErrorCode.NO_SUCH_PROC, name)
        return lambda arguments: method(target, arguments)

    def _create_space(self, arguments: list[Any]) -> object:
        given = options(arguments, 1, _SPACE_OPTIONS)
        if isinstance(given.get("format"), dict):
            given["format"] = list(given["format"].values())
        space = self._box.schema.create_space(argument(arguments, 0), **given)
        return describe_space(space)

    def _peer(self, arguments: list[Any]) -> object:
        session_id = argument(arguments, 0)
        if session_id is not None and not isinstance(session_id, int):
            raise illegal("session id should be a number")
        return _one(self._box.session.peer(session_id))

    def _session_exists(self, arguments: list[Any]) -> bool:
        session_id = argument(arguments, 0)
        if not isinstance(session_id, int):
            raise BoxError.procedure("session.exists(sid): bad arguments")
        return self._box.session.exists(session_id)

    def _role_info(self, arguments: list[Any]) -> object:
        if argument(arguments, 0) is None:
            raise BoxError(ErrorCode.NO_SUCH_ROLE, "nil")
        return self._box.schema.role.info(arguments[0])

    def _create_user(self, arguments: list[Any]) -> None:
        given = options(arguments, 1, {"password": str, "if_not_exists": bool})
        self._box.schema.user.create(argument(arguments, 0), **given)

    def _create_function(self, arguments: list[Any]) -> None:
        given = options(arguments, 1, {"setuid": bool, "if_not_exists": bool, "language": str})
        self._box.schema.func.create(argument(arguments, 0), **given)


def _one(value: object) -> object:
    """A single value, nil included: a bare None would be no value at all."""
    return _NIL_RESULT if value is None else value


def _calls_of(prefix: str, principals: Users | Roles) -> dict[str, Call]:
    """What is called alike for users and roles."""

    def drop(arguments: list[Any]) -> None:
        principals.drop(argument(arguments, 0), **options(arguments, 1, {"if_exists": bool}))

    def grant(arguments: list[Any]) -> None:
        name, privileges, object_type, object_name = (argument(arguments, number) for number in range(4))
        given = options(arguments, 4, {"if_not_exists": bool})
        principals.grant(name, privileges, object_type, object_name, **given)

    def revoke(arguments: list[Any]) -> None:
        name, privileges, object_type, object_name = (argument(arguments, number) for number in range(4))
        given = options(arguments, 4, {"if_exists": bool})
        principals.revoke(name, privileges, object_type, object_name, **given)

    return {
        f"{prefix}.exists": lambda arguments: principals.exists(argument(arguments, 0)),
        f"{prefix}.drop": drop,
        f"{prefix}.grant": grant,
        f"{prefix}.revoke": revoke,
    }


_SPACE_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "if_not_exists": bool,
    "engine": str,
    "id": int,
    "field_count": int,
    "user": (str, int),
    "format": (list, dict),
    "is_local": bool,
    "temporary": bool,
    "is_sync": bool,
}
_INDEX_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "type": str,
    "parts": (list, dict),
    "unique": bool,
    "id": int,
    "if_not_exists": bool,
    "dimension": int,
    "distance": str,
    "run_count_per_level": int,
    "run_size_ratio": int,
    "range_size": int,
    "page_size": int,
    "bloom_fpr": int,
    "sequence": (bool, str, int, dict),
    "func": (str, int),
    "hint": bool,
}
_SELECT_OPTIONS: dict[str, type | tuple[type, ...]] = {"iterator": (str, int), "offset": int, "limit": int}


def describe_space(space: Space) -> dict[str, Any]:
    """A space as Lua's serializer shows it to a client."""
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
    """An index as Lua's serializer shows it to a client, its fields counted from 1."""
    parts = []
    for part in index.tree.key_def.parts:
        described = {"fieldno": part.field_no + 1, "type": str(part.type), "is_nullable": part.is_nullable}
        parts.append(described)
    return {
        "id": index.id,
        "name": index.name,
        "type": index.type,
        "unique": index.unique,
        "space_id": index.tree.space_id,
        "parts": parts,
    }


def _select(index: Index, arguments: list[Any]) -> object:
    given = options(arguments, 1, _SELECT_OPTIONS)
    return index.select(argument(arguments, 0), **given)


def _update(index: Index, arguments: list[Any]) -> object:
    if not isinstance(argument(arguments, 1), list):
        raise BoxError.procedure("Usage index:update(key, ops)")
    core = index.space.writable()
    return core.update(
        index.id, as_key(argument(arguments, 0)), _operations(index.space, argument(arguments, 1))
    )


def _operations(space: Space, operations: object) -> Operations:
    """Operations as Lua has them, their field numbers counted from 1."""
    return parse_update(codec.pack(operations), space.core().format.names, 1)


def _upsert(space: Space, arguments: list[Any]) -> None:
    row, operations = argument(arguments, 0), argument(arguments, 1)
    if row is None or not isinstance(operations, list):
        raise BoxError.procedure("Usage space:upsert(tuple_key, ops)")
    if not isinstance(row, list):
        raise BoxError(ErrorCode.TUPLE_NOT_ARRAY)
    core = space.writable()
    core.upsert(core.row(row), _operations(space, operations))


def _create_index(space: Space, arguments: list[Any]) -> object:
    given = options(arguments, 1, _INDEX_OPTIONS)
    if given.pop("sequence", None):
        raise BoxError(ErrorCode.UNSUPPORTED, "This server", "sequences")
    if isinstance(given.get("parts"), dict):
        given["parts"] = list(given["parts"].values())
    known = {
        name: given.pop(name) for name in ("parts", "type", "unique", "if_not_exists", "id") if name in given
    }
    return describe_index(space.create_index(argument(arguments, 0), one_based=True, options=given, **known))


def _format(space: Space, arguments: list[Any]) -> object:
    given = argument(arguments, 0)
    if given is None:
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


def _count(index: Index, arguments: list[Any]) -> object:
    given = options(arguments, 1, {"iterator": (str, int)})
    return index.count(argument(arguments, 0), **given)


_INDEX_METHODS: dict[str, Callable[[Any, list[Any]], object]] = {
    "select": _select,
    "get": lambda index, arguments: index.get(argument(arguments, 0)),
    "count": _count,
    "len": lambda index, arguments: index.len(),
    "min": lambda index, arguments: index.min(argument(arguments, 0)),
    "max": lambda index, arguments: index.max(argument(arguments, 0)),
    "update": _update,
    "delete": lambda index, arguments: index.delete(argument(arguments, 0)),
    "drop": lambda index, arguments: index.drop(),
    "rename": lambda index, arguments: index.rename(_new_name(arguments, "name")),
}


def _by_primary(name: str) -> Callable[[Space, list[Any]], object]:
    method = _INDEX_METHODS[name]
    return lambda space, arguments: method(space.primary, arguments)


_SPACE_METHODS: dict[str, Callable[[Any, list[Any]], object]] = {
    **{name: _by_primary(name) for name in ("select", "get", "count", "update", "delete")},
    "insert": lambda space, arguments: space.insert(argument(arguments, 0)),
    "replace": lambda space, arguments: space.replace(argument(arguments, 0)),
    "put": lambda space, arguments: space.replace(argument(arguments, 0)),
    "upsert": _upsert,
    "len": lambda space, arguments: space.len(),
    "bsize": lambda space, arguments: space.bsize(),
    "truncate": lambda space, arguments: space.truncate(),
    "drop": lambda space, arguments: space.drop(),
    "rename": lambda space, arguments: space.rename(_new_name(arguments, "space_name")),
    "format": _format,
    "create_index": _create_index,
}
