"""The format of a space: names and types of its tuples' fields, and the check that every new tuple passes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from iproto_server.box.field_type import FieldType
from iproto_server.box.key_def import KeyDef, KeyPart
from iproto_server.errors import BoxError, ErrorCode

NAME_MAX: Final = 65000
"""Bytes that a name may have."""
LAST_COLLATION_ID: Final = 276
"""Tarantool 2.6 has the collations 0 … 276 built in; nobody can add one here."""
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
        name: how clients call it.
        type: what it may hold.
        is_nullable: whether it may be nil, or missing at the end of the tuple.
        nullable_action: what `_space` says happens to a nil that is not allowed; it is always refused.
        collation_id: the row of `_collation` that texts are meant to be compared by; None for none.
        extra: keys that mean nothing to the server and are kept for clients.
    """

    name: str
    type: FieldType = FieldType.ANY
    is_nullable: bool = False
    nullable_action: str = "default"
    collation_id: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a tuple's field must be: by the format, and by the index parts on it."""

    type: FieldType
    is_nullable: bool
    nullable_action: str
    is_indexed: bool


class Format:
    """What the tuples of a space must look like. Formats do not change; an altered space gets another one.

    Attributes:
        fields: the declared fields.
        names: the fields' numbers, from 0, by name, in the order of the fields.
        exact_field_count: how many fields every tuple must have; 0 when that is left open.
        min_field_count: how many fields a tuple has at the least.
        check: raises BoxError unless a tuple, given by its decoded fields, fits: EXACT_FIELD_COUNT (38),
            FIELD_TYPE (23) or FIELD_MISSING (39), for the first field that is wrong; fields are counted
            from 1 in the texts.
    """

    __slots__ = ("_rules", "check", "exact_field_count", "fields", "min_field_count", "names")

    def __init__(self, fields: Sequence[FieldDef], exact_field_count: int = 0) -> None:
        """Make a format that knows of no index."""
        rules = [_Rule(each.type, each.is_nullable, each.nullable_action, False) for each in fields]
        self._set(fields, exact_field_count, rules)

    def _set(self, fields: Sequence[FieldDef], exact_field_count: int, rules: Sequence[_Rule]) -> None:
        self.fields = tuple(fields)
        self.names: dict[str, int] = {each.name: number for number, each in enumerate(self.fields)}
        self.exact_field_count = exact_field_count
        self._rules = tuple(rules)
        required = [number for number, rule in enumerate(rules, start=1) if not rule.is_nullable]
        self.min_field_count = max(required, default=0)
        self.check = _checker(self._rules, self.min_field_count, exact_field_count)

    @classmethod
    def parse(
        cls,
        rows: Sequence[Any],
        space_name: str,
        exact_field_count: int = 0,
        error_code: ErrorCode = ErrorCode.ALTER_SPACE,
    ) -> Format:
        """Read the format that a row of `_space` holds.

        Parameters:
            rows: a list of maps.
            space_name: for the messages.
            exact_field_count: the row's `field_count`.
            error_code: CREATE_SPACE (9) for a new space, ALTER_SPACE (12) for one that is there.

        Raises:
            BoxError: `error_code`; or WRONG_SPACE_FORMAT (141), WRONG_COLLATION_OPTIONS (151), IDENTIFIER
                (70), SPACE_FIELD_IS_DUPLICATE (149).
        """
        fields = [
            _parse_field(number, row, space_name, error_code) for number, row in enumerate(rows, start=1)
        ]
        if exact_field_count and exact_field_count < len(fields):
            reason = "exact_field_count must be either 0 or >= formatted field count"
            raise BoxError(error_code, space_name, reason)
        for number, each in enumerate(fields, start=1):
            if each.collation_id is not None and each.collation_id > LAST_COLLATION_ID:
                raise BoxError(ErrorCode.WRONG_COLLATION_OPTIONS, number, "collation was not found by ID")
        names: set[str] = set()
        for each in fields:
            if each.name in names:
                raise BoxError(ErrorCode.SPACE_FIELD_IS_DUPLICATE, each.name)
            names.add(each.name)
        return cls(fields, exact_field_count)

    def with_index_parts(self, key_defs: Sequence[KeyDef]) -> Format:
        """Return the format that also demands of the fields what the parts of the space's indexes do.

        Parameters:
            key_defs: those of all indexes of the space, in the order of their ids.

        Raises:
            BoxError: a part's type and the field's (FORMAT_MISMATCH_INDEX_PART, 27) or another part's
                (INDEX_PART_TYPE_MISMATCH, 24) have no value in common; ACTION_MISMATCH (162).
        """
        rules = list(self._rules)
        for key_def in key_defs:
            for part in key_def.parts:
                while len(rules) <= part.field_no:
                    # Fields in front of an indexed one must be there too, though they may be nil.
                    rules.append(_Rule(FieldType.ANY, True, "none", False))
                rule = rules[part.field_no]
                if part.field_no >= len(self.fields) and not rule.is_indexed:
                    rule = _Rule(rule.type, part.is_nullable, part.nullable_action, False)
                rules[part.field_no] = _rule_with_part(rule, part)
        narrowed = Format.__new__(Format)
        narrowed._set(self.fields, self.exact_field_count, rules)
        return narrowed


def _rule_with_part(rule: _Rule, part: KeyPart) -> _Rule:
    """Narrow what a field must be by an index part: the stricter type, and nil only where both allow it."""
    number = part.field_no + 1
    action = rule.nullable_action
    if "default" in (action, part.nullable_action):
        actions = {action, part.nullable_action} - {"default", "none"}
        action = actions.pop() if actions else "default"
    elif action != part.nullable_action:
        raise BoxError(ErrorCode.ACTION_MISMATCH, number, action, part.nullable_action)
    if rule.type.contains(part.type):
        narrowed = part.type
    elif part.type.contains(rule.type):
        narrowed = rule.type
    else:
        code = ErrorCode.INDEX_PART_TYPE_MISMATCH if rule.is_indexed else ErrorCode.FORMAT_MISMATCH_INDEX_PART
        raise BoxError(code, number, rule.type.value, part.type.value)
    return _Rule(narrowed, action == "none", action, True)


def _checker(
    rules: tuple[_Rule, ...], min_field_count: int, exact_field_count: int
) -> Callable[[Sequence[Any]], None]:
    """Put together the check of a tuple: quick where all is well, slow to find words for what is not."""
    types: list[tuple[int, frozenset[type]]] = []
    unsigned: list[int] = []
    for number, rule in enumerate(rules):
        accepted = rule.type.accepted
        if accepted is not None:
            types.append((number, accepted | {type(None)} if rule.is_nullable else accepted))
        if rule.type is FieldType.UNSIGNED:
            unsigned.append(number)
    # A tuple that ends before its last nullable fields has fewer fields to look at: by its length, which.
    field_count = len(rules)
    shorter = [
        (
            [pair for pair in types if pair[0] < min_field_count + more],
            [number for number in unsigned if number < min_field_count + more],
        )
        for more in range(field_count - min_field_count)
    ]

    def check(fields: Sequence[Any]) -> None:
        count = len(fields)
        if count >= min_field_count and (not exact_field_count or count == exact_field_count):
            if count >= field_count:
                to_check, not_negative = types, unsigned
            else:
                to_check, not_negative = shorter[count - min_field_count]
            for number, accepted in to_check:
                if type(fields[number]) not in accepted:
                    break
            else:
                for number in not_negative:
                    value = fields[number]
                    if value is not None and value < 0:
                        break
                else:
                    return
        _explain(fields, rules, exact_field_count)

    return check


def _explain(fields: Sequence[Any], rules: tuple[_Rule, ...], exact_field_count: int) -> None:
    """Check a tuple field by field and raise what is wrong first."""
    count = len(fields)
    if exact_field_count and count != exact_field_count:
        raise BoxError(ErrorCode.EXACT_FIELD_COUNT, count, exact_field_count)
    for number, (value, rule) in enumerate(zip(fields, rules, strict=False), start=1):
        if not (rule.type.accepts(value) or (value is None and rule.is_nullable)):
            raise BoxError(ErrorCode.FIELD_TYPE, number, rule.type.value)
    for number in range(count, len(rules)):
        if not rules[number].is_nullable:
            raise BoxError(ErrorCode.FIELD_MISSING, number + 1)


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
    if collation is not None and field_type not in (FieldType.STRING, FieldType.SCALAR, FieldType.ANY):
        raise refuse("collation is reasonable only for string, scalar and any fields")
    extra = {key: value for key, value in row.items() if key not in _KNOWN_KEYS}
    return FieldDef(name, field_type, is_nullable, action, collation, extra)


def _has_type(value: object, expected: type) -> bool:
    return type(value) is expected and not (isinstance(value, int) and value < 0)


def check_identifier(name: str) -> None:
    """Raise BoxError IDENTIFIER (70) unless `name` can name something: not empty, valid UTF-8, printable."""
    if name.isascii() and name.isprintable() and name:
        return
    if not name or any(unicodedata.category(each) in _UNPRINTABLE or each == "\ufffd" for each in name):
        raise BoxError(ErrorCode.IDENTIFIER, name)


_UNPRINTABLE: Final = frozenset({"Cc", "Cs", "Cn", "Zl", "Zp"})
