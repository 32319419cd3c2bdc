"""Computes how busy the workers of a queue are, and where its backlog is heading.

Little's law gives the number of busy workers: the rate of takes, times the mean duration of the work. The
forecast continues the line that fits the backlog of the last hours. Its range is the 95 % prediction interval
of that regression, widened by the correlation of neighbouring minutes, which makes a line look surer than it
is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

HORIZONS: Final = (3600, 6 * 3600, 24 * 3600)
"""How far the forecasts look ahead, in seconds."""

_SURE: Final = 1.96
"""The half width of the range that has 95 % of a normal distribution, in standard deviations."""

_LEAST: Final = 5
"""The minimum number of minutes for a forecast."""

_PEAK_MINUTES: Final = 10
_PEAK_LEAST: Final = 30
"""The length of the periods of which the busiest one counts, and of logs that tell it from the mean."""

_MOST_CORRELATED: Final = 0.99


class Minute(NamedTuple):
    """A minute of a queue.

    Attributes:
        start: Its beginning.
        puts: The number of tasks put.
        takes: The number of takes.
        ends: The number of takes that ended in it.
        service_s: The time that the work of these takes took, in seconds.
        backlog: The number of tasks in the queue at its end.
    """

    start: datetime
    puts: int
    takes: int
    ends: int
    service_s: float
    backlog: int


class Forecast(NamedTuple):
    """The expected backlog at a time.

    Attributes:
        at: The time.
        expected: The expected number of tasks.
        low, high: The range in which it is with a probability of 95 %, if the load stays as it is.
    """

    at: datetime
    expected: float
    low: float
    high: float


class Load(NamedTuple):
    """The load of a queue.

    Attributes:
        puts_per_hour: The arrival rate.
        takes_per_hour: The rate of takes, retries included.
        service_mean_s: The mean duration of the work on a take, in seconds; None if none has ended.
        busy_mean: The mean number of busy workers.
        busy_peak: The greatest number of busy workers in ten minutes: at least so many work; None if there
            are less than 30 minutes.
        utilisation: The share of these workers that is busy in the mean, from 0 to 1; None if it is unknown.
        capacity_per_hour: The takes that these workers can do in an hour; None if that is unknown.
        backlog: The number of tasks at the end.
        growth_per_hour: The slope of the backlog; None if there are too few minutes.
        forecasts: For each of HORIZONS; empty if there are too few minutes.
    """

    puts_per_hour: float
    takes_per_hour: float
    service_mean_s: float | None
    busy_mean: float
    busy_peak: float | None
    utilisation: float | None
    capacity_per_hour: float | None
    backlog: int
    growth_per_hour: float | None
    forecasts: tuple[Forecast, ...]


def load_of(minutes: Sequence[Minute], seconds: float | None = None) -> Load:
    """Compute the load of a queue.

    Parameters:
        minutes: All minutes of the period, oldest first, without gaps; at least one.
        seconds: The length of the period; None if the minutes are complete.

    Returns:
        The load.
    """
    seconds = 60 * len(minutes) if seconds is None else seconds
    hours = seconds / 3600
    ends, worked = sum(each.ends for each in minutes), sum(each.service_s for each in minutes)
    busy_peak = _peak(minutes) if len(minutes) >= _PEAK_LEAST else None
    busy_mean, mean = worked / seconds, worked / ends if ends else None
    line = _Line.fit([each.backlog for each in minutes])
    end = minutes[-1].start + timedelta(minutes=1)
    return Load(
        puts_per_hour=sum(each.puts for each in minutes) / hours,
        takes_per_hour=sum(each.takes for each in minutes) / hours,
        service_mean_s=mean,
        busy_mean=busy_mean,
        busy_peak=busy_peak,
        utilisation=busy_mean / busy_peak if busy_peak else None,
        capacity_per_hour=busy_peak * 3600 / mean if mean and busy_peak is not None else None,
        backlog=minutes[-1].backlog,
        growth_per_hour=None if line is None else line.slope * 60,
        forecasts=() if line is None else tuple(line.forecast(end, seconds) for seconds in HORIZONS),
    )


def _peak(minutes: Sequence[Minute]) -> float:
    """The mean number of busy workers in the busiest period.

    Work that ends in a minute may have begun earlier; over ten minutes, this is even.
    """
    worked = [each.service_s for each in minutes]
    starts = range(len(minutes) - _PEAK_MINUTES + 1)
    return max(sum(worked[start : start + _PEAK_MINUTES]) for start in starts) / (60 * _PEAK_MINUTES)


class _Line(NamedTuple):
    """A regression line of the backlog over minutes.

    Attributes:
        minutes: The number of minutes.
        middle: The mean of their numbers.
        spread: The sum of the squares of their distances from it.
        level: The backlog in the middle.
        slope: Its change in a minute.
        error: The standard deviation of the backlog around the line.
        inflation: By how much the correlation of neighbouring minutes widens the error of the line.
        last: The last backlog.
    """

    minutes: int
    middle: float
    spread: float
    level: float
    slope: float
    error: float
    inflation: float
    last: float

    @classmethod
    def fit(cls, backlog: Sequence[float]) -> _Line | None:
        """Fit the line; None if there are too few minutes."""
        count = len(backlog)
        if count < _LEAST:
            return None
        middle, level = (count - 1) / 2, sum(backlog) / count
        spread = sum((number - middle) ** 2 for number in range(count))
        slope = sum((number - middle) * (each - level) for number, each in enumerate(backlog)) / spread
        rests = [each - level - slope * (number - middle) for number, each in enumerate(backlog)]
        squares = sum(rest**2 for rest in rests)
        neighbours = sum(one * other for one, other in pairwise(rests))
        correlation = min(max(neighbours / squares, 0.0), _MOST_CORRELATED) if squares else 0.0
        inflation = math.sqrt((1 + correlation) / (1 - correlation))
        error = math.sqrt(squares / (count - 2))
        return cls(count, middle, spread, level, slope, error, inflation, backlog[-1])

    def forecast(self, end: datetime, seconds: float) -> Forecast:
        """Continue the line from the last backlog.

        Parameters:
            end: The end of the last minute.
            seconds: How far to look ahead.
        """
        ahead = seconds / 60
        expected = max(0.0, self.last + self.slope * ahead)
        distance = (self.minutes - 1 + ahead - self.middle) ** 2 / self.spread
        of_line = (self.error * self.inflation) ** 2 * (1 / self.minutes + distance)
        # Both the last backlog, from which the line is continued, and the future one deviate from it.
        half = _SURE * math.sqrt(2 * self.error**2 + of_line)
        at = end + timedelta(seconds=seconds)
        return Forecast(at, expected, max(0.0, expected - half), expected + half)
