"""Times of the pieces: those of a run, and those that are kept in the repository to compare it with."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

IMPLEMENTATIONS: Final = {"compiled": "compiled.json", "pure Python": "pure-python.json"}
"""What is measured, and the file that its baseline is kept in."""

_FORMAT: Final = "times of the server's pieces, 1"
_DIGITS: Final = 4


class BaselineError(Exception):
    """There is nothing to compare with; the text says why, and what helps."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The time of a piece.

    Attributes:
        ns: of CPU, for one.
        machine_us: of CPU, for the fixed work that was done between its rounds: how fast the machine was.
    """

    ns: float
    machine_us: float

    def __post_init__(self) -> None:
        """Raises ValueError, or TypeError, for what cannot be a time."""
        for time in (self.ns, self.machine_us):
            if not math.isfinite(time) or time <= 0:
                raise ValueError(f"{time!r} is no time")

    @property
    def normalised(self) -> float:
        """The time in units of the fixed work's."""
        return self.ns / self.machine_us


@dataclass(frozen=True, slots=True)
class Times:
    """The times of all pieces that were measured together.

    Attributes:
        implementation: one of `IMPLEMENTATIONS`.
        python: Python's version, without the last number.
        pieces: by the tests' names, the files' in front.
    """

    implementation: str
    python: str
    pieces: Mapping[str, Piece]

    @classmethod
    def from_report(cls, text: str) -> Self:
        """What pytest-benchmark has written.

        Parameters:
            text: the JSON.

        Raises:
            ValueError: It is not of our pieces.
        """
        try:
            report = json.loads(text)
            machine = report["machine_info"]
            pieces = {each["fullname"]: _measured(each) for each in report["benchmarks"]}
            return cls(machine["implementation"], machine["python"], pieces)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"these are no times of pieces: {error!r}") from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` has written.

        Raises:
            ValueError: It is not that.
        """
        try:
            found = json.loads(text)
            if found["format"] != _FORMAT:
                raise ValueError(f"another format, {found['format']!r}")
            pieces = {name: Piece(**times) for name, times in found["pieces"].items()}
            return cls(found["implementation"], found["python"], pieces)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"these are no times of pieces: {error!r}") from error

    def to_json(self) -> str:
        """A line for each piece, sorted, so that differences between baselines are easy to read."""
        head = {"format": _FORMAT, "implementation": self.implementation, "python": self.python}
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
    """A time with as many digits as mean something."""
    return float(f"{time:.{_DIGITS}g}")


def middle(runs: Sequence[Times]) -> Times:
    """Of each piece the time in the middle, compared as ratios are, of those runs that have it.

    Parameters:
        runs: at least one, all of the same implementation.
    """
    pieces: dict[str, Piece] = {}
    for name in {name: None for run in runs for name in run.pieces}:
        times = sorted(
            (run.pieces[name] for run in runs if name in run.pieces), key=lambda piece: piece.normalised
        )
        pieces[name] = times[(len(times) - 1) // 2]
    return Times(runs[0].implementation, runs[0].python, pieces)


def load(directory: Path, implementation: str) -> Times:
    """Read a baseline.

    Parameters:
        directory: where baselines are.
        implementation: whose.

    Raises:
        BaselineError: There is none, or the file holds something else.
    """
    file = directory / IMPLEMENTATIONS[implementation]
    try:
        times = Times.from_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BaselineError(f"there is no baseline {file}; --store makes one") from None
    except (OSError, ValueError) as error:
        raise BaselineError(f"{file} cannot be used as a baseline: {error}") from error
    if times.implementation != implementation:
        raise BaselineError(f"{file} is the baseline of {times.implementation!r}, not of {implementation!r}")
    return times


def store(directory: Path, times: Times) -> Path:
    """Keep times as the baseline of their implementation.

    Parameters:
        directory: where baselines are; it is made if need be.
        times: what to keep.

    Returns:
        The file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / IMPLEMENTATIONS[times.implementation]
    file.write_text(times.to_json(), encoding="utf-8")
    return file
