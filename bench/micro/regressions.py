"""Compares the times of a run with a baseline, as ratios independent of the machine's speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.lib.table import table
from bench.micro.baseline import Piece, Times

LIMIT: Final = 1.25
"""The ratio from which on a benchmark is marked as slower."""


@dataclass(frozen=True, slots=True)
class Change:
    """The times of a benchmark in a run and in the baseline.

    Attributes:
        name: the name of the test.
        now: its time in the run; None if it did not run.
        then: its time in the baseline; None if it is new.
    """

    name: str
    now: Piece | None
    then: Piece | None

    @property
    def ratio(self) -> float | None:
        """This run's time over the baseline's, each in units of the calibration's; None if there is only
        one."""
        if self.now is None or self.then is None:
            return None
        return self.now.normalised / self.then.normalised

    def is_slower(self, limit: float) -> bool:
        """Whether the ratio reaches the limit."""
        return self.ratio is not None and self.ratio >= limit


def changes(now: Times, then: Times, *, is_whole: bool = True) -> list[Change]:
    """Compare a run with a baseline.

    Parameters:
        now: the run.
        then: the baseline.
        is_whole: whether the run was complete, so that benchmarks it lacks were removed.

    Returns:
        The changes, sorted by name.
    """
    names = {*now.pieces, *(then.pieces if is_whole else ())}
    return [Change(name, now.pieces.get(name), then.pieces.get(name)) for name in sorted(names)]


def slower(every: Sequence[Change], limit: float = LIMIT) -> list[Change]:
    """Return the benchmarks that have become slower."""
    return [change for change in every if change.is_slower(limit)]


def report(every: Sequence[Change], now: Times, then: Times, limit: float = LIMIT) -> str:
    """Format all changes as a table, with a summary.

    Parameters:
        every: the changes.
        now: the run.
        then: the baseline.
        limit: the ratio from which on a benchmark is marked.
    """
    rows = [
        [_short(change.name), _time(change.now), _time(change.then), _ratio(change), _mark(change, limit)]
        for change in every
    ]
    header = ["piece", "now\nns", "baseline\nns", "ratio,\nnormalised", ""]
    lines = [table("CPU time of one", header, rows)]
    found = slower(every, limit)
    lines.append(
        f"{len(found)} of {len(every)} benchmarks take at least {limit:g} times as long as in the baseline."
        if found
        else f"No benchmark takes {limit:g} times as long as in the baseline."
    )
    if now.python != then.python:
        lines.append(f"The baseline is of Python {then.python}, the run of {now.python}: ratios mean little.")
    return "\n".join(lines)


def _short(name: str) -> str:
    """Shorten a test's name by the part that all have."""
    file, _, test = name.rpartition("::")
    place = file.rpartition("/")[2].removeprefix("test_").removesuffix(".py").removesuffix("_pieces")
    return f"{place.replace('_', ' ')}: {test.removeprefix('test_')}"


def _time(piece: Piece | None) -> str:
    return "" if piece is None else f"{piece.ns:,.0f}" if piece.ns >= 100 else f"{piece.ns:.1f}"


def _ratio(change: Change) -> str:
    return "" if change.ratio is None else f"{change.ratio:.2f}"


def _mark(change: Change, limit: float) -> str:
    if change.now is None:
        return "gone"
    if change.then is None:
        return "new"
    return "SLOWER" if change.is_slower(limit) else ""
