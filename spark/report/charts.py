"""SVG charts for embedding in a page.

Texts remain texts: they use the page's font, support all letters of queue names, and can be searched.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.dates import AutoDateLocator, DateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from pyspark_tarantool.report.quantities import duration, number, size

PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#555555")
"""Okabe and Ito's colors, distinguishable by color-blind people; without yellow, which is faint on white."""

STATUS_COLORS: Final = {
    "ready": "#0072B2",
    "delayed": "#E69F00",
    "taken": "#009E73",
    "buried": "#D55E00",
    "done": "#999999",
}
"""The same status has the same color in all charts."""

COLORS: Final = {
    **STATUS_COLORS,
    # What happens to tasks has the color of the status that follows.
    "puts": "#0072B2",
    "takes": "#009E73",
    "acks": "#999999",
    "releases": "#56B4E9",
    "timeouts": "#D55E00",
    "backlog": "#1b2530",
    # Of one measure, the rarer a value, the darker it is.
    "half (p50)": "#c3aed6",
    "90 % (p90)": "#9a7bbf",
    "95 % (p95)": "#7e57ad",
    "99 % (p99)": "#4a2377",
    "all": "#1b2530",
}
"""The same name has the same color in all charts."""

Numbers = NDArray[np.float64]

_WIDTH: Final = 10.0
_INK: Final = "#1b2530"
_GRID: Final = "#d9dfe5"
_STYLE: Final[Any] = {
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.labelsize": 11.5,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "grid.color": _GRID,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "pyspark_tarantool.report",
    "text.color": _INK,
    # Queue names may contain dollars, but are not formulas.
    "text.parse_math": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
}

_MINUTE: Final = 1 / (24 * 60)
"""In days, as matplotlib counts times."""

_MARKS: Final = ((300, "%H:%M:%S"), (129600, "%H:%M"), (864000, "%m-%d %H:%M"))
"""The formats of times on an axis, by its maximum length in seconds."""

_SECONDS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"))
_BYTES: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes"))
_DECADES: Final = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000)
"""The ticks of a logarithmic axis of durations, in seconds."""

_FINER: Final = (
    *(decade * step for decade in _DECADES[:7] for step in (1, 2, 5)),
    *(10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000),
    *(86400 * days for days in (1, 2, 5, 10, 20, 50, 100)),
)
"""The ticks if those would be too few."""

_NARROW: Final = 10
"""The minimum ratio of the highest to the lowest value for a logarithmic axis."""

_ZERO_BELOW: Final = 4
"""A logarithmic axis has no zero. Zeros are shown at its end: the lowest other value, divided by this."""

_LONGEST_LABEL: Final = 32


class Series(NamedTuple):
    """The data of one color.

    Attributes:
        name: The name in the legend, shown for several series, and for one with a color of its own.
        values: One per position on the x axis; None for missing ones.
        color: Its color; None for that of its name in COLORS, or else the next one of PALETTE.
    """

    name: str
    values: Sequence[float | None]
    color: str | None = None


def bars(
    labels: Sequence[str], series: Sequence[Series], x_label: str, y_label: str, *, stacked: bool = True
) -> str:
    """Horizontal bars for categories.

    Parameters:
        labels: The categories, from top to bottom.
        series: One or more, stacked or side by side.
        x_label: The meaning of a bar's length. `(s)` or `(bytes)` at its end is replaced by a suitable unit.
        y_label: The meaning of the categories.
        stacked: Whether the series of a category form one bar.

    Returns:
        An `svg` element.
    """
    values = _numbers(series)
    longest = (values.sum(axis=0) if stacked else values).max(initial=0)
    factor, x_label = _fitting(x_label, longest)
    rows = len(labels) * (1 if stacked else len(series))
    with mpl.rc_context(_STYLE):
        figure, axes = _figure(1.5 + 0.42 * max(rows, 1))
        middle = np.arange(len(labels), dtype=float)
        left = np.zeros(len(labels))
        thickness = 0.7 if stacked else 0.8 / max(len(series), 1)
        for index, (each, row) in enumerate(zip(series, values, strict=True)):
            place = middle if stacked else middle - 0.4 + thickness * (index + 0.5)
            axes.barh(place, row / factor, thickness, left=left, color=_color(each, index), label=each.name)
            if stacked:
                left = left + row / factor
        axes.set_yticks(middle, [_short(label) for label in labels])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_ylabel(y_label)
        _scale(axes.xaxis, x_label, longest / factor)
        axes.grid(axis="x")
        axes.set_xlim(0, longest / factor * 1.05 or 1)
        return _svg(figure, axes, series, nothing=longest == 0)


def columns(
    starts: Sequence[datetime], width: float, series: Sequence[Series], x_label: str, y_label: str
) -> str:
    """Stacked columns over time.

    Parameters:
        starts: The beginnings of the intervals.
        width: Their length in seconds.
        series: One or more.
        x_label: What the x axis is.
        y_label: The meaning of a column's height; like `x_label` of `bars`.

    Returns:
        An `svg` element.
    """
    values = _numbers(series)
    highest = values.sum(axis=0).max(initial=0)
    factor, y_label = _fitting(y_label, highest)
    with mpl.rc_context(_STYLE):
        figure, axes = _figure(3.6)
        left = _dates(starts)
        if starts:
            _time(axes.xaxis, x_label, starts)
        bottom = np.zeros(len(starts))
        for index, (each, row) in enumerate(zip(series, values, strict=True)):
            axes.bar(
                left,
                row / factor,
                width / 86400 * 0.94,
                bottom=bottom,
                align="edge",
                color=_color(each, index),
                label=each.name,
            )
            bottom = bottom + row / factor
        _scale(axes.yaxis, y_label, highest / factor)
        axes.grid(axis="y")
        axes.set_ylim(0, highest / factor * 1.05 or 1)
        return _svg(figure, axes, series, nothing=highest == 0)


def lines(
    moments: Sequence[datetime] | Sequence[float],
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    logarithmic: bool = False,
    filled: bool = False,
) -> str:
    """Lines over time, or over numbers.

    Parameters:
        moments: Times in UTC, or numbers.
        series: One or more.
        x_label: The label of the x axis; for numbers, with units as in `bars`.
        y_label: The label of the y axis; like `x_label` of `bars`.
        logarithmic: Whether the y axis is logarithmic, if the values differ enough.
        filled: Whether to stack the series as filled areas.

    Returns:
        An `svg` element.
    """
    values = _numbers(series, np.nan)
    shown = values[np.isfinite(values)]
    highest = float((np.nansum(values, axis=0) if filled else shown).max(initial=0))
    with mpl.rc_context(_STYLE):
        figure, axes = _figure(3.8)
        if moments and isinstance(moments[0], datetime):
            places = _dates(moments)  # type: ignore[arg-type]
            _time(axes.xaxis, x_label, moments)  # type: ignore[arg-type]
        else:
            numbers = np.array(moments, dtype=float)
            x_factor, x_label = _fitting(x_label, numbers.max(initial=0))
            places = numbers / x_factor
            _scale(axes.xaxis, x_label, places.max(initial=0))
        factor, zero = _vertical(axes, y_label, shown, highest, logarithmic and not filled)
        if zero is not None:
            values = np.where(values <= 0, zero, values)
        if filled:
            colors = [_color(each, index) for index, each in enumerate(series)]
            names = [each.name for each in series]
            axes.stackplot(places, np.nan_to_num(values) / factor, labels=names, colors=colors, alpha=0.85)
        else:
            # A line of one point would be invisible.
            marker = "o" if len(moments) < 30 else ""
            for index, (each, row) in enumerate(zip(series, values, strict=True)):
                axes.plot(
                    places,
                    row / factor,
                    color=_color(each, index),
                    label=each.name,
                    linewidth=1.8,
                    marker=marker,
                    markersize=4,
                )
        if len(places) and places[0] == places[-1] and isinstance(moments[0], datetime):
            # Matplotlib would show four years, whose marks are all midnight.
            axes.set_xlim(places[0] - _MINUTE, places[0] + _MINUTE)
        axes.grid(axis="y")
        return _svg(figure, axes, series, nothing=not len(shown))


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _numbers(series: Sequence[Series], nothing: float = 0.0) -> Numbers:
    """The values of all series, one row per series."""
    rows = [[nothing if value is None else float(value) for value in each.values] for each in series]
    return np.array(rows, dtype=np.float64).reshape(len(series), len(series[0].values) if series else 0)


def _dates(moments: Iterable[datetime]) -> Numbers:
    return np.array(date2num([each.astimezone(UTC) for each in moments]), dtype=np.float64)  # type: ignore[no-untyped-call]


def _own_color(series: Series) -> str | None:
    """The color of a series' own or of its name, if any."""
    return series.color or COLORS.get(series.name)


def _color(series: Series, index: int) -> str:
    return _own_color(series) or PALETTE[index % len(PALETTE)]


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


def _fitting(label: str, largest: float) -> tuple[float, str]:
    """Choose the unit of an axis.

    Returns:
        The divisor of values, and the axis' label.
    """
    for ending, units in (("(s)", _SECONDS), ("(bytes)", _BYTES)):
        if label.endswith(ending):
            factor, name = next((unit for unit in units if largest >= 1.5 * unit[0]), units[-1])
            if largest == 0:
                factor, name = 1, ending[1:-1]
            return factor, f"{label.removesuffix(ending)}({name})"
    return 1, label


def _vertical(
    axes: Axes, label: str, shown: Numbers, highest: float, logarithmic: bool
) -> tuple[float, float | None]:
    """Configure the y axis.

    Returns:
        The divisor of values, and the place of zero on a logarithmic axis; None if there is no zero to show.
    """
    lowest = shown[shown > 0].min(initial=np.inf)
    if not logarithmic or highest < _NARROW * lowest:
        factor, label = _fitting(label, highest)
        _scale(axes.yaxis, label, highest / factor)
        axes.set_ylim(0, highest / factor * 1.05 or 1)
        return factor, None
    zero = float(lowest) / _ZERO_BELOW if (shown <= 0).any() else None
    text = duration if label.endswith("(s)") else size if label.endswith("(bytes)") else number
    axes.set_yscale("log", nonpositive="mask")
    if label.endswith("(s)"):
        decades = [each for each in _DECADES if lowest / 10 <= each <= highest * 10]
        is_few = sum(lowest <= each <= highest for each in decades) < 3
        ticks = [each for each in (_FINER if is_few else decades) if zero is None or each >= lowest]
        axes.yaxis.set_major_locator(FixedLocator(ticks if zero is None else [zero, *ticks]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: text(0 if value == zero else value)))
    if zero is not None:
        axes.set_ylim(zero * 0.8, highest * 1.3)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(label.removesuffix("(s)").removesuffix("(bytes)").strip() + " (logarithmic)")
    return 1, zero


def _scale(axis: Axis, label: str, largest: float) -> None:
    """Label an axis of numbers, at integers if possible."""
    axis.set_label_text(label)
    axis.set_major_locator(MaxNLocator(6, integer=not label.endswith(")") or largest >= 6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(round(value, 9))))


def _time(axis: Axis, label: str, moments: Sequence[datetime]) -> None:
    """Label a time axis; for times of day, the axis' label has the date."""
    axis.set_major_locator(AutoDateLocator(tz=UTC, minticks=4, maxticks=9))  # type: ignore[no-untyped-call]
    first, last = (each.astimezone(UTC) for each in (moments[0], moments[-1]))
    seconds = (last - first).total_seconds()
    pattern = next((pattern for longest, pattern in _MARKS if seconds <= longest), "%Y-%m-%d")
    axis.set_major_formatter(DateFormatter(pattern, tz=UTC))  # type: ignore[no-untyped-call]
    if "%d" not in pattern:
        days = dict.fromkeys(f"{each:%Y-%m-%d}" for each in (first, last))
        label += f", {' to '.join(days)}"
    axis.set_label_text(label)


def _svg(figure: Figure, axes: Axes, series: Sequence[Series], *, nothing: bool) -> str:
    """Render a figure, with a legend if needed, as SVG for embedding in a page."""
    axes.set_axisbelow(True)
    if nothing:
        axes.text(0.5, 0.5, "Nothing to show", ha="center", va="center", transform=axes.transAxes)
    elif len(series) > 1 or any(_own_color(each) for each in series):
        figure.legend(loc="outside upper left", ncols=6)
    file = io.StringIO()
    with warnings.catch_warnings():
        # The browser draws letters that matplotlib has no font for.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(
            file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return _clean(file.getvalue())


def _clean(svg: str) -> str:
    """Remove the prologue, metadata and group ids, which must be unique in a page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    return re.sub(r'<g id="[^"]*"', "<g", svg)
