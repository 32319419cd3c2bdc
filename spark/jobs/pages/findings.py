"""The beginning of a page: a summary in words, and the findings that matter most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pyspark.sql import Row

from pyspark_tarantool.jobs.suspect_rules import SUSPICIONS
from pyspark_tarantool.report.page import Finding, Level
from pyspark_tarantool.report.quantities import duration, moment, number, size

SHOWN: Final = 3
"""The number of findings on a page."""

_OLD: Final = 3600
"""The age in seconds from which on a ready task is worth a finding."""

_MANY: Final = 0.01
"""The share of takes from which on returns are a finding."""

_UNEVEN: Final = 20
"""The ratio of the p99 to the median from which on waiting times are uneven."""

_SERVED: Final = 60
"""Waiting times, in seconds, up to which an uneven queue does not matter."""


PERCENTILES: Final = (
    "p50, p95, p99",
    "Percentiles. Half of the values are not greater than p50, the median. 95 of 100 are not greater than "
    "p95, and one in a hundred is greater than p99, which is the experience of an unlucky user. In charts, "
    "darker means rarer.",
)
TIMES: Final = (
    "Times",
    "All times are in UTC, not in the time zone of the reader. Durations have at most two units.",
)
COLORS_OF_STATUSES: Final = (
    "Colors",
    "They are the same on all pages: blue means ready (and puts), yellow delayed, green taken (and takes), "
    "red buried or late, gray done.",
)
"""Explanations of terms."""


class Opening(NamedTuple):
    """The beginning of a page.

    Attributes:
        summary: One or two sentences.
        findings: The most important ones, worst first.
    """

    summary: str
    findings: list[Finding]


def count(amount: int, noun: str) -> str:
    """A number and its noun: `1 task`, `12 tasks`."""
    return f"{number(amount)} {noun}{'s' * (amount != 1)}"


def opening_of_backlog(counted: Sequence[Row], delayed: Sequence[Row], now: datetime) -> Opening:
    """Summarize the results of `backlog`.

    Parameters:
        counted, delayed: The job's results.
        now: The reference time of ages.
    """
    tasks: Counter[str] = Counter()
    for row in counted:
        tasks[row.status] += row.tasks
    if not counted:
        return Opening(f"At {moment(now)}, the queues are empty.", [Finding(Level.GOOD, "No task waits.")])
    queues = count(len({row.queue for row in counted}), "queue")
    parts = ", ".join(f"{number(amount)} {status}" for status, amount in tasks.most_common())
    data = size(sum(row.payload_sum_bytes or 0 for row in counted))
    summary = f"At {moment(now)}, {queues} had {count(tasks.total(), 'task')}, with {data} of data: {parts}."
    return Opening(summary, _worst(_of_backlog(counted, delayed, now), "No task is overdue, old or buried."))


def _of_backlog(counted: Sequence[Row], delayed: Sequence[Row], now: datetime) -> Iterator[Finding]:
    overdue = Counter({(row.queue, row.status): row.overdue for row in counted if row.overdue})
    if overdue:
        (queue, status), most = overdue.most_common(1)[0]
        reason = "delay" if status == "delayed" else "time to run"
        which = "they" if most == overdue.total() else f"{number(most)} of them"
        text = f"{count(overdue.total(), 'task')} should be ready by now; {which} are {status}, in {queue}, "
        yield Finding(Level.BAD, text + f"although their {reason} is over. Is the server running?")
    ready = [row for row in counted if row.status == "ready" and row.oldest_age_s is not None]
    if ready:
        oldest = max(ready, key=lambda row: row.oldest_age_s)
        level = Level.WARNING if oldest.oldest_age_s >= _OLD else Level.GOOD
        text = f"The oldest ready task was put {duration(oldest.oldest_age_s)} ago, in {oldest.queue}; "
        half = duration(oldest.age_p50_s)
        yield Finding(level, text + f"half of the ready tasks there are not older than {half}.")
    buried = Counter({row.queue: row.tasks for row in counted if row.status == "buried"})
    if buried:
        queue, most = buried.most_common(1)[0]
        text = f"Buried, waiting to be kicked or deleted: {count(buried.total(), 'task')}"
        which = "all" if most == buried.total() else f"{number(most)} of them"
        yield Finding(Level.WARNING, f"{text}, {which} in {queue}.")
    if delayed:
        following = min(delayed, key=lambda row: row.next_ready)
        total = count(sum(row.tasks for row in delayed), "task")
        wait = duration(max(0.0, following.next_ready.timestamp() - now.timestamp()))
        text = f"{total} will become ready by schedule, the next one in {wait}, in {following.queue}."
        yield Finding(Level.GOOD, text)


def opening_of_lifecycle(queues: Sequence[Row], begin: datetime | None, end: datetime | None) -> Opening:
    """Summarize the results of `lifecycle`.

    Parameters:
        queues: The job's result `per_queue`.
        begin, end: The times of the first and the last event; None if there are none.
    """
    if not queues or begin is None or end is None:
        return Opening("The logs have no events of tasks.", [])
    tasks, finished = sum(row.tasks for row in queues), sum(row.acked + row.done for row in queues)
    takes, passed = sum(row.attempts for row in queues), (end - begin).total_seconds()
    rate = f", {number(round(finished / passed * 3600))} an hour" if passed > 0 else ""
    summary = (
        f"The logs from {moment(begin)} to {moment(end)} ({duration(passed)}) show {count(tasks, 'task')} in "
        f"{count(len(queues), 'queue')}: {number(finished)} were finished{rate}, in {count(takes, 'take')}."
    )
    return Opening(summary, _worst(_of_lifecycle(queues), "Tasks were taken once, and in time."))


def _of_lifecycle(queues: Sequence[Row]) -> Iterator[Finding]:
    takes = sum(row.attempts for row in queues)
    late, total = _most(queues, "timed_out")
    if total:
        level = Level.BAD if total >= _MANY * takes else Level.WARNING
        text = f"The time to run was over in {number(total)} of {count(takes, 'take')}, {late}: "
        yield Finding(level, text + "workers hang, or that time is too short.")
    waiting = [row for row in queues if row.waiting_count]
    if waiting:
        slowest = max(waiting, key=lambda row: row.waiting_p99_s)
        median, most = slowest.waiting_p50_s, slowest.waiting_p99_s
        is_uneven = most > _SERVED and most > _UNEVEN * median
        text = (
            f"In {slowest.queue}, half of the takes are of tasks that had waited for at most "
            f"{duration(median)}, but one in a hundred for more than {duration(most)}"
        )
        reason = ": at times, there are too few workers." if is_uneven else "."
        yield Finding(Level.WARNING if is_uneven else Level.GOOD, text + reason)
    back, total = _most(queues, "released")
    if total and total >= _MANY * takes:
        text = f"{number(total)} of {count(takes, 'take')} ended with a return to the queue, {back}: "
        yield Finding(Level.WARNING, text + "this work was done more than once.")
    buried, total = _most(queues, "buried")
    if total:
        yield Finding(Level.WARNING, f"Buried, usually after failures: {count(total, 'task')}, {buried}.")


def _most(queues: Sequence[Row], column: str) -> tuple[str, int]:
    """The queue that has most of something, as a phrase, and the number of all queues."""
    most = max(queues, key=lambda row: row[column])
    total = sum(row[column] for row in queues)
    return f"{'all' if most[column] == total else number(most[column])} in {most.queue}", total


def opening_of_suspects(summary: Sequence[Row], growth: Sequence[Row], now: datetime) -> Opening:
    """Summarize the results of `suspects`.

    Parameters:
        summary, growth: The job's results.
        now: The reference time of durations.
    """
    tasks: Counter[str] = Counter()
    for row in summary:
        tasks[row.why] += row.tasks
    growing = [row for row in growth if row.growing]
    if not tasks and not growing:
        return Opening(f"At {moment(now)}, there is nothing suspicious.", [])
    parts = [f"{number(tasks[why])} {why}" for why in SUSPICIONS if tasks[why]]
    found = f"tasks need attention: {', '.join(parts)}" if parts else "no single task is suspicious"
    grows = "No queue grows steadily."
    if growing:
        grows = f"{count(len(growing), 'queue')} grow{'s' * (len(growing) == 1)} steadily."
    findings = _worst(_of_suspects(summary, growing), "")
    return Opening(f"At {moment(now)}, {found}. {grows}", findings)


def _of_suspects(summary: Sequence[Row], growing: Sequence[Row]) -> Iterator[Finding]:
    for row in sorted(growing, key=lambda row: -row.per_hour)[:1]:
        gain = f"{row.queue} gains {number(round(row.per_hour))} ready tasks an hour"
        text = f"{gain}, to {number(row.ready_last)} at the end: more tasks are put than taken."
        yield Finding(Level.BAD, text)
    for why in SUSPICIONS:
        rows = [row for row in summary if row.why == why]
        if rows:
            place, total = _most(rows, "tasks")
            longest = max((row.longest_s for row in rows if row.longest_s is not None), default=None)
            lasts = "" if longest is None else f"; the longest lasts {duration(longest)}"
            level = Level.BAD if why in SUSPICIONS[:2] else Level.WARNING
            yield Finding(level, f"Tasks {why}: {number(total)}, {place}{lasts}.")


def _worst(findings: Iterable[Finding], otherwise: str) -> list[Finding]:
    """The most important findings; those of the same level in their order."""
    chosen = sorted(findings, key=lambda each: each.level)[:SHOWN]
    if otherwise and not any(each.level is not Level.GOOD for each in chosen):
        chosen = [Finding(Level.GOOD, otherwise), *chosen][:SHOWN]
    return chosen
