"""All results of a comparison, in memory and as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

from bench.lib.python_build import this_is_pgo
from bench.scenarios.queues.delivery import Delivery
from bench.scenarios.storage.backlog import Footprint
from bench.scenarios.storage.checkpoint import Cost
from bench.scenarios.storage.recovery import Start
from bench.workloads.rate import SHARES, Rate

BUSY: Final = 0.9
"""The share of a processor from which on the load generator may have limited the rate."""


@dataclass(frozen=True, slots=True)
class Medians:
    """The medians of the rounds of one measurement.

    Attributes:
        per_second: requests in a second.
        server_us: microseconds of CPU time per request, in the server's processes.
        load_us: the same in the load generator.
        load_share: the share of a processor that the load generator used.
        latencies_ms: p50, p99 and p99.9 in milliseconds; None for cycles.
        peak: the peak memory of the server's processes in any round, in bytes.
    """

    per_second: float
    server_us: float
    load_us: float
    load_share: float
    latencies_ms: list[float] | None
    peak: int

    @classmethod
    def of(cls, rates: Sequence[Rate]) -> Self:
        """Compute the medians of the rounds of one measurement."""
        latencies = [rate.latencies_ms for rate in rates if rate.latencies_ms is not None]
        return cls(
            per_second=median(rate.per_second for rate in rates),
            server_us=median(rate.server_us for rate in rates),
            load_us=median(rate.load_us for rate in rates),
            load_share=median(rate.load_share for rate in rates),
            latencies_ms=[median(times) for times in zip(*latencies, strict=True)] if latencies else None,
            peak=max(rate.peak for rate in rates),
        )


@dataclass(frozen=True, slots=True)
class Case:
    """The key of one measurement, the same for every contender.

    Attributes:
        section: the section of the measurements.
        shape: connections × in flight.
        payload: bytes of a task's data.
        operation: the kind of request.
    """

    section: str
    shape: str
    payload: int
    operation: str


@dataclass
class Results:
    """All results.

    Attributes:
        names: the names of the contenders, ours first.
        missing: the names of the contenders that are not installed.
        tasks: the number of tasks in the backlog measurements.
        rates: request rates.
        deliveries: delivery latencies.
        footprints: memory of backlogs.
        costs: costs of snapshots.
        starts: starts from files.
        notes: what was left out, and why.
        machine: the properties of the machine and of Python, as by `this_machine`.
    """

    names: list[str]
    missing: list[str]
    tasks: int
    rates: list[Rate] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    footprints: list[Footprint] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)

    def cases(self) -> list[Case]:
        """List all cases in the order in which they were first measured."""
        return list(
            dict.fromkeys(Case(rate.section, rate.shape, rate.payload, rate.operation) for rate in self.rates)
        )

    def medians(self, case: Case, contender: str) -> Medians | None:
        """Return the medians of a case; None if the contender has no such measurement."""
        found = [
            rate
            for rate in self.rates
            if (rate.section, rate.shape, rate.payload, rate.operation, rate.contender)
            == (case.section, case.shape, case.payload, case.operation, contender)
        ]
        return Medians.of(found) if found else None

    def footprint(self, contender: str) -> float | None:
        """Return the bytes per task in a backlog; None if it was not measured."""
        return _median(each.per_task for each in self.footprints if each.contender == contender)

    def longest_pause(self, contender: str) -> float | None:
        """Return the longest pause in seconds during a snapshot under load; None if it was not measured."""
        pauses = [cost.pause for cost in self.costs if cost.contender == contender and cost.is_loaded]
        return max(pauses, default=None)

    def to_json(self) -> str:
        """Encode all figures."""
        meaning = {"latencies_ms": f"within which these shares of the answers came: {SHARES}"}
        return json.dumps({"meaning": meaning, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Decode the output of `to_json`.

        Raises:
            ValueError: The text is something else.
        """
        try:
            found = json.loads(text)
            return cls(
                found["names"],
                found["missing"],
                found["tasks"],
                [Rate(**each) for each in found["rates"]],
                [Delivery(**each) for each in found["deliveries"]],
                [Footprint(**each) for each in found["footprints"]],
                [Cost(**each) for each in found["costs"]],
                [Start(**each) for each in found["starts"]],
                found["notes"],
                found["machine"],
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"these are no results of a comparison: {error}") from error

    def merged(self, other: Results) -> Results:
        """Combine these results with those of another run."""
        return Results(
            list(dict.fromkeys([*self.names, *other.names])),
            list(dict.fromkeys([*self.missing, *other.missing])),
            max(self.tasks, other.tasks),
            self.rates + other.rates,
            self.deliveries + other.deliveries,
            self.footprints + other.footprints,
            self.costs + other.costs,
            self.starts + other.starts,
            list(dict.fromkeys([*self.notes, *other.notes])),
            self.machine or other.machine,
        )


def this_machine() -> dict[str, Any]:
    """Return the properties of this machine and of this Python, which also runs our server."""
    return {
        "python": platform.python_version(),
        "executable": os.path.realpath(sys.executable),
        "pgo": this_is_pgo(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
    }


def read(files: Iterable[Path]) -> Results:
    """Read and combine the results in files.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file has no results, or no file is given.
    """
    every = [Results.from_json(file.read_text()) for file in files]
    if not every:
        raise ValueError("there are no results")
    whole = every[0]
    for other in every[1:]:
        whole = whole.merged(other)
    return whole


def _median(figures: Iterable[float]) -> float | None:
    every = list(figures)
    return median(every) if every else None
