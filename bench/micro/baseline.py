"""Times of the microbenchmarks: those of a run, and the baseline in the repository."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

FILE: Final = "pieces.json"
"""The name of a baseline's file."""

_FORMAT: Final = "times of the server's pieces, 1"
_DIGITS: Final = 4


class BaselineError(Exception):
    """There is no usable baseline; the text gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The time of a microbenchmark.

    Attributes:
        ns: nanoseconds of CPU time for one call.
        machine_us: microseconds of CPU time for the calibration between its rounds: the speed of the machine.
    """

    ns: float
    machine_us: float

    def __post_init__(self) -> None:
        """Raises ValueError or TypeError for values that cannot be times."""
        for time in (self.ns, self.machine_us):
            if not math.isfinite(time) or time <= 0:
                raise ValueError(f"{time!r} is not a time")

    @property
    def normalised(self) -> float:
        """The time in units of the calibration's."""
        return self.ns / self.machine_us


@dataclass(frozen=True, slots=True)
class Times:
    """The times of all microbenchmarks of a run.

    Attributes:
        python: Python's version without the patch number.
        pieces: the times by the names of files and tests.
    """

    python: str
    pieces: Mapping[str, Piece]

    @classmethod
    def from_report(cls, text: str) -> Self:
        """Decode a report of pytest-benchmark.

        Parameters:
            text: the JSON.

        Raises:
            ValueError: It is not a report of these benchmarks.
        """
        try:
            report = json.loads(text)
            machine = report["machine_info"]
            pieces = {each["fullname"]: _measured(each) for each in report["benchmarks"]}
            return cls(machine["python"], pieces)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a report of the microbenchmarks: {error!r}") from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Decode the output of `to_json`.

        Raises:
            ValueError: The text is something else.
        """
        try:
            found = json.loads(text)
            if found["format"] != _FORMAT:
                raise ValueError(f"unknown format {found['format']!r}")
            pieces = {name: Piece(**times) for name, times in found["pieces"].items()}
            return cls(found["python"], pieces)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a baseline of the microbenchmarks: {error!r}") from error

    def to_json(self) -> str:
        """Encode the times, one benchmark a line and sorted, so that baselines are easy to compare."""
        head = {"format": _FORMAT, "python": self.python}
        fields = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        lines = [
            f"  {json.dumps(name)}: "
            f'{{"ns": {_rounded(piece.ns)}, "machine_us": {_rounded(piece.machine_us)}}}'
            for name, piece in sorted(self.pieces.items())
        ]
        pieces = ' "pieces": {\n' + ",\n".join(lines) + "\n }"
        return "{\n" + ",\n".join([*fields, pieces]) + "\n}\n"


def _measured(report: Mapping[str, Any]) -> Piece:
    extra = report["extra_info"]
    return Piece(report["stats"]["min"] / extra["count"] * 1e9, extra["calibration"] * 1e6)


def _rounded(time: float) -> float:
    """Round a time to its significant digits."""
    return float(f"{time:.{_DIGITS}g}")


def median(runs: Sequence[Times]) -> Times:
    """Return the median time of each benchmark, compared as ratios are, of the runs that have it.

    Parameters:
        runs: at least one run.
    """
    pieces: dict[str, Piece] = {}
    for name in {name: None for run in runs for name in run.pieces}:
        times = sorted(
            (run.pieces[name] for run in runs if name in run.pieces), key=lambda piece: piece.normalised
        )
        pieces[name] = times[(len(times) - 1) // 2]
    return Times(runs[0].python, pieces)


def load(directory: Path) -> Times:
    """Read a baseline.

    Parameters:
        directory: the directory of the baseline.

    Raises:
        BaselineError: There is none, or the file is something else.
    """
    file = directory / FILE
    try:
        return Times.from_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BaselineError(f"there is no baseline {file}; --store creates one") from None
    except (OSError, ValueError) as error:
        raise BaselineError(f"{file} cannot be used as a baseline: {error}") from error


def store(directory: Path, times: Times) -> Path:
    """Store times as the baseline.

    Parameters:
        directory: the directory of the baseline, created if necessary.
        times: the times.

    Returns:
        The file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / FILE
    file.write_text(times.to_json(), encoding="utf-8")
    return file
