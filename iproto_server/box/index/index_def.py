"""Definitions of indexes, from rows of `_index`.

Checks follow the order of Tarantool 2.6, so a row with two faults is refused for the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from iproto_server.box.key.collation import NONE_ID, Collations, built_in_collations
from iproto_server.box.key.key_def import KeyDef, shared_key_def
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.tuple.format import FieldDef
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.types.identifier import NAME_MAX, check_identifier
from iproto_server.box.types.json_path import TokenKind, parse_json_path
from iproto_server.box.types.option_types import FLOAT, INTEGER, check_option_types
from iproto_server.errors import BoxError, ErrorCode

INDEX_ID_MAX: Final = 127
PART_COUNT_MAX: Final = 255
FIELD_NO_MAX: Final = 32767

_TOKENS_MAX: Final = 200
"""Limits the recursion over rows."""
_INDEX_TYPES: Final = ("HASH", "TREE", "BITSET", "RTREE")
_OPTIONS_FIELD: Final = 4
_NAME_SHOWN: Final = 64
_UINT32_MASK: Final = 0xFFFFFFFF

_OPTION_TYPES: Final = {
    "unique": "boolean",
    "dimension": INTEGER,
    "distance": "enum",
    "range_size": INTEGER,
    "page_size": INTEGER,
    "run_count_per_level": INTEGER,
    "run_size_ratio": FLOAT,
    "bloom_fpr": FLOAT,
    "lsn": INTEGER,
    "func": "unsigned",
    "sql": "any",  # an option of old versions, without effect
}
_PART_OPTION_TYPES: Final = {
    "type": "enum",
    "field": "unsigned",
    "collation": "unsigned",
    "is_nullable": "boolean",
    "nullable_action": "enum",
    "sort_order": "enum",
    "path": "string",
}
_RECORD: Final = (
    "space id (unsigned), index id (unsigned), name (string), type (string), options (map), parts (array)"
)
_RECORD_TYPES: Final = ("unsigned", "unsigned", "string", "string", "map", "array")


@dataclass(frozen=True, slots=True)
class IndexDef:
    """The definition of an index.

    Attributes:
        space_id: the space's number.
        id: the index's number in the space; 0 is the primary index.
        name: its name.
        type: `TREE` or `HASH`.
        is_unique: whether keys are unique.
        key_def: its parts.
        options: the options as given.
    """

    space_id: int
    id: int
    name: str
    type: str
    is_unique: bool
    key_def: KeyDef
    options: Mapping[str, Any]

    @classmethod
    def parse(
        cls,
        row: Sequence[Any],
        space_name: str,
        collations: Collations | None = None,
        fields: Sequence[FieldDef] = (),
        *,
        is_for_memtx: bool = True,
    ) -> IndexDef:
        """Read a row of `_index`.

        Parameters:
            row: the decoded row.
            space_name: the name of the space, for messages.
            collations: all collations; by default the built-in ones.
            fields: the declared fields of the space.
            is_for_memtx: whether to check the requirements of memtx and the limits of this server.

        Raises:
            BoxError: WRONG_INDEX_RECORD (106), WRONG_INDEX_OPTIONS (108), WRONG_INDEX_PARTS (107),
                INDEX_TYPE (13), MODIFY_INDEX (14), IDENTIFIER (70), NULLABLE_PRIMARY (152), or UNSUPPORTED
                (5) for features of Tarantool that this server lacks: RTREE, BITSET, functional indexes.
        """
        _check_record(row)
        space_id, index_id, name, type_name, options, part_rows = row
        is_unique = _check_options(options)

        def refuse(reason: str) -> BoxError:
            return BoxError(ErrorCode.MODIFY_INDEX, name, space_name, reason)

        if len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
            raise BoxError(ErrorCode.MODIFY_INDEX, name[:_NAME_SHOWN], space_name, "index name is too long")
        check_identifier(name)
        parts = parse_parts(part_rows, built_in_collations() if collations is None else collations)
        _check_multikey(parts)
        is_multikey = any(part.multikey_place is not None for part in parts)
        if index_id > INDEX_ID_MAX:
            raise refuse("index id too big")
        if index_id == 0 and not is_unique:
            raise refuse("primary key must be unique")
        if not parts:
            raise refuse("part count must be positive")
        if len(parts) > PART_COUNT_MAX:
            raise refuse("too many key parts")
        if index_id == 0 and is_multikey:
            raise refuse("primary key cannot be multikey")
        if index_id == 0 and options.get("func", 0):
            raise refuse("primary key can not use a function")
        if any(part.field_no > FIELD_NO_MAX for part in parts):
            raise refuse("field no is too big")
        if len({part.place for part in parts}) < len(parts):
            raise refuse("same key part is indexed twice")
        index_type = type_name.upper()
        if is_for_memtx:
            _check_for_memtx(index_id, index_type, is_unique, parts, fields, name, space_name)
            _check_served(index_type, options)
        else:
            # Only memtx refuses parts of type "any", for which there are no keys.
            parts = [
                replace(part, type=FieldType.SCALAR) if part.type is FieldType.ANY else part for part in parts
            ]
        return cls(space_id, index_id, name, index_type, is_unique, shared_key_def(tuple(parts)), options)


def parse_parts(rows: Sequence[Any], collations: Collations) -> list[KeyPart]:
    """Read the parts of a row of `_index`.

    Parameters:
        rows: lists `[field, type]`, or maps with `field`, `type`, `is_nullable`, `collation`, `path`; all
            in the form of the first one.
        collations: all collations.

    Raises:
        BoxError: WRONG_INDEX_PARTS (107) for lists, WRONG_INDEX_OPTIONS (108) for maps.
    """
    if rows and isinstance(rows[0], list):
        return [_parse_list_part(row) for row in rows]
    parts = [_parse_map_part(number, row) for number, row in enumerate(rows, start=1)]
    return [_with_collation(number, part, collations) for number, part in enumerate(parts, start=1)]


def _with_collation(number: int, part: KeyPart, collations: Collations) -> KeyPart:
    """Set the collation of a part by its number."""
    if part.collation_id is None or part.collation_id == NONE_ID:
        return part
    collation = collations.get(part.collation_id)
    if collation is None:
        raise BoxError(ErrorCode.WRONG_INDEX_OPTIONS, number, "collation was not found by ID")
    return part if collation.is_binary else replace(part, collation=collation)


def _check_multikey(parts: Sequence[KeyPart]) -> None:
    """Raise BoxError WRONG_INDEX_OPTIONS unless all `[*]` lead through one array, each only once."""
    places = set()
    for number, part in enumerate(parts, start=1):
        if part.multikey_place is None:
            continue
        places.add(part.multikey_place)
        if len(places) > 1:
            raise BoxError(ErrorCode.WRONG_INDEX_OPTIONS, number, "incompatable multikey index path")
        if part.steps.count(None) > 1:
            reason = "no more than one array index placeholder [*] is allowed in JSON path"
            raise BoxError(ErrorCode.WRONG_INDEX_OPTIONS, number, reason)


def _parse_list_part(row: Any) -> KeyPart:
    if not isinstance(row, list):
        raise BoxError(ErrorCode.WRONG_INDEX_PARTS, "expected an array")
    if not row:
        raise BoxError(ErrorCode.WRONG_INDEX_PARTS, "expected a non-empty array")
    if len(row) < 2:
        raise BoxError(ErrorCode.WRONG_INDEX_PARTS, "a field type is missing")
    field_no, type_name = row[:2]
    if type(field_no) is not int or field_no < 0:
        raise BoxError(ErrorCode.WRONG_INDEX_PARTS, "field id must be an integer")
    if not isinstance(type_name, str):
        raise BoxError(ErrorCode.WRONG_INDEX_PARTS, "field type must be a string")
    field_type = FieldType.by_name(type_name)
    if field_type is None:
        raise BoxError(ErrorCode.WRONG_INDEX_PARTS, "unknown field type")
    return KeyPart(field_no & _UINT32_MASK, field_type)


def _parse_map_part(number: int, row: Any) -> KeyPart:
    def refuse(reason: str) -> BoxError:
        return BoxError(ErrorCode.WRONG_INDEX_OPTIONS, number, reason)

    if not isinstance(row, dict):
        raise refuse("index part is expected to be a map")
    check_option_types(row, _PART_OPTION_TYPES, number)
    field_type = FieldType.by_name(row.get("type", ""))
    if field_type is None:
        raise refuse("index part: unknown field type")
    collation = row.get("collation")
    if (collation or NONE_ID) != NONE_ID and field_type not in (FieldType.STRING, FieldType.SCALAR):
        raise refuse("collation is reasonable only for string and scalar parts")
    is_nullable = row.get("is_nullable", False)
    action = row.get("nullable_action", "none" if is_nullable else "default").lower()
    # Unlike in a format, Tarantool accepts any action here.
    if is_nullable != (action == "none"):
        raise refuse("index part: conflicting nullability and nullable action properties")
    sort_order = row.get("sort_order", "asc").lower()
    if sort_order not in ("asc", "desc", "undef"):
        raise refuse("index part: unknown sort order")
    path = row.get("path") or None
    if path is not None:
        tokens = parse_json_path(path)
        has_too_many = len(tokens) > _TOKENS_MAX
        if tokens[-1].kind is TokenKind.FAULT and not has_too_many:
            raise refuse("invalid path")
        if has_too_many:
            raise BoxError(ErrorCode.UNSUPPORTED, "This server", "paths of so many steps in an index part")
    return KeyPart(
        field_no=row.get("field", 0) & _UINT32_MASK,
        type=field_type,
        is_nullable=is_nullable,
        collation_id=collation,
        path=path,
        nullable_action=action,
        sort_order=sort_order,
    )


def _check_options(options: Mapping[Any, Any]) -> bool:
    """Check the options of an index and tell whether it is unique, the default."""
    check_option_types(options, _OPTION_TYPES, _OPTIONS_FIELD)
    page_size = options.get("page_size", 8192)
    range_size = options.get("range_size", 0)
    for reason, is_wrong in (
        (
            "distance must be either 'euclid' or 'manhattan'",
            options.get("distance", "euclid").lower() not in ("euclid", "manhattan"),
        ),
        (
            "page_size must be greater than 0 and less than or equal to range_size",
            page_size <= 0 or 0 < range_size < page_size,
        ),
        ("run_count_per_level must be greater than 0", options.get("run_count_per_level", 2) <= 0),
        ("run_size_ratio must be greater than 1", options.get("run_size_ratio", 3.5) <= 1),
        (
            "bloom_fpr must be greater than 0 and less than or equal to 1",
            not 0 < options.get("bloom_fpr", 0.05) <= 1,
        ),
    ):
        if is_wrong:
            raise BoxError(ErrorCode.WRONG_INDEX_OPTIONS, _OPTIONS_FIELD, reason)
    return bool(options.get("unique", True))


def _check_for_memtx(
    index_id: int,
    index_type: str,
    is_unique: bool,
    parts: Sequence[KeyPart],
    fields: Sequence[FieldDef],
    name: str,
    space_name: str,
) -> None:
    """Check the engine's requirements for each type of index."""

    def refuse(reason: str) -> BoxError:
        return BoxError(ErrorCode.MODIFY_INDEX, name, space_name, reason)

    if any(part.is_nullable for part in parts):
        if index_id == 0:
            raise BoxError(ErrorCode.NULLABLE_PRIMARY, space_name)
        if index_type != "TREE":
            kind = index_type if index_type in _INDEX_TYPES else None
            raise BoxError(ErrorCode.UNSUPPORTED, kind or "(null)", "nullable parts")
    array = next((part.multikey_place for part in parts if part.multikey_place is not None), None)
    if array is not None and array[0] < len(fields) and fields[array[0]].is_nullable:
        raise BoxError(ErrorCode.UNSUPPORTED, "multikey index", "nullable root field")
    if index_type not in _INDEX_TYPES:
        raise BoxError(ErrorCode.INDEX_TYPE, name, space_name)
    if index_type == "HASH":
        if not is_unique:
            raise refuse("HASH index must be unique")
        if array is not None:
            raise refuse("HASH index cannot be multikey")
    elif index_type in ("RTREE", "BITSET"):
        if len(parts) > 1:
            raise refuse(f"{index_type} index key can not be multipart")
        if is_unique:
            raise refuse(
                "RTREE index can not be unique" if index_type == "RTREE" else "BITSET can not be unique"
            )
        if index_type == "RTREE" and parts[0].type is not FieldType.ARRAY:
            raise refuse("RTREE index field type must be ARRAY")
        if index_type == "BITSET" and parts[0].type not in (FieldType.UNSIGNED, FieldType.STRING):
            raise refuse("BITSET index field type must be NUM or STR")
        if array is not None:
            raise refuse(f"{index_type} index cannot be multikey")
        return
    for part in parts:
        if not part.type.is_indexable:
            raise refuse(f"field type '{part.type.value}' is not supported")


def _check_served(index_type: str, options: Mapping[str, Any]) -> None:
    """Refuse features of Tarantool that this server lacks."""
    for what, is_asked in (
        (f"{index_type} indexes", index_type not in ("TREE", "HASH")),
        ("functional indexes", bool(options.get("func", 0))),
    ):
        if is_asked:
            raise BoxError(ErrorCode.UNSUPPORTED, "This server", what)


def _check_record(row: Sequence[Any]) -> None:
    """Raise BoxError WRONG_INDEX_RECORD unless the row has exactly the fields of `_index`."""
    got = tuple(_record_type(value) for value in row)
    if got != _RECORD_TYPES:
        raise BoxError(ErrorCode.WRONG_INDEX_RECORD, ", ".join(got), _RECORD)


def _record_type(value: object) -> str:
    """The name of a value's msgpack type in the message about an invalid record."""
    if value is None:
        return "nil"
    if isinstance(value, int) and not isinstance(value, bool):
        return "unsigned" if value >= 0 else "integer"
    for kind, name in (
        (bool, "boolean"),
        (str, "string"),
        (bytes, "blob"),
        (list, "array"),
        (dict, "map"),
        (float, "double"),
    ):
        if isinstance(value, kind):
            return name
    return "extension"
