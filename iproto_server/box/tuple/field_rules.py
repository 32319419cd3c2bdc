"""Rules for the fields of a tuple and the values inside them, from a format and from index parts.

Rules form a tree if parts have JSON paths: the rule of a field contains those of the values on each path.
Everything follows `tuple_format` of Tarantool 2.6, including the order in which faults are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from iproto_server.box.key.key_part import KeyPart, Step, path_text
from iproto_server.box.types.field_type import FieldType
from iproto_server.errors import BoxError, ErrorCode

_CONTAINERS = (FieldType.ARRAY, FieldType.MAP)


class FieldRule:
    """The requirements of one place in a tuple.

    Attributes:
        number: its number among all rules: fields come first, then places inside, in the order of parts.
        where: its place, for messages.
        type: the type of the value.
        nullable_action: `none` if the value may be nil or missing.
        is_indexed: whether an index part leads here or through here.
        inside: the rules of places inside; a single one with the key None for `[*]`.
    """

    __slots__ = ("inside", "is_indexed", "nullable_action", "number", "type", "where")

    def __init__(self, number: int, where: str, type: FieldType, nullable_action: str) -> None:
        self.number = number
        self.where = where
        self.type = type
        self.nullable_action = nullable_action
        self.is_indexed = False
        self.inside: dict[Step, FieldRule] = {}

    @property
    def is_nullable(self) -> bool:
        """Whether the value may be nil or missing."""
        return self.nullable_action == "none"

    def copy(self) -> FieldRule:
        """Make a deep copy, which may be narrowed."""
        made = FieldRule(self.number, self.where, self.type, self.nullable_action)
        made.is_indexed = self.is_indexed
        made.inside = {step: rule.copy() for step, rule in self.inside.items()}
        return made

    def accepts(self, value: object) -> bool:
        """Tell whether a value is allowed here, without a check of its inside."""
        return self.type.accepts(value) or (value is None and self.is_nullable)

    def is_implied_by(self, other: FieldRule) -> bool:
        """Tell whether this rule accepts everything that another one does."""
        return (
            self.type.contains(other.type)
            and (self.is_nullable or not other.is_nullable)
            and all(
                step in other.inside and rule.is_implied_by(other.inside[step])
                for step, rule in self.inside.items()
            )
        )

    def go_in(self, step: Step, number: int, where: str) -> FieldRule:
        """Find or make the rule of a place one step inside.

        Parameters:
            step: the step.
            number, where: for a new rule.

        Raises:
            BoxError: INDEX_PART_TYPE_MISMATCH (24) if the type has no inside, MULTIKEY_INDEX_MISMATCH (194)
                if one path leads to one element and another to all.
        """
        expected = FieldType.MAP if isinstance(step, str) else FieldType.ARRAY
        if not self.type.contains(expected):
            raise BoxError(ErrorCode.INDEX_PART_TYPE_MISMATCH, self.where, self.type.value, expected.value)
        self.type = expected
        if self.inside and (step is None) != (None in self.inside):
            raise BoxError(ErrorCode.MULTIKEY_INDEX_MISMATCH, self.where)
        if step not in self.inside:
            self.inside[step] = FieldRule(number, where, FieldType.ANY, "none")
        self._require_container()
        self.is_indexed = True
        return self.inside[step]

    def narrow(self, part: KeyPart, is_declared: bool) -> None:
        """Add the requirements of an index part: the stricter type, and nil only if both allow it.

        Parameters:
            part: the part.
            is_declared: whether the field is in the format.

        Raises:
            BoxError: the types have no value in common (FORMAT_MISMATCH_INDEX_PART, 27, or
                INDEX_PART_TYPE_MISMATCH, 24); ACTION_MISMATCH (162).
        """
        if part.path is not None:
            self._require_container()
        if not is_declared and not self.is_indexed:
            self.nullable_action = part.nullable_action
        action = self.nullable_action
        if "default" in (action, part.nullable_action):
            actions = {action, part.nullable_action} - {"default", "none"}
            action = actions.pop() if actions else "default"
        elif action != part.nullable_action:
            raise BoxError(ErrorCode.ACTION_MISMATCH, self.where, action, part.nullable_action)
        self.nullable_action = action
        if self.type.contains(part.type):
            self.type = part.type
        elif not part.type.contains(self.type):
            code = (
                ErrorCode.INDEX_PART_TYPE_MISMATCH
                if self.is_indexed
                else ErrorCode.FORMAT_MISMATCH_INDEX_PART
            )
            raise BoxError(code, self.where, self.type.value, part.type.value)
        self.is_indexed = True

    def _require_container(self) -> None:
        """Forbid nil: a path cannot lead into it."""
        if self.type in _CONTAINERS and self.is_nullable:
            self.nullable_action = "default"

    def required_inside(self) -> Iterator[FieldRule]:
        """The required places, this one or those inside, except elements of `[*]`."""
        if not self.inside:
            if not self.is_nullable:
                yield self
            return
        for step, rule in self.inside.items():
            if step is not None:
                yield from rule.required_inside()


def places_of(type: FieldType, rules: Iterable[tuple[Step, FieldRule]]) -> Iterator[tuple[Step, ...]]:
    """The places that require exactly this type, each as its steps."""
    for step, rule in rules:
        if rule.type is type:
            yield (step,)
        for inside in places_of(type, rule.inside.items()):
            yield (step, *inside)


def add_part(rules: list[FieldRule], part: KeyPart, declared_count: int, count: int) -> int:
    """Add the requirements of an index part to the rules of a tuple.

    Parameters:
        rules: the rules of fields, including the part's field.
        part: the part.
        declared_count: the number of fields in the format.
        count: the number of rules.

    Returns: the new number of rules.

    Raises:
        BoxError: see `FieldRule`.
    """
    rule = rules[part.field_no]
    steps = part.steps
    for depth, step in enumerate(steps, start=1):
        rule = rule.go_in(step, count, path_text(part.field_no, steps[:depth]))
        count = max(count, rule.number + 1)
    rule.narrow(part, part.field_no < declared_count)
    return count


def tree_checker(rules: Sequence[FieldRule], exact_field_count: int) -> Callable[[Sequence[Any]], None]:
    """Compose the check of a tuple against rules with places inside fields."""
    required = {rule.number: rule for each in rules for rule in each.required_inside()}

    def check(fields: Sequence[Any]) -> None:
        if exact_field_count and len(fields) != exact_field_count:
            raise BoxError(ErrorCode.EXACT_FIELD_COUNT, len(fields), exact_field_count)
        missing = dict(required)
        for rule, value in zip(rules, fields, strict=False):
            _visit(rule, value, missing)
        _refuse_missing(missing)

    return check


def _visit(rule: FieldRule, value: Any, missing: dict[int, FieldRule]) -> None:
    """Check a value and its inside, and remove present places from `missing`."""
    if not rule.accepts(value):
        raise BoxError(ErrorCode.FIELD_TYPE, rule.where, rule.type.value)
    missing.pop(rule.number, None)
    if not rule.inside:
        return
    if type(value) is dict:
        for key, inner in value.items():
            inner_rule = rule.inside.get(key) if type(key) is str else None
            if inner_rule is not None:
                _visit(inner_rule, inner, missing)
        return
    element_rule = rule.inside.get(None)
    for number, element in enumerate(value or ()):
        if element_rule is not None:
            missing_inside = {each.number: each for each in element_rule.required_inside()}
            _visit(element_rule, element, missing_inside)
            _refuse_missing(missing_inside)
        elif number in rule.inside:
            _visit(rule.inside[number], element, missing)


def _refuse_missing(missing: dict[int, FieldRule]) -> None:
    if missing:
        raise BoxError(ErrorCode.FIELD_MISSING, missing[min(missing)].where)
