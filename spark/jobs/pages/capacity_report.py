"""The page of the job `capacity`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyspark_tarantool.jobs.load_forecast import Load, Minute
from pyspark_tarantool.jobs.pages.findings import SHOWN, TIMES
from pyspark_tarantool.report import Finding, Level, Report, Series, bars, lines
from pyspark_tarantool.report.quantities import number

_CHARTED: Final = 3
"""The number of queues with charts: those with the most takes."""
_BUSY: Final = 0.85
"""The utilisation from which on waiting times rise steeply."""
_POINTS: Final = 240

_EXPLANATIONS: Final = (
    (
        "Busy workers",
        "Little's law: the rate of takes times the mean duration of the work. The peak is the busiest ten "
        "minutes: at least so many workers exist.",
    ),
    (
        "Utilisation",
        "The mean number of busy workers as a share of the peak. From about 85 % on, waiting times rise "
        "steeply; at 100 %, the backlog only grows.",
    ),
    (
        "Forecast",
        "It continues the line that fits the backlog in these logs. If the load stays as it is, the backlog "
        "is within the range with a probability of 95 %. It knows nothing of days and weeks.",
    ),
)


def fill_report(report: Report, loads: Mapping[str, tuple[Load, Sequence[Minute]]]) -> None:
    """Fill the page.

    Parameters:
        report: The page.
        loads: The load and the minutes of each queue.
    """
    report.add_explanations([*_EXPLANATIONS, TIMES])
    if not loads:
        report.set_opening("The logs have no events of tasks.", [])
        return
    ordered = sorted(loads.items(), key=lambda each: -each[1][0].takes_per_hour)
    report.set_opening(_summary([load for _, (load, _) in ordered]), _findings(loads))
    known = [
        (queue, load.busy_mean, load.busy_peak) for queue, (load, _) in ordered if load.busy_peak is not None
    ]
    report.add_section("Utilisation")
    report.add_chart(
        bars(
            [queue for queue, _, _ in known],
            [
                Series("busy", [busy for _, busy, _ in known], "#009E73"),
                Series("free", [peak - busy for _, busy, peak in known], "#d9dfe5"),
            ],
            "Workers",
            "Queue",
        ),
        "The mean number of busy workers of each queue, of those that were seen working.",
    )
    fields = [name for name in Load._fields if name != "forecasts"]
    report.add_table("Load", ["queue", *fields], [[queue, *load[:-1]] for queue, (load, _) in ordered])
    report.add_section("Expected backlog")
    report.add_table(
        "",
        ["queue", "at", "expected", "low", "high"],
        [
            [queue, each.at, round(each.expected), round(each.low), round(each.high)]
            for queue, (load, _) in ordered
            for each in load.forecasts
        ],
        "Low and high are the limits of the range of 95 % probability.",
    )
    for queue, (load, minutes) in ordered[:_CHARTED]:
        _add_queue(report, queue, load, minutes)


def _summary(loads: Sequence[Load]) -> str:
    puts, takes = (sum(load[place] for load in loads) for place in (0, 1))  # type: ignore[misc]
    busy, peak = sum(load.busy_mean for load in loads), sum(load.busy_peak or 0 for load in loads)
    share = f", {number(round(100 * busy / peak))} % of the {number(round(peak, 1))} seen" if peak else ""
    is_short = any(load.busy_peak is None for load in loads)
    unknown = " The logs are too short to tell how many workers there are: it takes half an hour."
    return (
        f"Each hour, {number(round(puts))} tasks arrive and {number(round(takes))} are taken. "
        f"This keeps {number(round(busy, 1))} workers busy{share}.{unknown if is_short else ''}"
    )


def _findings(loads: Mapping[str, tuple[Load, Sequence[Minute]]]) -> list[Finding]:
    found = [each for queue, (load, _) in loads.items() for each in _of_queue(queue, load)]
    short = [queue for queue, (load, _) in loads.items() if not load.forecasts]
    if short:
        of = short[0] if len(short) == 1 else f"{number(len(short))} queues"
        text = f"The logs of {of} are too short to tell whether workers keep up with what arrives."
        found.append(Finding(Level.WARNING, text))
    return sorted(found, key=lambda each: each.level)[:SHOWN] or [
        Finding(Level.GOOD, "All workers keep up with what arrives.")
    ]


def _of_queue(queue: str, load: Load) -> Iterator[Finding]:
    if load.forecasts and load.growth_per_hour is not None:
        day = load.forecasts[-1]
        if day.low > load.backlog:
            text = f"The backlog of {queue} grows by {number(round(load.growth_per_hour))} tasks an hour: "
            limits = f"{number(round(day.low))} to {number(round(day.high))}"
            yield Finding(Level.BAD, text + f"{number(load.backlog)} now, {limits} in a day.")
    if load.utilisation is not None and load.utilisation >= _BUSY:
        text = f"The workers of {queue} are busy for {number(round(100 * load.utilisation))} % of the time: "
        yield Finding(Level.WARNING, text + "a little more work makes tasks wait.")


def _add_queue(report: Report, queue: str, load: Load, minutes: Sequence[Minute]) -> None:
    report.add_section(f"Queue {queue}")
    step = max(1, len(minutes) // _POINTS)
    shown = minutes[step - 1 :: step]
    moments = [each.start for each in shown] + [each.at for each in load.forecasts]
    nothing = [None] * len(shown)
    series = [
        Series("backlog", [*(each.backlog for each in shown), *[None] * len(load.forecasts)]),
        Series(
            "expected", [*nothing[1:], load.backlog, *(each.expected for each in load.forecasts)], "#D55E00"
        ),
        Series("low", [*nothing[1:], load.backlog, *(each.low for each in load.forecasts)], "#E69F00"),
        Series("high", [*nothing[1:], load.backlog, *(each.high for each in load.forecasts)], "#E69F00"),
    ]
    report.add_chart(
        lines(moments, series if load.forecasts else series[:1], "Time (UTC)", "Number of tasks"),
        "Backlog: the number of tasks in the queue, and the forecast with its range of 95 % probability.",
    )
