"""The page of the job `suspects`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pyspark.sql import Row

from pyspark_tarantool.jobs.pages.findings import TIMES, opening_of_suspects
from pyspark_tarantool.jobs.suspect_rules import (
    BURIED,
    COMES_BACK,
    NEVER_TAKEN,
    PAST_TTR,
    STUCK,
    SUSPICIONS,
    Thresholds,
)
from pyspark_tarantool.report import PALETTE, Report, Series, bars, lines
from pyspark_tarantool.report.quantities import duration, moment, number

CHART_QUEUES: Final = 6
"""The number of queues in the chart of ready tasks over time."""

_SHOWN_QUEUES: Final = 20


def fill_report(
    report: Report,
    now: datetime,
    thresholds: Thresholds,
    summary: Sequence[Row],
    worst: Sequence[Row],
    growth: Sequence[Row],
    levels: Sequence[Row],
) -> None:
    """Fill the page.

    Parameters:
        report: The page.
        now: The reference time of durations.
        thresholds: The thresholds of suspicious tasks and queues.
        summary, growth: The job's results.
        worst: The longest-lasting suspects of each kind.
        levels: The levels of the first queues of `growth`.
    """
    report.set_opening(*opening_of_suspects(summary, growth, now))
    report.add_facts([("Durations as of", moment(now))])
    report.add_explanations([TIMES])
    tasks: Counter[str] = Counter()
    for row in summary:
        tasks[row.why] += row.tasks
    growing = [row for row in growth if row.growing]
    report.add_figures([(f"tasks {why}", tasks[why], "") for why in SUSPICIONS])
    report.add_figures([("queues that grow", len(growing), "")])
    if not tasks and not growing:
        report.add_note("There is nothing suspicious.")
    _add_summary(report, summary)
    _add_growth(report, growing, growth, levels, thresholds)
    for why in SUSPICIONS:
        if tasks[why]:
            _add_suspicion(report, why, [row for row in worst if row.why == why], tasks[why], thresholds)


def _meaning(why: str, thresholds: Thresholds) -> str:
    stuck, waiting = duration(thresholds.stuck), duration(thresholds.waiting)
    return {
        STUCK: f"These tasks have been taken for more than {stuck} and were neither finished nor "
        "returned. A worker may hang, or the task may take longer than planned.",
        PAST_TTR: "The time to run of these tasks is over, but they are still taken.",
        COMES_BACK: f"These tasks were taken {thresholds.attempts} times or more: workers fail on them, or "
        "return them. Those with the status acked were finished in the end.",
        BURIED: "These tasks were buried, usually after a failure, and wait to be kicked or deleted.",
        NEVER_TAKEN: f"These tasks have been ready for more than {waiting}, and the logs show no take: there "
        "are too few workers, or none for this queue, or other tasks have priority.",
    }[why]


def _add_summary(report: Report, summary: Sequence[Row]) -> None:
    if not summary:
        return
    sizes: Counter[str] = Counter()
    for row in summary:
        sizes[row.queue] += row.tasks
    queues = [queue for queue, _ in sizes.most_common(_SHOWN_QUEUES)]
    tasks = {(row.queue, row.why): row.tasks for row in summary}
    series = [
        Series(why, [tasks.get((queue, why), 0) for queue in queues], PALETTE[index])
        for index, why in enumerate(SUSPICIONS)
        if any((queue, why) in tasks for queue in queues)
    ]
    report.add_section("Suspicious tasks by queue")
    if len(sizes) > len(queues):
        report.add_note(f"The {len(queues)} queues with the most suspicious tasks, of {number(len(sizes))}.")
    report.add_chart(
        bars(queues, series, "Number of tasks", "Queue"),
        "The number of suspicious tasks in each queue, by kind. A task may count more than once.",
    )
    fields = ["queue", "why", "tasks", "longest_s", "most_attempts"]
    report.add_table("", fields, [[row[field] for field in fields] for row in summary if row.queue in queues])


def _add_growth(
    report: Report,
    growing: Sequence[Row],
    growth: Sequence[Row],
    levels: Sequence[Row],
    thresholds: Thresholds,
) -> None:
    report.add_section("Ready tasks over time")
    if not levels:
        report.add_note("There are no logs.")
        return
    names = ", ".join(row.queue for row in growing[:_SHOWN_QUEUES])
    report.add_note(
        f"Growing: {names}."
        if growing
        else f"No queue has steadily grown by {number(thresholds.growth)} ready tasks an hour or more."
    )
    queues = list(
        dict.fromkeys(row.queue for row in growth if any(row.queue == each.queue for each in levels))
    )
    moments = sorted({row.at for row in levels})
    ready = {(row.queue, row.at): row.ready for row in levels}
    series = [
        Series(queue, [ready.get((queue, at)) for at in moments], PALETTE[index])
        for index, queue in enumerate(queues)
    ]
    report.add_chart(
        lines(moments, series, "Time (UTC)", "Number of ready tasks"),
        "The number of ready tasks in the fastest-growing queues. A steadily rising line means that more "
        "tasks are put than taken.",
    )
    fields = ["queue", "growing", "ready_first", "ready_last", "ready_most", "per_hour", "fit"]
    report.add_table(
        "Growth",
        fields,
        [[row[field] for field in fields] for row in growth[:_SHOWN_QUEUES]],
        "Per hour is the slope of a linear regression. Fit (R², from 0 to 1) is its quality: near 0 the "
        "number fluctuates, near 1 it rises or falls steadily.",
    )


def _add_suspicion(report: Report, why: str, rows: Sequence[Row], count: int, thresholds: Thresholds) -> None:
    report.add_section(f"Tasks {why}")
    report.add_note(_meaning(why, thresholds))
    optional = ("created", "first_taken", "due", "payload")
    fields = ["queue", "id", "status", "since", "for_s", "attempts"]
    fields += [name for name in optional if any(row[name] is not None for row in rows)]
    more = f"The first {len(rows)} of {number(count)}, the longest first." if count > len(rows) else ""
    report.add_table("", fields, [[row[field] for field in fields] for row in rows], more)
