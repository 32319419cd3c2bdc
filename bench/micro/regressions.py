"""The times of pieces beside a baseline's, as ratios that the speed of the machine has no part in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.lib.table import table
from bench.micro.baseline import Piece, Times

LIMIT: Final = 1.25
"""What is at least so many times as slow as it was is marked."""


@dataclass(frozen=True, slots=True)
class Change:
    """What has become of a piece.

    Attributes:
        name: the test's.
        now: its time in this run; None if it has none.
        then: its time in the baseline; None if it has none.
    """

    name: str
    now: Piece | None
    then: Piece | None

    @property
    def ratio(self) -> float | None:
        """This run's time over the baseline's, each in units of the time that the machine took for a fixed
        work; None if there is only one."""
        if self.now is None or self.then is None:
            return None
        return self.now.normalised / self.then.normalised

    def is_slower(self, limit: float) -> bool:
        """Whether the ratio is the limit or above."""
        return self.ratio is not None and self.ratio >= limit


def changes(now: Times, then: Times, *, is_whole: bool = True) -> list[Change]:
    """Compare a run with a baseline.

    Parameters:
        now: the run.
        then: the baseline.
        is_whole: whether the run was to have all pieces, so that those that it lacks are gone.

    Returns:
        The pieces by their names.
    """
    names = {*now.pieces, *(then.pieces if is_whole else ())}
    return [Change(name, now.pieces.get(name), then.pieces.get(name)) for name in sorted(names)]


def slower(every: Sequence[Change], limit: float = LIMIT) -> list[Change]:
    """Those that have become slower."""
    return [change for change in every if change.is_slower(limit)]


def report(every: Sequence[Change], now: Times, then: Times, limit: float = LIMIT) -> str:
    """All changes as a table, and what is to be said about them.

    Parameters:
        every: the changes.
        now: the run.
        then: the baseline.
        limit: from which ratio on a piece is marked.
    """
    rows = [
        [_short(change.name), _time(change.now), _time(change.then), _ratio(change), _mark(change, limit)]
        for change in every
    ]
    header = ["piece", "now\nns", "baseline\nns", "ratio,\nnormalised", ""]
    lines = [table(f"{now.implementation}: CPU time of one", header, rows)]
    found = slower(every, limit)
    lines.append(
        f"{len(found)} of {len(every)} pieces are {limit:g} times as slow as in the baseline, or slower."
        if found
        else f"No piece is {limit:g} times as slow as in the baseline."
    )
    if now.python != then.python:
        lines.append(f"The baseline is of Python {then.python}, the run of {now.python}: ratios mean little.")
    return "\n".join(lines)


def _short(name: str) -> str:
    """A test's name without what all have."""
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
