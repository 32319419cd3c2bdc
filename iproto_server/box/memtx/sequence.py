"""Sequences: counters, defined by rows of `_sequence`.

The value is kept outside `_sequence_data`: drawing a number for a row changes the value without changing a
row, and a rollback does not revert it. Snapshots contain the values; recovery from a log derives them from
the stored rows.

Source: Tarantool reference, "box.schema.sequence"; edge cases as in Tarantool 2.6.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from iproto_server.box.access.access_control import Credentials, Privilege, denied
from iproto_server.box.types.identifier import NAME_MAX, check_identifier
from iproto_server.errors import BoxError, ErrorCode

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_NAME_SHOWN: Final = 64
_UINT32_MASK: Final = 0xFFFFFFFF
_FIRST_INTEGER_FIELD: Final = 3
_USE: Final = int(Privilege.USAGE | Privilege.WRITE)


@dataclass(frozen=True, slots=True)
class SequenceDef:
    """A row of `_sequence`.

    Attributes:
        id: its number.
        owner: user id of the owner.
        name: its name.
        step: the increment, not 0; below 0 the sequence descends.
        min, max: the least and the greatest value.
        start: the first value.
        cache: stored, without effect.
        cycle: whether it continues at the other end instead of overflowing.
    """

    id: int
    owner: int
    name: str
    step: int
    min: int
    max: int
    start: int
    cache: int
    cycle: bool

    @classmethod
    def parse(cls, row: Sequence[Any], error_code: ErrorCode) -> Self:
        """Read a row of `_sequence`, checking in Tarantool's order.

        Parameters:
            row: the decoded row, which fits the space's format.
            error_code: CREATE_SEQUENCE (142) for a new one, ALTER_SEQUENCE (143) for an existing one.

        Raises:
            BoxError: `error_code`; or IDENTIFIER (70), FIELD_TYPE (23) for a number beyond 64 signed bits.
        """
        sequence_id, owner, name, step, least, greatest, start, cache, cycle = row[:9]
        if len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
            raise BoxError(error_code, name[:_NAME_SHOWN], "sequence name is too long")
        check_identifier(name)
        for number, value in enumerate((step, least, greatest, start, cache), start=_FIRST_INTEGER_FIELD):
            check_int64(value, number)
        for reason, is_wrong in (
            ("step option must be non-zero", step == 0),
            ("max must be greater than or equal to min", least > greatest),
            ("start must be between min and max", not least <= start <= greatest),
        ):
            if is_wrong:
                raise BoxError(error_code, name, reason)
        return cls(
            sequence_id & _UINT32_MASK,
            owner & _UINT32_MASK,
            name,
            step,
            least,
            greatest,
            start,
            cache,
            cycle,
        )


def check_int64(value: int, field_no: int) -> None:
    """Raise BoxError FIELD_TYPE (23) for a number beyond 64 signed bits; `field_no` counts from 0."""
    if value > INT64_MAX:
        raise BoxError(ErrorCode.FIELD_TYPE, field_no + 1, "integer")


class SequenceState:
    """The state of an existing sequence.

    Parameters:
        definition: its definition.

    Attributes:
        definition: its present definition.
        value: the last value; None before the first one and after a reset.
        is_generated: whether it was created for the space it is attached to, whose access rights apply.
    """

    __slots__ = ("definition", "is_generated", "value")

    def __init__(self, definition: SequenceDef) -> None:
        self.definition = definition
        self.value: int | None = None
        self.is_generated = False

    def next(self) -> int:
        """Advance to the next value and return it. Raises BoxError SEQUENCE_OVERFLOW (147)."""
        definition, value = self.definition, self.value
        if value is None:
            following = definition.start
        elif definition.step > 0:
            following = definition.min if value < definition.min else value + definition.step
        else:
            following = definition.max if value > definition.max else value + definition.step
        if value is not None and not definition.min <= following <= definition.max:
            if not definition.cycle:
                raise BoxError(ErrorCode.SEQUENCE_OVERFLOW, definition.name)
            following = definition.min if definition.step > 0 else definition.max
        self.value = following
        return following

    def current(self) -> int:
        """The last value. Raises BoxError SEQUENCE_NOT_STARTED (212)."""
        if self.value is None:
            raise BoxError(ErrorCode.SEQUENCE_NOT_STARTED, self.definition.name)
        return self.value

    def follow(self, value: int) -> None:
        """Advance to the value of a row, which may be out of bounds; never go back."""
        present = self.value
        if present is None or (value > present if self.definition.step > 0 else value < present):
            self.value = value

    def check_use(self, user: Credentials) -> None:
        """Raise BoxError ACCESS_DENIED (42) unless the user may draw and set values."""
        definition = self.definition
        missing = _USE & ~user.universe & ~user.objects.get(("sequence", ""), 0)
        if not missing:
            return
        of_object = user.objects.get(("sequence", definition.id), 0)
        if missing & Privilege.USAGE or (definition.owner != user.user_id and missing & ~of_object):
            if not user.universe & Privilege.USAGE:
                raise denied(Privilege.USAGE, "universe", "", user.name)
            raise denied(Privilege.WRITE, "sequence", definition.name, user.name)
