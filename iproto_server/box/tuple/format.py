"""The format of a space: names and types of fields, and the check of new tuples."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.tuple.field_rules import FieldRule, add_part, places_of, tree_checker
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.types.identifier import NAME_MAX, check_identifier
from iproto_server.box.update import Doubles
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import FormatBase, RowCheck

BUILT_IN_COLLATION_IDS: Final = range(277)
"""The numbers of the predefined collations of Tarantool 2.6."""
NULLABLE_ACTIONS: Final = ("none", "rollback", "abort", "fail", "ignore", "replace", "default")

_OPTION_TYPES: Final[dict[str, tuple[type, str]]] = {
    "name": (str, "string"),
    "type": (str, "enum"),
    "is_nullable": (bool, "boolean"),
    "nullable_action": (str, "enum"),
    "collation": (int, "unsigned"),
    "default": (str, "string"),
}
_KNOWN_KEYS: Final = frozenset(_OPTION_TYPES)


@dataclass(frozen=True, slots=True)
class FieldDef:
    """One field of a format.

    Attributes:
        name: its name.
        type: its type.
        is_nullable: whether it may be nil, or missing at the end of the tuple.
        nullable_action: the action of `_space` for a disallowed nil; it is always refused.
        collation_id: the row of `_collation` for texts, or None.
        extra: keys without effect, stored for clients.
    """

    name: str
    type: FieldType = FieldType.ANY
    is_nullable: bool = False
    nullable_action: str = "default"
    collation_id: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class Format(FormatBase):
    """The format of a space's tuples. Immutable; an altered space gets a new one.

    Attributes:
        fields: the declared fields.
        names: the fields' numbers, from 0, by name, in the order of the fields.
        packed_names: the names, packed, in the same order.
        exact_field_count: the number of fields of every tuple; 0: any number.
        min_field_count: the minimal number of fields.
        rules: the rules of declared and indexed fields.
        doubles: the places of fields of type `double`.
        check: raises BoxError unless a tuple, given by its decoded fields, fits: EXACT_FIELD_COUNT (38),
            FIELD_TYPE (23) or FIELD_MISSING (39), for the first wrong field; messages count from 1.
    """

    __slots__ = ("doubles", "exact_field_count", "fields", "min_field_count", "rules")

    def __init__(self, fields: Sequence[FieldDef], exact_field_count: int = 0) -> None:
        """Make a format without requirements of indexes."""
        rules = [
            FieldRule(number, str(number + 1), each.type, each.nullable_action)
            for number, each in enumerate(fields)
        ]
        self._set(fields, exact_field_count, rules)

    def _set(self, fields: Sequence[FieldDef], exact_field_count: int, rules: Sequence[FieldRule]) -> None:
        self.fields = tuple(fields)
        self.names: dict[str, int] = {each.name: number for number, each in enumerate(self.fields)}
        self.packed_names = tuple(map(codec.pack, self.names))
        self.exact_field_count = exact_field_count
        self.rules = tuple(rules)
        required = [number for number, rule in enumerate(rules, start=1) if not rule.is_nullable]
        self.min_field_count = max(required, default=0)
        self.doubles: Doubles = frozenset(places_of(FieldType.DOUBLE, enumerate(self.rules)))
        if any(rule.inside for rule in rules):
            self.check = tree_checker(self.rules, exact_field_count)
        else:
            accepted = tuple((rule.type.value, rule.is_nullable, rule.type.accepted) for rule in self.rules)
            explain = partial(_explain, rules=self.rules, exact_field_count=exact_field_count)
            self.check = RowCheck(accepted, exact_field_count, explain)

    @classmethod
    def parse(
        cls,
        rows: Sequence[Any],
        space_name: str,
        exact_field_count: int = 0,
        error_code: ErrorCode = ErrorCode.ALTER_SPACE,
        collation_ids: Container[int] = BUILT_IN_COLLATION_IDS,
    ) -> Format:
        """Read the format in a row of `_space`.

        Parameters:
            rows: a list of maps.
            space_name: the name of the space, for messages.
            exact_field_count: the row's `field_count`.
            error_code: CREATE_SPACE (9) for a new space, ALTER_SPACE (12) for an existing one.
            collation_ids: the numbers of all collations.

        Raises:
            BoxError: `error_code`; or WRONG_SPACE_FORMAT (141), WRONG_COLLATION_OPTIONS (151), IDENTIFIER
                (70), SPACE_FIELD_IS_DUPLICATE (149).
        """
        fields = parse_fields(rows, space_name, exact_field_count, error_code)
        check_names(fields)
        check_collations(fields, collation_ids)
        return cls(fields, exact_field_count)

    def is_implied_by(self, other: Format) -> bool:
        """Tell whether every tuple that fits another format fits this one, as far as the formats tell."""
        if self.exact_field_count not in (0, other.exact_field_count):
            return False
        if self.min_field_count > max(other.min_field_count, other.exact_field_count):
            return False
        for number, rule in enumerate(self.rules):
            if number < len(other.rules):
                if not rule.is_implied_by(other.rules[number]):
                    return False
            elif rule.type is not FieldType.ANY or rule.inside:
                return False
        return True

    def with_index_parts(self, key_defs: Sequence[KeyDef]) -> Format:
        """Return the format with the requirements of the space's indexes.

        Parameters:
            key_defs: the keys of all indexes, in the order of their ids.

        Raises:
            BoxError: a part's type and the field's (FORMAT_MISMATCH_INDEX_PART, 27) or another part's
                (INDEX_PART_TYPE_MISMATCH, 24) have no value in common; ACTION_MISMATCH (162);
                MULTIKEY_INDEX_MISMATCH (194).
        """
        rules = [rule.copy() for rule in self.rules]
        for key_def in key_defs:
            for part in key_def.parts:
                # Fields before an indexed one must be present too, though they may be nil.
                rules += [
                    FieldRule(number, str(number + 1), FieldType.ANY, "none")
                    for number in range(len(rules), part.field_no + 1)
                ]
        count = len(rules)
        for key_def in key_defs:
            for part in key_def.parts:
                count = add_part(rules, part, len(self.fields), count)
        narrowed = Format.__new__(Format)
        narrowed._set(self.fields, self.exact_field_count, rules)
        return narrowed


def min_field_count(fields: Sequence[FieldDef], key_defs: Sequence[KeyDef]) -> int:
    """The minimal number of fields from declared fields and index parts."""
    required = [number for number, field in enumerate(fields, start=1) if not field.is_nullable]
    required += [part.field_no + 1 for key_def in key_defs for part in key_def.parts if not part.is_nullable]
    return max(required, default=0)


def _explain(fields: Sequence[Any], rules: tuple[FieldRule, ...], exact_field_count: int) -> None:
    """Check a tuple field by field and raise the first error."""
    count = len(fields)
    if exact_field_count and count != exact_field_count:
        raise BoxError(ErrorCode.EXACT_FIELD_COUNT, count, exact_field_count)
    for number, (value, rule) in enumerate(zip(fields, rules, strict=False), start=1):
        if not rule.accepts(value):
            raise BoxError(ErrorCode.FIELD_TYPE, number, rule.type.value)
    for number in range(count, len(rules)):
        if not rules[number].is_nullable:
            raise BoxError(ErrorCode.FIELD_MISSING, number + 1)


def parse_fields(
    rows: Sequence[Any], space_name: str, exact_field_count: int, error_code: ErrorCode
) -> list[FieldDef]:
    """Read the fields of a format: the first checks of `Format.parse`, with its parameters.

    Raises:
        BoxError: `error_code`, WRONG_SPACE_FORMAT (141), IDENTIFIER (70).
    """
    fields = [_parse_field(number, row, space_name, error_code) for number, row in enumerate(rows, start=1)]
    if exact_field_count and exact_field_count < len(fields):
        reason = "exact_field_count must be either 0 or >= formatted field count"
        raise BoxError(error_code, space_name, reason)
    return fields


def check_names(fields: Sequence[FieldDef]) -> None:
    """Raise BoxError SPACE_FIELD_IS_DUPLICATE (149) unless all fields have different names."""
    names: set[str] = set()
    for each in fields:
        if each.name in names:
            raise BoxError(ErrorCode.SPACE_FIELD_IS_DUPLICATE, each.name)
        names.add(each.name)


def check_collations(fields: Sequence[FieldDef], collation_ids: Container[int]) -> None:
    """Raise BoxError WRONG_COLLATION_OPTIONS (151) unless the collations of all fields exist."""
    for number, each in enumerate(fields, start=1):
        if each.collation_id is not None and each.collation_id not in collation_ids:
            raise BoxError(ErrorCode.WRONG_COLLATION_OPTIONS, number, "collation was not found by ID")


def _parse_field(number: int, row: Any, space_name: str, error_code: ErrorCode) -> FieldDef:
    """Read one field of a format; `number` counts from 1."""

    def refuse(reason: str) -> BoxError:
        return BoxError(error_code, space_name, reason)

    if not isinstance(row, dict):
        raise refuse(f"field {number} is not map")
    for key, value in row.items():
        if not isinstance(key, str):
            raise refuse(f"field {number} format is not map with string keys")
        expected = _OPTION_TYPES.get(key)
        if expected is not None and not _has_type(value, expected[0]):
            raise BoxError(ErrorCode.WRONG_SPACE_FORMAT, number, f"'{key}' must be {expected[1]}")
    name = row.get("name", "")
    if not name:
        raise refuse(f"field {number} name is not specified")
    if len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
        raise refuse(f"field {number} name is too long")
    check_identifier(name)
    field_type = FieldType.by_name(row.get("type", "any"))
    if field_type is None:
        raise refuse(f"field {number} has unknown field type")
    is_nullable = row.get("is_nullable", False)
    action = row.get("nullable_action", "none" if is_nullable else "default").lower()
    if action not in NULLABLE_ACTIONS:
        raise refuse(f"field {number} has unknown field on conflict nullable action")
    if is_nullable != (action == "none"):
        raise refuse(f"field {number} has conflicting nullability and nullable action properties")
    collation = row.get("collation")
    if collation and field_type not in (FieldType.STRING, FieldType.SCALAR, FieldType.ANY):
        raise refuse("collation is reasonable only for string, scalar and any fields")
    extra = {key: value for key, value in row.items() if key not in _KNOWN_KEYS}
    return FieldDef(name, field_type, is_nullable, action, collation, extra)


def _has_type(value: object, expected: type) -> bool:
    return type(value) is expected and not (isinstance(value, int) and value < 0)
