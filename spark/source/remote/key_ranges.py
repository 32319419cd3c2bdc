"""Ranges of a primary key, so that tasks can share the rows of a server's space."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from iproto_server.box.types.field_type import FieldType
from pyspark_tarantool.source.arrow.filters import Condition
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

_LEAST: Final = {FieldType.UNSIGNED: 0, FieldType.INTEGER: -(2**63)}
_MOST: Final = 2**64 - 1
"""The lowest values of types of fields, and the highest."""

_DIGITS: Final = 8
"""The number of bytes of texts that are interpolated, after those that all texts share."""


class KeyRange(NamedTuple):
    """The keys whose first part is in an interval.

    Attributes:
        low: The lowest value; None for no limit.
        high: The value above the highest one; None for no limit.
    """

    low: Any = None
    high: Any = None

    @property
    def is_empty(self) -> bool:
        """Whether no key is in the range."""
        return self.low is not None and self.high is not None and bool(self.low >= self.high)


class KeyScale(ABC):
    """The values of the first part of a primary key, comparable as the server compares them.

    Parameters:
        place: The field's index.
        name: The field's name.
    """

    def __init__(self, place: int, name: str) -> None:
        self.place = place
        self.name = name

    @abstractmethod
    def of(self, value: Any) -> Any:
        """The comparable form of a field's value, or of a filter's."""

    @abstractmethod
    def key(self, value: Any) -> Any:
        """The field's value of a comparable form."""

    @abstractmethod
    def after(self, value: Any) -> Any:
        """The next higher value."""

    @abstractmethod
    def between(self, low: Any, high: Any, count: int) -> list[Any]:
        """Evenly distributed values in an interval.

        Parameters:
            low: The lowest value.
            high: The highest value.
            count: The number of parts that they divide the interval into.

        Returns:
            At most `count - 1` values above `low` and up to `high`, ascending.
        """

    def range_of(self, conditions: Iterable[Condition]) -> KeyRange:
        """The keys that filters on the field may select.

        Parameters:
            conditions: The filters; those on other fields are ignored.
        """
        found = KeyRange()
        for condition in conditions:
            if condition.column == self.name and not condition.negated:
                found = _intersection(found, self._range_of(condition))
        return self.within_type(found)

    def within_type(self, found: KeyRange) -> KeyRange:
        """A range without limits that no value of the field's type has."""
        return found

    def _range_of(self, condition: Condition) -> KeyRange:
        kind = condition.kind
        given = condition.value if kind is In else (condition.value,)
        values = [self.of(value) for value in given if value is not None]
        if not values:
            return KeyRange()
        if kind is GreaterThan:
            return KeyRange(self.after(values[0]))
        if kind is GreaterThanOrEqual:
            return KeyRange(values[0])
        if kind is LessThan:
            return KeyRange(None, values[0])
        if kind is LessThanOrEqual:
            return KeyRange(None, self.after(values[0]))
        if kind in (EqualTo, EqualNullSafe, In):
            return KeyRange(min(values), self.after(max(values)))
        return KeyRange()

    def split(self, wanted: KeyRange, low: Any, high: Any, count: int) -> list[KeyRange]:
        """Split a range among tasks.

        Parameters:
            wanted: The range.
            low: The lowest value in it that exists.
            high: The highest one.
            count: The number of parts.

        Returns:
            At most so many ranges, in order, which together have all its keys.
        """
        borders = self.between(low, high, count)
        return [
            KeyRange(start, end)
            for start, end in zip([wanted.low, *borders], [*borders, wanted.high], strict=True)
        ]


class IntegerScale(KeyScale):
    """Integers.

    Parameters:
        place: The field's index.
        name: The field's name.
        least: The lowest value of its type.
    """

    def __init__(self, place: int, name: str, least: int) -> None:
        super().__init__(place, name)
        self._least = least

    def within_type(self, found: KeyRange) -> KeyRange:
        low = None if found.low is None or found.low <= self._least else found.low
        high = None if found.high is None or found.high > _MOST else found.high
        if (low is not None and low > _MOST) or (high is not None and high <= self._least):
            return KeyRange(0, 0)
        return KeyRange(low, high)

    def of(self, value: Any) -> int:
        return int(value) if isinstance(value, Decimal) else value

    def key(self, value: int) -> int:
        return value

    def after(self, value: int) -> int:
        return value + 1

    def between(self, low: int, high: int, count: int) -> list[int]:
        borders = {low + (high + 1 - low) * number // count for number in range(1, count)}
        return sorted(border for border in borders if border > low)


class NumberScale(KeyScale):
    """Integers, decimals and floating-point numbers.

    Filters select no ranges, since the column may have texts (option `number`).
    """

    def range_of(self, conditions: Iterable[Condition]) -> KeyRange:
        return KeyRange()

    def of(self, value: Any) -> Any:
        return value

    def key(self, value: Any) -> Any:
        return value

    def after(self, value: Any) -> Any:
        return value + 1

    def between(self, low: Any, high: Any, count: int) -> list[Any]:
        if not (math.isfinite(low) and math.isfinite(high)):
            return []
        first, last = math.floor(low), math.floor(high)
        borders = {first + (last + 1 - first) * number // count for number in range(1, count)}
        return sorted(border for border in borders if low < border <= min(high, _MOST) and border >= -(2**63))


class TextScale(KeyScale):
    """Texts that are compared by their bytes."""

    def of(self, value: Any) -> bytes:
        return str(value).encode("utf-8", "surrogateescape")

    def key(self, value: bytes) -> str:
        return value.decode("utf-8", "surrogateescape")

    def after(self, value: bytes) -> bytes:
        return value + b"\0"

    def between(self, low: bytes, high: bytes, count: int) -> list[bytes]:
        shared = 0
        while shared < min(len(low), len(high)) and low[shared] == high[shared]:
            shared += 1
        first, last = (
            int.from_bytes(text[shared : shared + _DIGITS].ljust(_DIGITS, b"\0"), "big")
            for text in (low, high)
        )
        numbers = {first + (last - first) * number // count for number in range(1, count)}
        borders = {low[:shared] + number.to_bytes(_DIGITS, "big").rstrip(b"\0") for number in numbers}
        return sorted(border for border in borders if low < border <= high)


def key_scale(space: SpaceDefinition) -> KeyScale | None:
    """The scale of a space's primary key.

    Parameters:
        space: The space.

    Returns:
        The scale; None if the server's order of keys is not known here.
    """
    index = space.indexes[0]
    part = index.key_def.parts[0]
    if index.type.upper() != "TREE" or part.path is not None or part.collation is not None:
        return None
    name = space.fields[part.field_no].name
    if part.type in _LEAST:
        return IntegerScale(part.field_no, name, _LEAST[part.type])
    if part.type is FieldType.NUMBER:
        return NumberScale(part.field_no, name)
    if part.type is FieldType.STRING:
        return TextScale(part.field_no, name)
    return None


def _intersection(one: KeyRange, other: KeyRange) -> KeyRange:
    lows = [value for value in (one.low, other.low) if value is not None]
    highs = [value for value in (one.high, other.high) if value is not None]
    return KeyRange(max(lows, default=None), min(highs, default=None))
