"""Due times: the syntax of expressions, time zones, and changes between standard and summer time."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.server.schedules.cron import CRON_MAX, CronExpression
from tests.server.schedules.world import seconds

BERLIN = "Europe/Berlin"


def due(cron: str, begin: str, count: int, zone: str = BERLIN) -> list[str]:
    """Return the first due times after a local time, in local time with the offset from UTC."""
    expression = CronExpression(cron, zone)
    moment: int | None = seconds(begin, zone)
    found: list[str] = []
    for _ in range(count):
        assert moment is not None
        moment = expression.after(moment)
        assert moment is not None
        found.append(datetime.fromtimestamp(moment, ZoneInfo(zone)).isoformat(" "))
    return found


class TestSyntax:
    @pytest.mark.parametrize(
        ("cron", "expected"),
        [
            ("*/15 * * * *", "2026-01-26 12:15:00+00:00"),
            ("5 4 * * *", "2026-01-27 04:05:00+00:00"),
            ("0 9 * * mon-fri", "2026-01-27 09:00:00+00:00"),
            ("0 0 1 jan *", "2027-01-01 00:00:00+00:00"),
            ("0 0 * * 7", "2026-02-01 00:00:00+00:00"),
            ("0 0 L * *", "2026-01-31 00:00:00+00:00"),
            ("0 0 * * FRI#1", "2026-02-06 00:00:00+00:00"),
            ("30 * * * * *", "2026-01-26 12:00:30+00:00"),
            # Days of the month and of the week: either, unless one begins with a star.
            ("0 0 13 * FRI", "2026-01-30 00:00:00+00:00"),
        ],
    )
    def test_the_next_due_time(self, cron: str, expected: str) -> None:
        assert due(cron, "2026-01-26 12:00", 1, "UTC") == [expected]

    @pytest.mark.parametrize(
        ("cron", "text"),
        [
            ("", "must have 5 or 6 fields: minute, hour, day of month, month, day of week, and"),
            ("* * * *", "must have 5 or 6 fields"),
            ("* * * * * * *", "must have 5 or 6 fields"),
            ("@daily", "must have 5 or 6 fields"),
            ("60 * * * *", 'the cron expression "60 * * * *" has a bad minute'),
            ("* 24 * * *", "has a bad hour"),
            ("* * 0 * *", "has a bad day-of-month"),
            ("* * * 13 *", "has a bad month"),
            ("* * * * 8", "has a bad day-of-week"),
            ("60 * * * * *", "has a bad second"),
            ("*/0 * * * *", "has a bad minute"),
            ("5-1 * * * *", "has a bad minute"),
            ("0 0 31 2 *", "has a bad day-of-month"),
            ("* * */20 * 1L", 'the cron expression "* * */20 * 1L" is never due'),
            ("0" * CRON_MAX + " * * * *", "is longer than 256 characters"),
        ],
    )
    def test_a_wrong_expression(self, cron: str, text: str) -> None:
        with pytest.raises(ValueError) as raised:
            CronExpression(cron, "UTC")
        assert text in str(raised.value)

    @pytest.mark.parametrize(
        "zone", ["", "Nowhere/City", "Europe", "europe/berlin", "../../etc/passwd", "a\0"]
    )
    def test_a_wrong_time_zone(self, zone: str) -> None:
        with pytest.raises(ValueError) as raised:
            CronExpression("* * * * *", zone)
        assert str(raised.value) == f'there is no time zone "{zone}"; names are as "Europe/Berlin" or "UTC"'

    @given(st.text("0123456789*/-,#LWMONJA ", max_size=30))
    def test_any_text_is_refused_or_has_due_times(self, cron: str) -> None:
        try:
            expression = CronExpression(cron, BERLIN)
        except ValueError:
            return
        assert (expression.after(1_800_000_000) or 0) > 1_800_000_000

    @pytest.mark.parametrize("moment", [-1, 2**40, 2**60])
    def test_a_time_out_of_range(self, moment: int) -> None:
        with pytest.raises(ValueError, match="is not a time in seconds since 1970 up to the year 9000"):
            CronExpression("* * * * *", "UTC").after(moment)


class TestSummerTimeBegins:
    """In Berlin, 02:00 to 03:00 does not exist on 2026-03-29."""

    def test_a_time_in_the_skipped_hour_is_due_right_after_it(self) -> None:
        assert due("30 2 * * *", "2026-03-28 12:00", 2) == [
            "2026-03-29 03:00:00+02:00",
            "2026-03-30 02:30:00+02:00",
        ]

    def test_several_skipped_times_are_due_once(self) -> None:
        assert due("0,20,40 2 * * *", "2026-03-28 12:00", 2) == [
            "2026-03-29 03:00:00+02:00",
            "2026-03-30 02:00:00+02:00",
        ]

    @pytest.mark.parametrize("cron", ["30 * * * *", "30 */1 * * *"])
    def test_each_hour_goes_on(self, cron: str) -> None:
        assert due(cron, "2026-03-29 01:00", 2) == ["2026-03-29 01:30:00+01:00", "2026-03-29 03:30:00+02:00"]

    def test_with_seconds_the_skipped_times_are_not_due(self) -> None:
        assert due("0 30 2 * * *", "2026-03-28 12:00", 1) == ["2026-03-30 02:30:00+02:00"]


class TestSummerTimeEnds:
    """In Berlin, 02:00 to 03:00 comes twice on 2026-10-25."""

    def test_a_time_in_the_repeated_hour_is_due_once(self) -> None:
        assert due("30 2 * * *", "2026-10-24 12:00", 2) == [
            "2026-10-25 02:30:00+02:00",
            "2026-10-26 02:30:00+01:00",
        ]

    @pytest.mark.parametrize("minute", [0, 15, 45, 59])
    def test_within_the_second_half_it_is_not_due_again(self, minute: int) -> None:
        second_half = seconds("2026-10-25 02:00", BERLIN) + 3600 + minute * 60
        following = CronExpression("30 2 * * *", BERLIN).after(second_half)
        assert following == seconds("2026-10-26 02:30", BERLIN)

    @pytest.mark.parametrize("cron", ["30 * * * *", "*/30 2 * * *"])
    def test_with_a_star_it_is_due_in_both(self, cron: str) -> None:
        found = due(cron, "2026-10-25 02:10", 3)
        assert found[0] == "2026-10-25 02:30:00+02:00"
        assert "2026-10-25 02:30:00+01:00" in found


class TestLatest:
    def test_it_is_the_last_one_of_an_interval(self) -> None:
        expression = CronExpression("0 * * * *", "UTC")
        begin, end = seconds("2026-01-26 12:00"), seconds("2026-01-26 17:30")
        assert expression.latest(begin, end) == seconds("2026-01-26 17:00")
        assert expression.latest(begin, begin + 3600) == begin + 3600
        assert expression.latest(begin, begin + 3599) is None
        assert expression.latest(end, begin) is None

    def test_a_year_of_seconds_takes_no_time(self) -> None:
        expression = CronExpression("* * * * * *", BERLIN)
        assert expression.latest(1_700_000_000, 1_731_536_000) == 1_731_536_000

    @given(
        st.sampled_from(["*/7 * * * *", "30 2 * * *", "0,30 1-3 * * *", "15 */2 * * *", "*/20 0 2 * * *"]),
        st.sampled_from([seconds("2026-03-29 00:00"), seconds("2026-10-25 00:00")]),
        st.integers(-7200, 7200),
        st.integers(0, 90_000),
    )
    def test_it_equals_the_last_one_of_all(self, cron: str, day: int, offset: int, length: int) -> None:
        expression = CronExpression(cron, BERLIN)
        begin, moment, last = day + offset, day + offset, None
        while (following := expression.after(moment)) is not None and following <= begin + length:
            moment = last = following
        assert expression.latest(begin, begin + length) == last
