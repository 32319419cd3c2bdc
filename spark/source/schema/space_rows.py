"""Rows of `_space` and `_index`, which every version of Tarantool writes a little differently, in one form.

Reading rows needs less of a definition than serving them: options without effect on the fields and on the
primary key are left out, known or not, and a field of an unknown type is of the type `any`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from iproto_server.box.catalog.system_space_ids import SPACE
from iproto_server.box.types.field_type import FieldType

_INDEX_OPTIONS: Final = ("unique", "func")
"""The options of an index that matter to a reader."""

_PART_OPTIONS: Final = (
    "field",
    "type",
    "path",
    "is_nullable",
    "nullable_action",
    "collation",
    "sort_order",
    "exclude_null",
)
_FIELD_OPTIONS: Final = ("name", "type", "is_nullable", "nullable_action", "collation")

_ANY: Final = FieldType.ANY.value
_SIZED: Final = {
    **{f"uint{bits}": FieldType.UNSIGNED for bits in (8, 16, 32, 64)},
    **{f"int{bits}": FieldType.INTEGER for bits in (8, 16, 32, 64)},
    **{f"float{bits}": FieldType.DOUBLE for bits in (32, 64)},
}
"""Tarantool 3's types of numbers with a size."""

_TEMPORARY: Final = "temporary"
_TEMPORARY_TYPES: Final = (_TEMPORARY, "data-temporary")
"""The values of Tarantool 3's option `type` of spaces whose rows are in memory only."""


def space_flags(given: Any) -> Mapping[str, Any]:
    """The options of a space: a map; in Tarantool 1.6 also a text with the names of those that are set.

    Parameters:
        given: The field `flags` of a row of `_space`.
    """
    if isinstance(given, str):
        return {name.strip(): True for name in given.split(",") if name.strip()}
    return given if isinstance(given, Mapping) else {}


def is_temporary(flags: Mapping[str, Any]) -> bool:
    """Whether the rows of a space are in the server's memory only, according to its options."""
    return bool(flags.get(_TEMPORARY)) or flags.get("type") in _TEMPORARY_TYPES


def format_rows(space_id: int, rows: Sequence[Any]) -> tuple[Any, ...]:
    """The fields of a format.

    Parameters:
        space_id: The space.
        rows: The field `format` of its row of `_space`. Tarantool 1.6 accepted lists of name and type, and
            maps with one or both under the keys 1 and 2.
    """
    fields = tuple(map(_field_row, rows))
    if space_id != SPACE:
        return fields
    # Up to 1.7.2, `flags` was declared as a string, but had maps.
    return tuple({**field, "type": _ANY} if field.get("name") == "flags" else field for field in fields)


def _field_row(row: Any) -> Any:
    if isinstance(row, str):
        row = {"name": row}
    elif isinstance(row, list):
        row = dict(zip(("name", "type"), row, strict=False))
    elif isinstance(row, Mapping):
        row = {{1: "name", 2: "type"}.get(key, key): value for key, value in row.items()}
    else:
        return row
    field = {name: row[name] for name in _FIELD_OPTIONS if name in row}
    if "type" in field:
        field["type"] = _known_type(field["type"], _ANY)
    return field


def index_row(row: Sequence[Any]) -> list[Any]:
    """A row of `_index` without options that do not matter to a reader.

    Parameters:
        row: The row; rows of Tarantool 1.6 with the parts in line are returned as they are.
    """
    if len(row) < 6 or not isinstance(row[4], Mapping) or not isinstance(row[5], list):
        return list(row)
    options = {name: row[4][name] for name in _INDEX_OPTIONS if name in row[4]}
    return [*row[:4], options, list(map(_part_row, row[5])), *row[6:]]


def _part_row(row: Any) -> Any:
    if not isinstance(row, Mapping):
        return row
    part = {name: row[name] for name in _PART_OPTIONS if name in row}
    if "type" in part:
        part["type"] = _known_type(part["type"], part["type"])
    return part


def _known_type(name: Any, otherwise: Any) -> Any:
    if not isinstance(name, str):
        return otherwise
    found = FieldType.by_name(name) or _SIZED.get(name.lower())
    return otherwise if found is None else found.value
