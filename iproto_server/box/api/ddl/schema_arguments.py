"""Arguments of `box.schema` with several forms: fields of a format and parts of an index."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iproto_server.box.api.lua_arguments import illegal

CollationIds = Callable[[str], "int | None"]


def normalized_format(
    fields: Sequence[Any], collation_ids: CollationIds = lambda name: None
) -> list[dict[Any, Any]]:
    """A format as `_space` stores it: a mapping with name and type for each field.

    Parameters:
        fields: each a name, a (name, type) pair, or a mapping; its keys 1 and 2 mean name and type.
        collation_ids: returns the number of a collation.

    Raises:
        BoxError: ILLEGAL_PARAMS if a field has no name or an unknown form.
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
    """A list or mapping as a Lua table: items of a list have the keys 1, 2, …"""
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
    """Index parts as `_index` stores them: `[number, type]` pairs, or maps if a part has more options.

    Parameters:
        parts: as `Schema.create_index` takes them; Lua's oldest form, `[number, type, number, type, …]`, too.
        format_row: the space's format, as in `_space`.
        one_based: whether fields are counted from 1.
        collation_ids: returns the number of a collation.

    Raises:
        BoxError: ILLEGAL_PARAMS for a part of unknown form or a missing field.
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
        elif value is not None and not (key == "exclude_null" and value is False):
            # False is the default, and Tarantool 2.6 does not know this option.
            definition[{1: "field", 2: "type"}.get(key, key)] = value
    field = definition.get("field")
    if not _is_number(field) and not isinstance(field, str):
        raise illegal(f"{where}: field (name or number) is expected")
    number, path = field_number(field, where, format_row, base)
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


def field_number(
    field: Any, where: str, format_row: Sequence[Mapping[str, Any]], base: int
) -> tuple[int, str | None]:
    """The 0-based number of a field given by number, name or JSON path, and the rest of the path."""
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
