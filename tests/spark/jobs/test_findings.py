"""The beginning of a page: a manager reads what matters, worst first, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import Row

from pyspark_tarantool.jobs.pages.findings import (
    opening_of_backlog,
    opening_of_lifecycle,
    opening_of_suspects,
)
from pyspark_tarantool.jobs.suspect_rules import BURIED, COMES_BACK, STUCK
from pyspark_tarantool.report import Finding, Level, Report

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def tasks(queue: str, status: str, amount: int, overdue: int = 0, oldest: float | None = None) -> Row:
    return Row(
        queue=queue,
        status=status,
        tasks=amount,
        overdue=overdue,
        oldest_age_s=oldest,
        age_p50_s=oldest and oldest / 2,
        payload_sum_bytes=10 * amount,
    )


def levels(findings: list[Finding]) -> list[Level]:
    return [each.level for each in findings]


class TestBacklog:
    def test_the_worst_comes_first(self) -> None:
        counted = [
            tasks("mails", "ready", 100, oldest=7200),
            tasks("mails", "taken", 2, overdue=2, oldest=60),
            tasks("jobs", "buried", 7),
            tasks("jobs", "delayed", 5),
        ]
        delayed = [Row(queue="jobs", tasks=5, next_ready=NOW + timedelta(minutes=5))]
        summary, findings = opening_of_backlog(counted, delayed, NOW)
        assert summary == (
            "At 2026-01-31 12:00:00 UTC, 2 queues had 114 tasks, with 1.14 kB of data: "
            "100 ready, 7 buried, 5 delayed, 2 taken."
        )
        assert levels(findings) == [Level.BAD, Level.WARNING, Level.WARNING]
        assert [each.text for each in findings] == [
            "2 tasks should be ready by now; they are taken, in mails, "
            "although their time to run is over. Is the server running?",
            "The oldest ready task was put 2 h ago, in mails; "
            "half of the ready tasks there are not older than 1 h.",
            "Buried, waiting to be kicked or deleted: 7 tasks, all in jobs.",
        ]

    def test_all_is_well(self) -> None:
        _, findings = opening_of_backlog([tasks("mails", "ready", 1, oldest=60)], [], NOW)
        assert levels(findings) == [Level.GOOD, Level.GOOD]
        assert findings[0].text == "No task is overdue, old or buried."

    def test_empty_queues(self) -> None:
        assert opening_of_backlog([], [], NOW).summary.endswith("the queues are empty.")


def queue(name: str, attempts: int, timed_out: int = 0, released: int = 0, p99: float | None = None) -> Row:
    return Row(
        queue=name,
        tasks=attempts,
        acked=attempts,
        done=0,
        attempts=attempts,
        timed_out=timed_out,
        released=released,
        buried=0,
        waiting_count=None if p99 is None else attempts,
        waiting_p50_s=1.0,
        waiting_p99_s=p99,
    )


class TestLifecycle:
    def test_it_tells_what_was_done_and_what_went_wrong(self) -> None:
        queues = [queue("mails", 900, timed_out=30, released=50, p99=600), queue("jobs", 100, p99=2)]
        summary, findings = opening_of_lifecycle(queues, NOW - timedelta(hours=2), NOW)
        assert summary == (
            "The logs from 2026-01-31 10:00:00 UTC to 2026-01-31 12:00:00 UTC (2 h) show "
            "1\N{NO-BREAK SPACE}000 tasks in 2 queues: 1\N{NO-BREAK SPACE}000 were finished, 500 an hour, "
            "in 1\N{NO-BREAK SPACE}000 takes."
        )
        assert levels(findings) == [Level.BAD, Level.WARNING, Level.WARNING]
        assert findings[0].text.startswith("The time to run was over in 30 of ")
        assert (
            "one in a hundred for more than 10 min: at times, there are too few workers." in findings[1].text
        )
        assert "ended with a return to the queue, all in mails" in findings[2].text

    def test_all_is_well(self) -> None:
        _, findings = opening_of_lifecycle([queue("mails", 10, p99=2)], NOW - timedelta(hours=1), NOW)
        assert levels(findings) == [Level.GOOD, Level.GOOD]

    def test_no_events(self) -> None:
        assert opening_of_lifecycle([], None, None) == ("The logs have no events of tasks.", [])


class TestSuspects:
    def test_growing_and_stuck_come_before_the_rest(self) -> None:
        found = [
            Row(why=STUCK, queue="mails", tasks=2, longest_s=7200.0, most_attempts=1),
            Row(why=COMES_BACK, queue="mails", tasks=9, longest_s=None, most_attempts=5),
            Row(why=BURIED, queue="jobs", tasks=1, longest_s=60.0, most_attempts=1),
        ]
        growth = [Row(queue="mails", growing=True, per_hour=120.4, ready_last=500)]
        summary, findings = opening_of_suspects(found, growth, NOW)
        assert summary == (
            "At 2026-01-31 12:00:00 UTC, tasks need attention: 2 stuck in taken, 9 that come back, 1 buried. "
            "1 queue grows steadily."
        )
        assert [each.text for each in findings] == [
            "mails gains 120 ready tasks an hour, to 500 at the end: more tasks are put than taken.",
            "Tasks stuck in taken: 2, all in mails; the longest lasts 2 h.",
            "Tasks that come back: 9, all in mails.",
        ]

    def test_nothing(self) -> None:
        assert opening_of_suspects([], [], NOW).summary.endswith("there is nothing suspicious.")


@pytest.mark.parametrize("text", ["<b>mails</b>", "half & half"])
def test_the_page_shows_them_above_the_figures(text: str) -> None:
    report = Report("Backlog")
    report.set_opening(text, [Finding(Level.BAD, text)])
    report.add_figures([("tasks", 1, "")])
    report.add_explanations([("p50", "the median"), ("p50", "the median")])
    report.refresh_every(60)
    html = report.html()
    assert html.index('class="summary"') < html.index('class="findings"') < html.index('class="figures"')
    assert html.index("How to read this page") > html.index('class="figures"')
    assert html.count("<dt>p50</dt>") == 1
    assert '<span class="mark">act</span>' in html
    assert '<meta http-equiv="refresh" content="60">' in html
    assert text not in html
