"""Pushed-down filters, evaluated on Arrow columns before the remaining columns are made.

Spark does not evaluate accepted filters again, so only filters with identical semantics are accepted:
comparisons with values, of column types that Spark and Arrow compare alike. A comparison with null is
unknown, and so is its negation; rows for which a filter is unknown are dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

_COMPARISONS: Final = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_UNDERSTOOD: Final = frozenset({*_COMPARISONS, In, EqualNullSafe, IsNull, IsNotNull})
_ALIKE: Final = (
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_boolean,
    pa.types.is_timestamp,
)
"""The types whose values Spark and Arrow compare alike; not floats, due to NaN."""


class Condition(NamedTuple):
    """One filter.

    Attributes:
        column: The column's name.
        kind: The filter's class.
        value: The Python value that the column is compared with; None if there is none.
        negated: Whether the condition is negated.
    """

    column: str
    kind: type[Filter]
    value: Any
    negated: bool

    def evaluate(self, array: pa.Array) -> pa.Array:
        """Evaluate the condition for each value; null if unknown.

        Parameters:
            array: The column.
        """
        result = self._evaluate(array)
        return pc.invert(result) if self.negated else result

    def _evaluate(self, array: pa.Array) -> pa.Array:
        if self.kind is IsNull:
            return pc.is_null(array)
        if self.kind is IsNotNull:
            return pc.is_valid(array)
        if self.kind is In:
            known = [value for value in self.value if value is not None]
            result = pc.is_in(array, value_set=pa.array(known, array.type))
            unknown = pc.is_null(array)
            if len(known) < len(self.value):
                unknown = pc.or_(unknown, pc.invert(result))
            return pc.if_else(unknown, pa.scalar(None, pa.bool_()), result)
        if self.kind is EqualNullSafe:
            if self.value is None:
                return pc.is_null(array)
            return pc.fill_null(pc.equal(array, pa.scalar(self.value, array.type)), False)
        return _COMPARISONS[self.kind](array, pa.scalar(self.value, array.type))

    def values(self) -> Collection[Any] | None:
        """The values that the column may have; None if they cannot be enumerated."""
        if self.negated or self.kind not in (EqualTo, EqualNullSafe, In) or self.value is None:
            return None
        return self.value if self.kind is In else (self.value,)


class Filters:
    """The conjunction of a query's filters. It can be pickled.

    Parameters:
        conditions: The filters.
    """

    def __init__(self, conditions: Iterable[Condition] = ()) -> None:
        self.conditions = tuple(conditions)

    @property
    def columns(self) -> set[str]:
        """The names of the columns that the filters use."""
        return {condition.column for condition in self.conditions}

    def accept(self, filters: Iterable[Filter], types: Mapping[str, pa.DataType]) -> Iterator[Filter]:
        """Accept the filters that can be evaluated here.

        Parameters:
            filters: The filters of the query.
            types: The columns that filters may use, and their types; `a.b` is the field `b` of a struct.

        Yields:
            The filters that Spark has to evaluate itself.
        """
        for given in filters:
            condition = _condition(given, types)
            if condition is None:
                yield given
            else:
                self.conditions += (condition,)

    def mask(self, columns: Mapping[str, pa.Array]) -> npt.NDArray[np.bool_]:
        """Evaluate all filters; there must be at least one.

        Parameters:
            columns: At least the columns that the filters use.

        Returns:
            A mask of the matching rows.
        """
        result = pa.scalar(True)
        for condition in self.conditions:
            result = pc.and_kleene(result, condition.evaluate(columns[condition.column]))
        wanted: npt.NDArray[np.bool_] = pc.fill_null(result, False).to_numpy(zero_copy_only=False)
        return wanted

    def on(self, *columns: str) -> Filters:
        """The filters on the given columns."""
        return Filters(condition for condition in self.conditions if condition.column in columns)

    def admits(self, column: str, value: Any, arrow: pa.DataType) -> bool:
        """Whether a row with this value in a column may match."""
        about = self.on(column)
        return not about.conditions or bool(about.mask({column: pa.array([value], arrow)})[0])

    def values(self, column: str) -> Collection[Any] | None:
        """The values that a column may have; None if they cannot be enumerated."""
        found = [values for one in self.on(column).conditions if (values := one.values()) is not None]
        return min(found, key=len, default=None)

    def overlaps(self, column: str, low: int, high: int | None) -> bool:
        """Whether a row with a column's value in an interval may match.

        Parameters:
            column: A column of integers.
            low: The interval's lowest value.
            high: The highest value; None for no limit.
        """
        for condition in self.on(column).conditions:
            value = condition.value
            if condition.negated or (value is None and condition.kind in (EqualTo, IsNull, EqualNullSafe)):
                continue
            if condition.kind in (GreaterThan, GreaterThanOrEqual):
                strictly = condition.kind is GreaterThan
                if value is None or (high is not None and (high <= value if strictly else high < value)):
                    return False
            elif condition.kind in (LessThan, LessThanOrEqual):
                strictly = condition.kind is LessThan
                if value is None or (low >= value if strictly else low > value):
                    return False
            values = condition.values()
            if values is not None and not any(
                value is not None and low <= value and (high is None or value <= high) for value in values
            ):
                return False
        return True


def _condition(given: Filter, types: Mapping[str, pa.DataType]) -> Condition | None:
    """The condition of a filter; None if Spark has to evaluate it."""
    negated = isinstance(given, Not)
    inner = given.child if isinstance(given, Not) else given
    if type(inner) not in _UNDERSTOOD:
        return None
    attribute: tuple[str, ...] = getattr(inner, "attribute", ())
    column = ".".join(attribute)
    arrow = types.get(column)
    if arrow is None or not any(alike(arrow) for alike in _ALIKE):
        return None
    value: Any = getattr(inner, "value", None)
    values = tuple(value) if isinstance(inner, In) else (value,)
    # Arrow would truncate a float.
    if any(isinstance(each, float) for each in values):
        return None
    try:
        pa.array(values, arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return Condition(column, type(inner), values if isinstance(inner, In) else value, negated)
