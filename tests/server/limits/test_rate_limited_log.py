"""Lines about what clients can cause as often as they like."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from iproto_server.box.clock import ManualClock
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

logger = logging.getLogger("iproto_server.test")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(autouse=True)
def _level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger.name)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """The lines since the last look, with their fields."""
    found = [(record.getMessage(), record.__dict__["fields"]) for record in caplog.records]
    caplog.clear()
    return found


def test_the_first_event_is_logged_at_once(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    log.event(logging.WARNING, "refused", peer="a")
    assert caplog.records[0].levelno == logging.WARNING
    assert lines(caplog) == [("refused", {"peer": "a", "count": 1})]


def test_those_that_follow_are_one_line_at_the_end_of_the_interval(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    for number in range(1000):
        log.event(logging.WARNING, "refused", number=number)
    assert lines(caplog) == [("refused", {"number": 0, "count": 1})]
    clock.advance(9.9)
    assert lines(caplog) == []
    clock.advance(0.2)
    assert lines(caplog) == [("refused", {"number": 999, "count": 999})]


def test_the_line_of_an_interval_begins_another_one_of_twice_its_length(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    for _ in range(75):
        log.event(logging.WARNING, "refused")
        clock.advance(1.0)
    counts = [fields["count"] for _, fields in lines(caplog)]
    assert counts == [1, 9, 20, 40]
    clock.advance(80.0)
    assert lines(caplog) == [("refused", {"count": 5})]


def test_half_an_hour_of_events_is_ten_lines(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    for _ in range(1800):
        log.event(logging.WARNING, "refused")
        clock.advance(1.0)
    log.close()
    assert sum(int(str(fields["count"])) for _, fields in lines(caplog)) == 1800
    assert len(caplog.records) <= 10


def test_after_a_quiet_interval_events_are_logged_at_once(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    for _ in range(2):
        log.event(logging.WARNING, "refused")
    clock.advance(30.0)
    lines(caplog)
    log.event(logging.WARNING, "refused")
    assert lines(caplog) == [("refused", {"count": 1})]


def test_nothing_is_kept_of_a_kind_that_has_ended(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    for number in range(10_000):
        log.event(logging.WARNING, "refused", key=number, number=number)
        clock.advance(10.0)
    assert clock.pending <= 1
    assert len(lines(caplog)) == 10_000


def test_kinds_have_their_own_intervals(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    for _ in range(3):
        log.event(logging.WARNING, "refused", key="a", peer="a")
        log.event(logging.WARNING, "refused", key="b", peer="b")
        log.event(logging.INFO, "closed")
    assert lines(caplog) == [
        ("refused", {"peer": "a", "count": 1}),
        ("refused", {"peer": "b", "count": 1}),
        ("closed", {"count": 1}),
    ]
    clock.advance(10.0)
    assert lines(caplog) == [
        ("refused", {"peer": "a", "count": 2}),
        ("refused", {"peer": "b", "count": 2}),
        ("closed", {"count": 2}),
    ]


def test_too_many_kinds_are_one_together(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog(logger, clock, 10.0, max_kinds=2)
    for number in range(1000):
        log.event(logging.WARNING, "refused", key=number, number=number)
    log.event(logging.INFO, "closed", key=3)
    assert lines(caplog) == [
        ("refused", {"number": 0, "count": 1}),
        ("refused", {"number": 1, "count": 1}),
        ("refused, others", {"count": 1}),
        ("closed", {"count": 1}),
    ]
    clock.advance(10.0)
    assert lines(caplog) == [("refused, others", {"count": 997})]


def test_at_the_end_what_was_only_counted_is_logged(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    for _ in range(5):
        log.event(logging.WARNING, "refused")
    log.event(logging.WARNING, "closed")
    lines(caplog)
    log.close()
    assert lines(caplog) == [("refused", {"count": 4})]
    assert clock.pending == 0


def test_what_is_not_logged_costs_nothing(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog(logger, clock, 10.0)
    log.event(logging.DEBUG, "refused")
    assert clock.pending == 0
    assert lines(caplog) == []
