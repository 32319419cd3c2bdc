"""Conditions of `--fail-if`, such as `oldest_ready > 5m`, which turn results into alerts of a scheduler."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Self

import click

from pyspark_tarantool.report.quantities import text_of

STATUS: Final = 3
"""The exit status if a condition holds."""

_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_CONDITION: Final = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*")


class ConditionError(click.ClickException):
    """A condition of `--fail-if` holds."""

    exit_code = STATUS


class Condition(NamedTuple):
    """A condition.

    Attributes:
        metric: The metric's name; names that end in `_s` are durations.
        operator: One of `>`, `>=`, `<` and `<=`.
        limit: The number, or a duration in seconds.
        text: The condition as the user wrote it.
    """

    metric: str
    operator: str
    limit: float
    text: str

    @classmethod
    def parse(cls, text: str, metrics: Sequence[str]) -> Self:
        """Parse a condition.

        Parameters:
            text: `METRIC > NUMBER`, with a unit for durations: `oldest_ready > 5m`.
            metrics: The metrics of the job; those that end in `_s` are written without that.

        Raises:
            ValueError: If it is none; the message says why.
        """
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise ValueError(f"it is {text!r}, not like 'oldest_ready > 5m' or 'buried >= 10'")
        name, sign, number, unit = match.groups()
        known = {metric.removesuffix("_s"): metric for metric in metrics}
        metric = known.get(name)
        if metric is None:
            raise ValueError(f"there is no {name!r}: there are {', '.join(known)}")
        if not metric.endswith("_s"):
            if unit:
                raise ValueError(f"{name} is a number, without the unit {unit!r}")
            return cls(metric, sign, float(number), text.strip())
        if unit not in _UNITS:
            raise ValueError(
                f"{name} is a duration with one of the units {', '.join(_UNITS)}: {name} {sign} 5m"
            )
        return cls(metric, sign, float(number) * _UNITS[unit], text.strip())

    def holds(self, value: float | None) -> bool:
        """Whether the condition holds.

        Parameters:
            value: The metric's value; None if there is none, for which no condition holds.
        """
        return value is not None and _OPERATORS[self.operator](value, self.limit)


def check(conditions: Sequence[Condition], values: Mapping[str, float | None]) -> None:
    """Check all conditions.

    Parameters:
        conditions: Those of `--fail-if`.
        values: The metrics by name.

    Raises:
        ConditionError: If one holds; the message names all that do.
    """
    found = [
        f"{each.metric.removesuffix('_s')} is {text_of(each.metric, values[each.metric])} ({each.text})"
        for each in conditions
        if each.holds(values[each.metric])
    ]
    if found:
        raise ConditionError("; ".join(found))
