"""Charts as SVG, to stand within a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple


class Series(NamedTuple):
    """What one color shows.

    Attributes:
        name: For the legend.
        values: One for each position on the x axis; None where there is none.
    """

    name: str
    values: Sequence[float | None]


def bars(
    labels: Sequence[str], series: Sequence[Series], x_label: str, y_label: str, *, stacked: bool = True
) -> str:
    """Horizontal bars for categories.

    Args:
        labels: The categories.
        series: One or more, stacked or side by side.
        x_label: What the length of a bar is, with its unit.
        y_label: What the categories are.
        stacked: Whether the series of a category are one bar.

    Returns:
        An `svg` element.
    """
    raise NotImplementedError


def lines(
    moments: Sequence[datetime] | Sequence[float],
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    logarithmic: bool = False,
    filled: bool = False,
) -> str:
    """Lines over time.

    Args:
        moments: Moments in UTC, or numbers.
        series: One or more.
        x_label: What the x axis is, with its unit.
        y_label: What the y axis is, with its unit: `s` and `bytes` in parentheses are shown in fitting units.
        logarithmic: Whether the y axis is.
        filled: Whether the area below is filled, series upon series.

    Returns:
        An `svg` element.
    """
    raise NotImplementedError
