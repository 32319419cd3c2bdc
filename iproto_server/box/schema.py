"""`box.schema`: DDL in words, carried out as rows of the system spaces.

Source: Tarantool reference, "Submodule box.schema".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iproto_server.box import system_spaces as system
from iproto_server.box.functions import Functions
from iproto_server.box.lua_arguments import illegal
from iproto_server.box.principals import Roles, Users
from iproto_server.box.space import Space
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.box import Box

CollationIds = Callable[[str], "int | None"]


_DEFAULT_TYPES = {"rtree": "array", "bitset": "unsigned"}


class Schema:
    """Creating, changing and dropping spaces, indexes, users, roles and functions.

    Parameters:
        box: the box whose schema it is.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        self.user = Users(box)
        self.role = Roles(box)
        self.func = Functions(box)

    # -- spaces --

    def create_space(
        self,
        name: str,
        *,
        format: Sequence[Any] | None = None,
        if_not_exists: bool = False,
        id: int | None = None,
        engine: str = "memtx",
        field_count: int = 0,
        user: str | int | None = None,
        temporary: bool = False,
        is_local: bool = False,
        is_sync: bool | None = None,
    ) -> Space:
        """Create a space.

        Parameters:
            name: its name.
            format: its fields, each a name, a (name, type) pair or a mapping with "name", "type" and
                "is_nullable"; see `Space.format`.
            if_not_exists: answer the space of that name if there is one, whatever it looks like.
            id: its number; the next free one unless given.
            engine: "memtx" is the only one served.
            field_count: how many fields every row must have; 0: any number.
            user: the owner; the caller unless given.
            temporary: do not log the rows, lose them at a restart.
            is_local: do not replicate the rows.
            is_sync: whether changes wait for replicas; that is not served.

        Raises:
            BoxError: SPACE_EXISTS (10), CREATE_SPACE (9), NO_SUCH_ENGINE (57) and others.
        """
        if not isinstance(name, str):
            raise illegal("name should be a string")
        box = self._box
        present = box.catalog.find(name)
        if present is not None:
            if if_not_exists:
                return box.space[name]
            raise BoxError(ErrorCode.SPACE_EXISTS, name)
        number = self._next_space_id() if id is None else id
        owner = self._owner(user)
        flags: dict[str, Any] = {}
        if temporary:
            flags["temporary"] = True
        if is_local:
            flags["group_id"] = 1
        if is_sync is not None:
            flags["is_sync"] = is_sync
        row = [
            number,
            owner,
            name,
            engine,
            field_count,
            flags,
            normalized_format(format or [], box.catalog.collation_id),
        ]
        rows = self._box.catalog.writable(system.SPACE)
        rows.insert(rows.row(row))
        return box.space[name]

    def drop_space(self, space_id: int) -> None:
        """Remove a space with its indexes, its rows and the rights on it."""
        catalog = self._box.catalog
        core = catalog.space(space_id)
        with self._box.in_transaction():
            for index_id in sorted(core.indexes, reverse=True):
                catalog.writable(system.INDEX).delete(0, [space_id, index_id])
            self.revoke_all("space", space_id)
            catalog.writable(system.TRUNCATE).delete(0, [space_id])
            catalog.writable(system.SPACE).delete(0, [space_id])

    def revoke_all(self, object_type: str, object_id: int) -> None:
        """Take away every right on an object that is to go."""
        catalog = self._box.catalog
        for grant in catalog.rows(system.VPRIV, 2, [object_type, object_id]):
            catalog.writable(system.PRIV).delete(0, grant[1:4])

    def rename_space(self, space_id: int, name: str) -> None:
        """Give a space another name."""
        self._alter_space(space_id, "name", name)

    def set_format(self, space_id: int, new_format: Sequence[Any]) -> None:
        """Give a space another format; every stored row must fit it."""
        self._alter_space(space_id, "format", normalized_format(new_format, self._box.catalog.collation_id))

    def truncate(self, space_id: int) -> None:
        """Remove every row of a space."""
        self._box.catalog.space(space_id)
        rows = self._box.catalog.writable(system.TRUNCATE)
        rows.upsert(rows.row([space_id, 1]), rows.parse_operations([("+", 1, 1)]))

    def _alter_space(self, space_id: int, field: str, value: object) -> None:
        self._box.catalog.space(space_id)
        rows = self._box.catalog.writable(system.SPACE)
        rows.update(0, [space_id], rows.parse_operations([("=", field, value)]))

    def _next_space_id(self) -> int:
        rows = self._box.catalog.writable(system.SCHEMA)
        while True:
            row = rows.update(0, ["max_id"], rows.parse_operations([("+", 1, 1)]))
            if row is None:
                top = max(self._box.catalog.spaces)
                row = rows.insert(rows.row(["max_id", max(top, system.SYSTEM_ID_MAX) + 1]))
            space_id: int = row[1]
            if space_id not in self._box.catalog.spaces:
                return space_id

    def _owner(self, user: str | int | None) -> int:
        if user is None:
            return self._box.session.euid()
        rows = self._box.catalog.rows(system.VUSER, 2 if isinstance(user, str) else 0, [user])
        if not rows:
            raise BoxError(ErrorCode.NO_SUCH_USER, user)
        user_id: int = rows[0][0]
        return user_id

    # -- indexes --

    def create_index(
        self,
        space_id: int,
        name: str,
        *,
        parts: Sequence[Any] | None = None,
        type: str = "tree",
        unique: bool | None = None,
        if_not_exists: bool = False,
        index_id: int | None = None,
        one_based: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> int:
        """Add an index to a space, building it from the rows that are there.

        Parameters:
            space_id: the space.
            name: the index's name.
            parts: its parts, each a field (name or 0-based number), a (field, type) pair or a mapping with
                "field", "type", "is_nullable", "collation"; the first field, unsigned, unless given.
            type: "tree" or "hash", in letters of any size.
            unique: whether no two rows may have the same key; they may not, unless given.
            if_not_exists: answer the index of that name if there is one.
            index_id: its number; the next one unless given.
            one_based: count fields from 1, as Lua does.
            options: more of Tarantool's options, kept in `_index`.

        Returns: the index's number.

        Raises:
            BoxError: INDEX_EXISTS (85), MODIFY_INDEX (14), TUPLE_FOUND (3) and others.
        """
        core = self._box.catalog.space(space_id)
        if not isinstance(name, str):
            raise illegal("name should be a string")
        for index in core.indexes.values():
            if index.name == name:
                if if_not_exists:
                    return index.id
                raise BoxError(ErrorCode.INDEX_EXISTS, name)
        if index_id is None:
            index_id = max(core.indexes, default=-1) + 1
        base = 1 if one_based else 0
        first = 1 if type in ("rtree", "bitset") else 0
        if parts is None:
            kind = _DEFAULT_TYPES.get(type, "unsigned")
            if first < len(core.format_row) and core.format_row[first].get("type", "any") != "any":
                kind = core.format_row[first]["type"]
            parts = [[first + base, kind]]
        if unique is None:
            unique = type not in _DEFAULT_TYPES
        part_rows = index_parts(parts, core.format_row, one_based, self._box.catalog.collation_id)
        row = [space_id, index_id, name, type, {"unique": unique, **(options or {})}, part_rows]
        rows = self._box.catalog.writable(system.INDEX)
        rows.insert(rows.row(row))
        return index_id

    def drop_index(self, space_id: int, index_id: int) -> None:
        """Remove an index."""
        core = self._box.catalog.space(space_id)
        core.index(index_id)
        self._box.catalog.writable(system.INDEX).delete(0, [space_id, index_id])

    def rename_index(self, space_id: int, index_id: int, name: str) -> None:
        """Give an index another name."""
        core = self._box.catalog.space(space_id)
        core.index(index_id)
        rows = self._box.catalog.writable(system.INDEX)
        rows.update(0, [space_id, index_id], rows.parse_operations([("=", 2, name)]))


def normalized_format(
    fields: Sequence[Any], collation_ids: CollationIds = lambda name: None
) -> list[dict[Any, Any]]:
    """A format the way `_space` holds it: a mapping for every field, with its name and type.

    Parameters:
        fields: each a name, a (name, type) pair, or a mapping; what has no name in a mapping is at 1 and 2.
        collation_ids: finds the number of a collation.

    Raises:
        BoxError: ILLEGAL_PARAMS when a field has no name or is of no known form.
    """
    result = []
    for number, given in enumerate(fields, start=1):
        definition = _format_field(given, f"format[{number}]", collation_ids)
        if not isinstance(definition.get("name"), str):
            raise illegal(f"format[{number}]: name (string) is expected")
        if definition.get("type") is None:
            definition["type"] = "any"
        elif not isinstance(definition["type"], str):
            raise illegal(f"format[{number}]: type must be a string")
        result.append(definition)
    return result


def _format_field(given: object, where: str, collation_ids: CollationIds) -> dict[Any, Any]:
    table = _table(given)
    if table is None:
        return {"name": given}
    definition: dict[Any, Any] = {}
    has_name, has_type = table.get("name") is not None, table.get("type") is not None
    for key, value in table.items():
        if key == 1 and not has_name:
            definition["name"] = value
        elif (key == 1 and not has_type) or (key == 2 and not has_type and not has_name):
            definition["type"] = value
        elif key == "collation":
            definition[key] = _collation(value, where, collation_ids)
        else:
            definition[key] = value
    return definition


def _table(given: object) -> dict[Any, Any] | None:
    """A list or mapping as the Lua table it stands for: what is in a list is at 1, 2, …"""
    if isinstance(given, Mapping):
        return dict(given)
    return dict(enumerate(given, start=1)) if isinstance(given, list | tuple) else None


def _collation(name: object, where: str, collation_ids: CollationIds) -> int:
    found = None
    if isinstance(name, str):
        found = collation_ids(name)
        if found is None:
            found = collation_ids(name.lower())
    if found is None:
        raise illegal(f"{where}: collation was not found by name '{name}'")
    return found


def index_parts(
    parts: object,
    format_row: Sequence[Mapping[str, Any]],
    one_based: bool,
    collation_ids: CollationIds,
) -> list[Any]:
    """Index parts the way `_index` holds them: `[number, type]` pairs, or maps where a part says more.

    Parameters:
        parts: as `Schema.create_index` takes them; Lua's oldest form, `[number, type, number, type, …]`, too.
        format_row: the space's format, as in `_space`.
        one_based: whether fields are counted from 1.
        collation_ids: finds the number of a collation.

    Raises:
        BoxError: ILLEGAL_PARAMS for a part of no known form or a field there is not.
    """
    if not isinstance(parts, list | tuple):
        raise illegal("options.parts parameter should be a table")
    if not parts:
        raise illegal("options.parts must have at least one part")
    base = 1 if one_based else 0
    if len(parts) > 1 and _is_number(parts[0]) and isinstance(parts[1], str):
        return _pairs_in_a_row(parts, base)
    definitions = [
        _index_part(part, f"options.parts[{number}]", format_row, base, collation_ids)
        for number, part in enumerate(parts, start=1)
    ]
    if all(definition.keys() == {"field", "type"} for definition in definitions):
        return [[definition["field"], definition["type"]] for definition in definitions]
    return definitions


def _pairs_in_a_row(parts: Sequence[Any], base: int) -> list[list[Any]]:
    numbers, types = parts[::2], parts[1::2]
    if (
        len(numbers) != len(types)
        or not all(map(_is_number, numbers))
        or not all(isinstance(each, str) for each in types)
    ):
        raise illegal("options.parts: expected field_no (number), type (string) pairs")
    if any(number < base for number in numbers):
        raise illegal("invalid index parts: field_no must be one-based")
    return [[number - base, _type_word(each)] for number, each in zip(numbers, types, strict=True)]


def _index_part(
    part: object,
    where: str,
    format_row: Sequence[Mapping[str, Any]],
    base: int,
    collation_ids: CollationIds,
) -> dict[Any, Any]:
    definition: dict[Any, Any] = {}
    for key, value in (_table(part) or {1: part}).items():
        if key == "collation":
            definition[key] = _collation(value, where, collation_ids)
        elif value is not None:
            definition[{1: "field", 2: "type"}.get(key, key)] = value
    field = definition.get("field")
    if not _is_number(field) and not isinstance(field, str):
        raise illegal(f"{where}: field (name or number) is expected")
    number, path = _field_number(field, where, format_row, base)
    definition["field"] = number
    if path is not None:
        definition["path"] = path
    in_format: Mapping[str, Any] = format_row[number] if number < len(format_row) else {}
    given_type = definition.get("type", in_format.get("type", "scalar"))
    if not isinstance(given_type, str):
        raise illegal(f"{where}: type (string) is expected")
    definition["type"] = _type_word(given_type)
    if "is_nullable" not in definition:
        if in_format.get("is_nullable"):
            definition["is_nullable"] = True
    elif not isinstance(definition["is_nullable"], bool):
        raise illegal(f"{where}: type (boolean) is expected")
    return definition


def _field_number(
    field: Any, where: str, format_row: Sequence[Mapping[str, Any]], base: int
) -> tuple[int, str | None]:
    """The 0-based number of a field given by number, name or JSON path, and what of the path is left."""
    if not isinstance(field, str):
        if field < base or (isinstance(field, float) and not field.is_integer()):
            raise illegal(f"{where}: field (number) must be one-based")
        return int(field) - base, None
    names = {each.get("name"): number for number, each in reversed(list(enumerate(format_row)))}
    if field in names:
        return names[field], None
    by_number = _NUMBER_IN_BRACKETS.match(field)
    if by_number is not None:
        if int(by_number[1]) == 0:
            raise illegal(f"{where}: field (number) must be one-based")
        return int(by_number[1]) - 1, field[by_number.end() :]
    for pattern in (_NAME_IN_BRACKETS, _NAME_IN_FRONT):
        by_name = pattern.match(field)
        if by_name is not None and by_name["name"] in names:
            return names[by_name["name"]], field[by_name.end() :]
    raise illegal(f"{where}: field was not found by name '{field}'")


_NUMBER_IN_BRACKETS = re.compile(r"\[(\d+)\]")
_NAME_IN_BRACKETS = re.compile(r"\[([\"'])(?P<name>[^\]]+)\1\]")
_NAME_IN_FRONT = re.compile(r"(?P<name>[^.\[]+)")

_TYPE_ALIASES = {"num": "unsigned", "uint": "unsigned", "str": "string", "int": "integer", "*": "any"}


def _type_word(name: str) -> str:
    return _TYPE_ALIASES.get(name.lower(), name.lower())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
