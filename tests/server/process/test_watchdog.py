"""The watchdog's own rules, by a clock of the test's."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from iproto_server.server.watchdog import BEAT_INTERVAL, END_GRACE, SECOND_SIGNAL_GRACE, Watchdog, stack_of


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def watchdog(clock: Clock, stop_timeout: float = 10.0) -> Watchdog:
    return Watchdog(lambda: stop_timeout, end=lambda status: pytest.fail(str(status)), clock=clock)


class TestWhenTheProcessHasToEnd:
    def test_the_first_signal_gives_the_stop_its_time_and_a_grace(self) -> None:
        dog = watchdog(Clock())
        dog._signalled(signal.SIGTERM)
        assert (dog._due, dog._status) == (1010 + END_GRACE, 143)

    def test_the_second_one_takes_it_away_and_later_ones_give_none_back(self) -> None:
        clock = Clock()
        dog = watchdog(clock)
        dog._signalled(signal.SIGTERM)
        clock.now += 1
        dog._signalled(signal.SIGINT)
        assert (dog._due, dog._status) == (1001 + SECOND_SIGNAL_GRACE, 143)
        clock.now += 1
        dog._signalled(signal.SIGTERM)
        assert dog._due == 1001 + SECOND_SIGNAL_GRACE

    def test_a_second_one_never_gives_more_time(self) -> None:
        clock = Clock()
        dog = watchdog(clock, 0.0)
        dog._signalled(signal.SIGTERM)
        clock.now += END_GRACE - 1
        dog._signalled(signal.SIGTERM)
        assert dog._due == 1000 + END_GRACE

    @pytest.mark.parametrize("number", [0, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD])
    def test_other_signals_end_nothing(self, number: int) -> None:
        dog = watchdog(Clock())
        dog._signalled(number)
        assert dog._due is None


def test_how_long_the_loop_has_not_turned() -> None:
    clock = Clock()
    dog = watchdog(clock)

    async def beat() -> None:
        dog._beat(asyncio.get_running_loop())
        clock.now += BEAT_INTERVAL / 2
        assert dog.blocked_for == 0
        clock.now += 7
        assert dog.blocked_for == pytest.approx(7 - BEAT_INTERVAL / 2)
        dog._beat(asyncio.get_running_loop())
        assert dog.blocked_for == 0

    asyncio.run(beat())


def test_the_stack_of_a_thread_shows_where_it_is() -> None:
    entered, released = threading.Event(), threading.Event()

    def stuck_here() -> None:
        entered.set()
        released.wait()

    thread = threading.Thread(target=stuck_here)
    thread.start()
    entered.wait()
    stack = stack_of(thread)
    names = []
    while stack is not None:
        names.append(stack.tb_frame.f_code.co_name)
        stack = stack.tb_next
    released.set()
    thread.join()
    assert names.index("run") < names.index("stuck_here")
    assert stack_of(thread) is None


class TestABlockedLoop:
    """A report of what runs, and one of how long it took."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def dog(self, clock: Clock) -> Watchdog:
        return Watchdog(
            lambda: 1.0, too_long=lambda: 0.5, describe=lambda frame: {"user": "guest"}, clock=clock
        )

    def reports(self, caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, object]]]:
        for thread in threading.enumerate():
            if thread.name == "watchdog report":
                thread.join()
        return [(record.getMessage(), getattr(record, "fields", {})) for record in caplog.records]

    def test_is_reported_once_with_its_position(
        self, dog: Watchdog, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock.now += BEAT_INTERVAL + 0.5
        dog._look()
        assert self.reports(caplog) == []
        clock.now += 0.1
        dog._look()
        clock.now += 1
        dog._look()
        ((name, fields),) = self.reports(caplog)
        assert name == "the event loop is blocked"
        assert fields["blocked_seconds"] == pytest.approx(0.6)
        assert fields["user"] == "guest"
        assert str(fields["function"]).startswith("Watchdog._look")

    def test_its_end_tells_the_time(
        self, dog: Watchdog, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def beat() -> None:
            clock.now += BEAT_INTERVAL + 2
            dog._look()
            dog._beat(asyncio.get_running_loop())
            clock.now += BEAT_INTERVAL
            dog._beat(asyncio.get_running_loop())

        asyncio.run(beat())
        first, *rest = self.reports(caplog)
        assert first[0] == "the event loop is blocked"
        assert rest == [("the event loop runs again", {"blocked_seconds": 2.0})]

    def test_a_short_one_is_not_reported(
        self, dog: Watchdog, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def beat() -> None:
            clock.now += BEAT_INTERVAL + 0.4
            dog._look()
            dog._beat(asyncio.get_running_loop())

        asyncio.run(beat())
        assert self.reports(caplog) == []
