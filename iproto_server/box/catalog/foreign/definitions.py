"""Options of spaces, fields and indexes that other versions of Tarantool have stored.

An option that changes nothing of what this server serves stays in its row, and is hidden from the checks of
2.6. One that does is refused by name, because the server would answer or accept something else than the
Tarantool that wrote it. Clients can add neither kind; rows that already have one may be altered.

Sources: Tarantool's manual, "box.schema.space.create" and "space_object:create_index"; the behavior of each
version is in the table of docs/PERSISTENCE.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from iproto_server.box.catalog.foreign.versions import UNKNOWN, WITH_DEFAULTS, Version
from iproto_server.box.types.field_type import FieldType
from iproto_server.errors import BoxError, ErrorCode

_FLAGS, _FORMAT = 5, 6
_OPTIONS, _PARTS = 4, 5

_SPACE_OPTIONS: Final = frozenset({"temporary", "group_id", "is_sync", "view", "sql"})
_SPACE_OPTIONS_KEPT: Final = frozenset({"checks", "defer_deletes", "type"})
_TYPES_OF_SPACES: Final = {"normal": False, "data-temporary": True, "temporary": True}
_TYPE_OPTION, _TEMPORARY = "type", "temporary"

_FIELD_OPTIONS_REFUSED: Final = ("constraint", "foreign_key", "default_func", "default", "compression")

_INDEX_OPTIONS: Final = frozenset(
    {
        "unique",
        "dimension",
        "distance",
        "range_size",
        "page_size",
        "run_count_per_level",
        "run_size_ratio",
        "bloom_fpr",
        "lsn",
        "func",
        "sql",
    }
)
_INDEX_OPTIONS_KEPT: Final = frozenset({"hint"})
NEWER_FIELD_TYPES: Final = frozenset(
    f"{kind}{bits}"
    for kind, sizes in (
        ("int", (8, 16, 32, 64)),
        ("uint", (8, 16, 32, 64)),
        ("float", (32, 64)),
        ("decimal", (32, 64, 128, 256)),
    )
    for bits in sizes
)
"""The field types of fixed size, which Tarantool has since 3.5."""
_PART_OPTIONS: Final = frozenset(
    {"type", "field", "collation", "is_nullable", "nullable_action", "sort_order", "path", "exclude_null"}
)


def unserved(what: str) -> BoxError:
    """The error for something that this server does not have.

    Parameters:
        what: its name, for the end of a sentence.
    """
    return BoxError(ErrorCode.UNSUPPORTED, "This server", what)


def served_space(
    row: Sequence[Any], before: Sequence[Any] | None, version: Version | None
) -> tuple[dict[Any, Any], list[Any], bool]:
    """Return the options and the format of a row of `_space` as Tarantool 2.6 would have written them.

    Parameters:
        row: the row.
        before: the row that it replaces; None for a new space.
        version: the version that has written the row; None if a client writes it.

    Returns: the options, the format, and whether the space's rows are temporary.

    Raises:
        BoxError: UNSUPPORTED (5) for an option or a field type that this server does not have.
    """
    flags, fields = row[_FLAGS], list(row[_FORMAT])
    if isinstance(flags, dict):
        old = _map(before, _FLAGS)
        if version is not None:
            _check_space_options(flags)
        if _TYPE_OPTION in flags and _TEMPORARY in flags:
            raise unserved("the options 'type' and 'temporary' together")
        flags = {
            name: value
            for name, value in flags.items()
            if not (name in _SPACE_OPTIONS_KEPT and (version is not None or _has(old, name, value)))
            and not _is_empty_constraint(name, value, version)
        }
        type_name = row[_FLAGS].get(_TYPE_OPTION)
        is_temporary = bool(flags.get(_TEMPORARY)) or (
            isinstance(type_name, str) and _TYPES_OF_SPACES.get(type_name, False)
        )
    else:
        is_temporary = False
    old_fields = [] if before is None else before[_FORMAT]
    return flags, [_served_field(field, old_fields, version) for field in fields], is_temporary


def served_index(
    row: Sequence[Any], before: Sequence[Any] | None, version: Version | None, database: Version = UNKNOWN
) -> list[Any]:
    """Return a row of `_index` as Tarantool 2.6 would have written it.

    Parameters:
        row: the row.
        before: the row that it replaces; None for a new index.
        version: the version that has written the row; None if a client writes it.
        database: the version of the database, which decides what the row means at the next start.

    Raises:
        BoxError: UNSUPPORTED (5) for an option or a field type that this server does not have.
    """
    served = list(row)
    options = _map(row, _OPTIONS)
    if options:
        if version is not None:
            _check_names(options, _INDEX_OPTIONS | _INDEX_OPTIONS_KEPT, "of an index")
        old = _map(before, _OPTIONS)
        served[_OPTIONS] = {
            name: value
            for name, value in options.items()
            if not (name in _INDEX_OPTIONS_KEPT and (version is not None or _has(old, name, value)))
        }
    parts = row[_PARTS] if len(row) > _PARTS else None
    if isinstance(parts, list) and max(database, version or UNKNOWN) >= WITH_DEFAULTS:
        _check_orders(parts)
    if isinstance(parts, list) and (
        version is not None or (before is not None and before[_PARTS:] == row[_PARTS:])
    ):
        served[_PARTS] = [_served_part(part, version) for part in parts]
    return served


# -- spaces --


def _check_space_options(flags: Mapping[Any, Any]) -> None:
    """Check the options of a space in a file."""
    for name, value in flags.items():
        if name in ("constraint", "foreign_key") and not value:
            continue
        if isinstance(name, str) and name not in _SPACE_OPTIONS | _SPACE_OPTIONS_KEPT:
            raise unserved(f"the option '{name}' of a space")
    type_name = flags.get(_TYPE_OPTION, "normal")
    if not isinstance(type_name, str) or type_name not in _TYPES_OF_SPACES:
        raise unserved(f"the space type {type_name!r}")


def _is_empty_constraint(name: object, value: object, version: Version | None) -> bool:
    return version is not None and name in ("constraint", "foreign_key") and not value


def _served_field(field: Any, before: Sequence[Any], version: Version | None) -> Any:
    """A field of a format, if this server has everything in it."""
    if not isinstance(field, dict):
        return field
    name = field.get("name")
    if version is None:
        known = next((each for each in before if isinstance(each, dict) and each.get("name") == name), {})
    else:
        known = {}
        _check_type(field.get("type", "any"), f"of the field '{name}'")
    for option in _FIELD_OPTIONS_REFUSED:
        value = field.get(option)
        if value is None or value in ({}, []) or (option == "compression" and value == "none"):
            continue
        if _has(known, option, value):
            continue
        if option == "default" and version is not None and version < WITH_DEFAULTS:
            # Only SQL uses it.
            continue
        raise unserved(f"the option '{option}' of the field '{name}'")
    return field


# -- indexes --


def _check_orders(parts: Sequence[Any]) -> None:
    for part in parts:
        order = part.get("sort_order") if isinstance(part, dict) else None
        if isinstance(order, str) and order.lower() == "desc":
            raise unserved("the option sort_order = 'desc' of an index part")


def _served_part(part: Any, version: Version | None) -> Any:
    """A part of an index without the option `exclude_null`."""
    if isinstance(part, list):
        if version is not None and len(part) > 1:
            _check_type(part[1], "of an index part")
        return part
    if not isinstance(part, dict):
        return part
    if version is not None:
        _check_names(part, _PART_OPTIONS, "of an index part")
        _check_type(part.get("type", "any"), "of an index part")
    if part.get("exclude_null"):
        raise unserved("exclude_null in an index part")
    return {name: value for name, value in part.items() if name != "exclude_null"}


# -- both --


def _check_type(name: object, of: str) -> None:
    """Check that this server has a field type; values that are no names are left to later checks."""
    if isinstance(name, str) and FieldType.by_name(name) is None:
        raise unserved(f"the type '{name}' {of}")


def _check_names(options: Mapping[Any, Any], known: frozenset[str], of: str) -> None:
    for name in options:
        if isinstance(name, str) and name not in known:
            raise unserved(f"the option '{name}' {of}")


def _map(row: Sequence[Any] | None, place: int) -> Mapping[Any, Any]:
    value = None if row is None or len(row) <= place else row[place]
    return value if isinstance(value, dict) else {}


def _has(options: Mapping[Any, Any], name: str, value: object) -> bool:
    return name in options and bool(options[name] == value)
