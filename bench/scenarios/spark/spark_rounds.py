"""Rounds of Spark queries that run directly after each other, so that slow minutes affect all alike."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from statistics import median
from typing import Final, Generic, Self, TypeVar

from bench.lib.cpu_steal import Steal
from bench.scenarios.spark.spark_process import Run

STOLEN: Final = 0.01
"""The maximum share of stolen processor time of a round; rounds with more are repeated."""
TRIES: Final = 4
"""The maximum number of repetitions; after that, the one with the least stolen time counts."""

_Key = TypeVar("_Key", bound=Hashable)
_Case = TypeVar("_Case", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often to measure.

    Attributes:
        count: the number of rounds.
        warm_ups: the number of additional rounds before, which do not count.
        tries: the maximum number of repetitions of a round because of stolen time.
    """

    count: int
    warm_ups: int
    tries: int = TRIES


@dataclass(frozen=True, slots=True)
class Round(Generic[_Key]):
    """Queries that ran directly after each other.

    Attributes:
        runs: the queries, by what distinguishes them.
        stolen: the share of processor time that was stolen meanwhile.
    """

    runs: Mapping[_Key, Run]
    stolen: float


@dataclass(frozen=True, slots=True)
class Reading:
    """The measurements of one kind.

    Attributes:
        who: `ours` or the peer.
        mode: the mode of the data source.
        tasks: the number of tasks in the files, or of rows in special logs.
        cores: the number of Spark's cores.
        rows: the number of rows read from the files.
        seconds: the duration of each query; for the peer, including the conversion to JSON.
        stolen: the share of processor time that was stolen in each round, from 0 to 1.
        cpu_seconds: the processor time of each query, by the role of Spark's processes.
        partition_bytes: the size of partitions; None if all cores have equal work.
        logs: the kind of special logs.
    """

    who: str
    mode: str
    tasks: int
    cores: int
    rows: int
    seconds: Sequence[float]
    stolen: Sequence[float] = ()
    cpu_seconds: Sequence[Mapping[str, float]] = ()
    partition_bytes: int | None = None
    logs: str | None = None

    @classmethod
    def of(
        cls,
        key: _Key,
        rounds: Sequence[Round[_Key]],
        *,
        mode: str,
        tasks: int,
        cores: int,
        rows: int,
        partition_bytes: int | None = None,
        logs: str | None = None,
    ) -> Self:
        """Take one query of each round; the other parameters are attributes.

        Parameters:
            key: what distinguishes the query from others of the round.
            rounds: the rounds.
        """
        runs = [each.runs[key] for each in rounds]
        return cls(
            "ours",
            mode,
            tasks,
            cores,
            rows,
            [each.seconds for each in runs],
            [each.stolen for each in rounds],
            [{str(role): seconds for role, seconds in each.cpu_seconds.items()} for each in runs],
            partition_bytes,
            logs,
        )

    @property
    def rate(self) -> float:
        """Rows per second: the median of all rounds."""
        return self.rows / median(self.seconds)

    def cpu(self, *roles: str) -> float:
        """Return the processor time of a query in seconds: the median of all rounds.

        Parameters:
            roles: the roles of processes that count; all by default.
        """
        return median(
            sum(seconds for role, seconds in each.items() if not roles or role in roles)
            for each in self.cpu_seconds
        )

    def ratios(self, other: Reading) -> Sequence[float]:
        """Return the speed relative to another reading, round by round; the other may have fewer rounds."""
        return [theirs / ours for ours, theirs in zip(self.seconds, cycle(other.seconds), strict=False)]


def measure_rounds(
    cases: Mapping[_Case, Mapping[_Key, Callable[[], Run]]], rounds: Rounds
) -> Mapping[_Case, Sequence[Round[_Key]]]:
    """Measure queries in turn.

    Parameters:
        cases: the queries of each case; those of one case run directly after each other.
        rounds: how often.

    Returns:
        The rounds of each case.
    """
    found: dict[_Case, list[Round[_Key]]] = {case: [] for case in cases}
    for number in range(rounds.warm_ups + rounds.count):
        is_warm = number >= rounds.warm_ups
        for case, queries in cases.items():
            ordered = dict(list(queries.items())[:: -1 if number % 2 else 1])
            measured = partial(measure_round, str(case), ordered)
            best = least_stolen(measured, rounds.tries if is_warm else 1)
            if is_warm:
                found[case].append(best)
    return found


def measure_round(case: str, queries: Mapping[_Key, Callable[[], Run]]) -> Round[_Key]:
    """Measure each query once.

    Parameters:
        case: what they are, for the report of progress.
        queries: the queries, in their order.
    """
    steal = Steal()
    found = Round({key: query() for key, query in queries.items()}, steal.share())
    durations = ", ".join(f"{key}: {run.seconds:.2f} s" for key, run in found.runs.items())
    say(f"{case}: {durations}; {found.stolen:.1%} stolen")
    return found


def least_stolen(measured: Callable[[], Round[_Key]], tries: int) -> Round[_Key]:
    """Repeat a measurement until little processor time is stolen.

    Parameters:
        measured: measures a round.
        tries: the maximum number of tries.

    Returns:
        The round with the least stolen time.
    """
    best = measured()
    for _ in range(tries - 1):
        if best.stolen <= STOLEN:
            break
        best = min(best, measured(), key=lambda each: each.stolen)
    return best


def say(what: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)
