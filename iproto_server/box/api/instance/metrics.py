"""`box.metrics`: counters, gauges and histograms of applications, for Prometheus and Graphite.

    failed = box.metrics.counter("jobs.failed", "Jobs that failed.", labels=["reason"])
    failed.inc(reason="timeout")

A rollback does not take changes back. Metrics persist through reloads: the same definition returns the same
metric.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, TypeVar

from iproto_server.managed_queue import Histogram as Durations

MAX_SERIES: Final = 1000
"""Maximum number of combinations of a metric's label values; further ones are counted as OTHER."""
OTHER: Final = "other"
DEFAULT_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""The upper bounds of a histogram's intervals, as in Tarantool's metrics."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SERVERS_LABELS: Final = ("alias", "le", "quantile")
_SERVERS_NAMES: Final = re.compile(r"(tnt|server|iproto_server|lj)([._]|$)")

LabelValues = tuple[str, ...]


class Metric(ABC):
    """A named metric with labels.

    Parameters:
        name: the name, as Graphite's counters are named: "jobs.failed".
        help: what it measures, in a sentence.
        labels: the names of its labels.

    Raises:
        ValueError: a name is invalid or reserved for the server.
    """

    __slots__ = ("help", "labels", "name")

    kind: ClassVar[str]

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        if not _NAME.fullmatch(name) or _SERVERS_NAMES.match(name):
            raise ValueError(f"a metric cannot be named {name!r}")
        if isinstance(labels, str):
            raise TypeError(f"labels are a list of names, not {labels!r}")
        for label in labels:
            if not _LABEL.fullmatch(label) or label.startswith("__") or label in _SERVERS_LABELS:
                raise ValueError(f"the label of {name!r} cannot be named {label!r}")
        if len(set(labels)) != len(labels):
            raise ValueError(f"a label of {name!r} is given twice")
        self.name = name
        self.help = help
        self.labels = tuple(labels)

    @property
    def prometheus_name(self) -> str:
        """The name in Prometheus, without the ends `_total`, `_bucket` and so on."""
        return self.name.replace(".", "_")

    @property
    def prometheus_names(self) -> frozenset[str]:
        """The names of its series in Prometheus."""
        return frozenset((self.prometheus_name,))

    def is_same(self, other: Metric) -> bool:
        """Whether another metric has the same definition, but for the help text."""
        return type(self) is type(other) and self.name == other.name and self.labels == other.labels

    @abstractmethod
    def counters(self) -> Iterator[tuple[str, int | float]]:
        """The numbers for Graphite, by name: label values are further parts of the name."""

    def _values(self, given: Mapping[str, object], known: Mapping[LabelValues, object]) -> LabelValues:
        """Return the values of the labels. Raises ValueError if some are missing or unknown."""
        try:
            values = tuple(str(given[label]) for label in self.labels)
        except KeyError as error:
            raise ValueError(f"{self.name!r} needs the label {error}") from None
        if len(given) != len(values):
            unknown = next(label for label in given if label not in self.labels)
            raise ValueError(f"{self.name!r} has no label {unknown!r}")
        if values not in known and len(known) >= MAX_SERIES:
            return (OTHER,) * len(values)
        return values

    def _path(self, values: LabelValues) -> str:
        return ".".join((self.name, *(value.replace(".", "_") or "_" for value in values)))


class _NumberMetric(Metric):
    """A metric with a number for each combination of label values.

    Attributes:
        series: the numbers by label values.
    """

    __slots__ = ("series",)

    def __init__(self, name: str, help: str = "", labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self.series: dict[LabelValues, int | float] = {} if labels else {(): 0}

    def counters(self) -> Iterator[tuple[str, int | float]]:
        for values, number in self.series.items():
            yield self._path(values), number

    def remove(self, **labels: object) -> None:
        """Forget the number of these label values."""
        self.series.pop(self._values(labels, {}), None)

    def _add(self, amount: int | float, labels: Mapping[str, object]) -> None:
        values = self._values(labels, self.series)
        self.series[values] = self.series.get(values, 0) + amount


class Counter(_NumberMetric):
    """A number that only grows."""

    __slots__ = ()

    kind = "counter"

    @property
    def prometheus_name(self) -> str:
        return super().prometheus_name.removesuffix("_total")

    @property
    def prometheus_names(self) -> frozenset[str]:
        # OpenMetrics has the name without the end for the whole.
        return frozenset((self.prometheus_name, f"{self.prometheus_name}_total"))

    def inc(self, amount: int | float = 1, /, **labels: object) -> None:
        """Add an amount.

        Raises:
            ValueError: the amount is not a number from 0 on, or the labels are not those of the metric.
        """
        if _number(amount) < 0:
            raise ValueError(f"the counter {self.name!r} cannot be decreased")
        self._add(amount, labels)


class Gauge(_NumberMetric):
    """A number that goes up and down."""

    __slots__ = ()

    kind = "gauge"

    def set(self, value: int | float, /, **labels: object) -> None:
        """Set the value. Raises ValueError as `inc` does."""
        self.series[self._values(labels, self.series)] = _number(value)

    def inc(self, amount: int | float = 1, /, **labels: object) -> None:
        """Add an amount. Raises ValueError if it is no number or the labels are not those of the metric."""
        self._add(_number(amount), labels)

    def dec(self, amount: int | float = 1, /, **labels: object) -> None:
        """Subtract an amount. Raises ValueError as `inc` does."""
        self._add(-_number(amount), labels)


class Histogram(Metric):
    """Counts values by intervals.

    Parameters:
        bounds: the upper bounds of the intervals, ascending; a last interval has no bound.

    Attributes:
        series: the counts by label values.
    """

    __slots__ = ("bounds", "series")

    kind = "histogram"

    def __init__(
        self,
        name: str,
        help: str = "",
        labels: Sequence[str] = (),
        bounds: Sequence[int | float] = DEFAULT_BOUNDS,
    ) -> None:
        super().__init__(name, help, labels)
        self.bounds = tuple(float(_number(bound)) for bound in bounds)
        if not self.bounds or any(
            low >= high for low, high in zip(self.bounds, self.bounds[1:], strict=False)
        ):
            raise ValueError(f"the bounds of {name!r} must be ascending")
        self.series: dict[LabelValues, Durations] = {} if labels else {(): Durations(self.bounds)}

    @property
    def prometheus_names(self) -> frozenset[str]:
        return frozenset(self.prometheus_name + end for end in ("", "_bucket", "_count", "_sum"))

    def is_same(self, other: Metric) -> bool:
        return super().is_same(other) and isinstance(other, Histogram) and self.bounds == other.bounds

    def observe(self, value: int | float, /, **labels: object) -> None:
        """Count a value. Raises ValueError if it is no number or the labels are not those of the metric."""
        _number(value)
        values = self._values(labels, self.series)
        counts = self.series.get(values)
        if counts is None:
            counts = self.series[values] = Durations(self.bounds)
        counts.observe(value)

    def counters(self) -> Iterator[tuple[str, int | float]]:
        for values, counts in self.series.items():
            path = self._path(values)
            yield f"{path}.count", counts.count
            yield f"{path}.sum", counts.sum

    def remove(self, **labels: object) -> None:
        """Forget the counts of these label values."""
        self.series.pop(self._values(labels, {}), None)


_Kind = TypeVar("_Kind", bound=Metric)


class Metrics:
    """`box.metrics`: the metrics that applications have defined."""

    def __init__(self) -> None:
        self._by_name: dict[str, Metric] = {}

    def counter(self, name: str, help: str = "", labels: Sequence[str] = ()) -> Counter:
        """A counter; the same definition returns the same one.

        Parameters:
            name: its name in parts separated by dots, such as "jobs.failed".
            help: what it counts.
            labels: the names of its labels.

        Raises:
            ValueError: a name is invalid, or another metric has the name.
        """
        return self._defined(Counter(name, help, labels))

    def gauge(self, name: str, help: str = "", labels: Sequence[str] = ()) -> Gauge:
        """A gauge; see `counter`."""
        return self._defined(Gauge(name, help, labels))

    def histogram(
        self,
        name: str,
        help: str = "",
        labels: Sequence[str] = (),
        bounds: Sequence[int | float] = DEFAULT_BOUNDS,
    ) -> Histogram:
        """A histogram with the given upper bounds of its intervals; see `counter`."""
        return self._defined(Histogram(name, help, labels, bounds))

    def remove(self, name: str) -> None:
        """Forget a metric, if there is one with that name."""
        self._by_name.pop(name, None)

    def counters(self) -> Iterator[tuple[str, int | float]]:
        """All numbers by name, for Graphite."""
        for metric in self:
            yield from metric.counters()

    def __iter__(self) -> Iterator[Metric]:
        return iter(list(self._by_name.values()))

    def _defined(self, new: _Kind) -> _Kind:
        for metric in self._by_name.values():
            if new.is_same(metric):
                assert isinstance(metric, type(new))
                return metric
            if new.prometheus_names & metric.prometheus_names:
                raise ValueError(f"the metric {metric.name!r} is defined in another way than {new.name!r}")
        self._by_name[new.name] = new
        return new


def _number(value: int | float) -> int | float:
    """Return a value. Raises ValueError if it is not a number."""
    if type(value) in (int, float) and not math.isnan(value):
        return value
    raise ValueError(f"{value!r} is not a number")
