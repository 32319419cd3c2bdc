"""Schedules: when they put tasks."""

from __future__ import annotations

import logging

import pytest

from iproto_server.server.schedules.schedule import SPACE
from iproto_server.server.schedules.scheduler import PUTS_MAX
from tests.server.schedules.minutes import EACH_MINUTE
from tests.server.schedules.world import DIALECTS, World, seconds


@pytest.fixture(params=DIALECTS)
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


@pytest.fixture
def tutorial() -> World:
    return World()


def assert_once_a_minute(world: World, begin: str, end: str) -> None:
    """Check that the tasks since a time are one for each minute."""
    assert world.count == (seconds(end) - seconds(begin)) // 60


class TestDue:
    def test_a_due_time_puts_one_task(self, world: World) -> None:
        world.schedule("5 12 * * *", data={"report": "daily"})
        world.until("2026-01-26 12:04:59")
        assert world.count == 0
        world.until("2026-01-26 12:05")
        assert world.data() == [{"report": "daily"}]
        world.until("2026-01-27 12:04")
        assert world.count == 1
        world.until("2026-01-27 12:05")
        assert world.count == 2

    def test_the_schedule_shows_it(self, world: World) -> None:
        world.schedule("5 12 * * *")
        shown = world.shown()
        assert shown["next_due"] == seconds("2026-01-26 12:05")
        assert (shown["last_due"], shown["last_put"], shown["last_task"]) == (None, None, None)
        world.until("2026-01-26 12:06")
        [task] = world.queue().tasks(None, limit=9)
        assert world.shown() == {
            "name": "nightly",
            "queue": world.queue_name,
            "cron": "5 12 * * *",
            "timezone": "UTC",
            "missed": "latest",
            "data": "x",
            "options": {},
            "next_due": seconds("2026-01-27 12:05"),
            "last_due": seconds("2026-01-26 12:05"),
            "last_put": seconds("2026-01-26 12:05"),
            "last_task": task.id,
            "last_error": None,
            "failed_at": None,
        }

    def test_a_waiting_consumer_gets_the_task(self, tutorial: World) -> None:
        tutorial.schedule(EACH_MINUTE)
        session = tutorial.box.session.open("binary", "127.0.0.1:50000", user="admin")
        take = tutorial.application.procedures["queue.take"].function
        waiter = tutorial.box.run(session, take, tutorial.box, 60)
        assert not waiter.is_done
        tutorial.until("2026-01-26 12:01")
        assert waiter.result["data"] == "x"

    def test_options_are_those_of_each_put(self) -> None:
        world = World("fifottl")
        world.schedule(EACH_MINUTE, options={"pri": 7, "delay": 30})
        world.until("2026-01-26 12:01")
        [task] = world.queue().tasks(None, limit=9)
        assert (task.details["pri"], world.delayed()) == (7, 1)
        world.until("2026-01-26 12:01:30")
        assert world.delayed() == 0

    def test_with_a_unique_key_tasks_do_not_pile_up(self, world: World) -> None:
        world.schedule(EACH_MINUTE, options={"unique_key": "nightly"})
        world.until("2026-01-26 12:05")
        assert (world.count, world.shown()["last_error"]) == (1, None)
        world.delete_all()
        world.until("2026-01-26 12:06")
        assert world.count == 1

    def test_many_schedules_have_one_timer(self, tutorial: World) -> None:
        before = tutorial.clock.pending
        for number in range(20):
            tutorial.schedule(f"{number + 10} * * * *", f"at {number}")
        assert tutorial.clock.pending == before + 1
        tutorial.until("2026-01-26 12:29")
        assert tutorial.count == 20

    def test_a_day_in_berlin(self, tutorial: World) -> None:
        tutorial.schedule("0 9 * * *", timezone="Europe/Berlin")
        tutorial.until("2026-01-27 08:00")
        assert tutorial.count == 1
        tutorial.until("2026-07-27 06:59:59")
        tutorial.delete_all()
        tutorial.until("2026-07-27 07:00")
        assert tutorial.count == 1

    def test_the_hours_that_summer_time_skips_and_repeats(self) -> None:
        world = World(start="2026-03-28 12:00:00")
        world.schedule("30 2 * * *", timezone="Europe/Berlin")
        world.until("2026-03-29 01:00")
        assert world.count == 1
        world.until("2026-03-30 00:29")
        assert world.count == 1
        world = World(start="2026-10-24 12:00:00")
        world.schedule("30 2 * * *", timezone="Europe/Berlin")
        world.until("2026-10-25 00:30")
        assert world.count == 1
        world.until("2026-10-26 01:29")
        assert world.count == 1


class TestRestart:
    def test_a_restart_between_due_times_changes_nothing(self, world: World) -> None:
        world.schedule(EACH_MINUTE)
        world.until("2026-01-26 12:01:10")
        for _ in range(3):
            world.crash()
            world.start_again()
            world.clock.advance(5)
        assert world.count == 1
        world.until("2026-01-26 12:03:00")
        assert_once_a_minute(world, "2026-01-26 12:00", "2026-01-26 12:03")

    def test_a_task_and_its_due_time_are_one_transaction(self, world: World) -> None:
        world.schedule(EACH_MINUTE)
        before = len(world.journal.transactions)
        world.until("2026-01-26 12:01")
        [spaces] = [
            {statement.space.name for statement in each} for each in world.journal.transactions[before:]
        ]
        assert SPACE in spaces
        assert len(spaces) > 1

    def test_a_put_that_is_lost_with_the_log_is_made_up_for_once(self, world: World) -> None:
        world.schedule(EACH_MINUTE)
        world.until("2026-01-26 12:00:59")
        world.journal.is_slow = True
        world.until("2026-01-26 12:01:00")
        assert world.count == 1
        world.lose_log()
        assert world.count == 0
        world.until("2026-01-26 12:01:10")
        assert world.count == 1

    def test_a_lost_put_is_made_up_for_after_a_restart(self, world: World) -> None:
        world.schedule(EACH_MINUTE)
        world.until("2026-01-26 12:00:59")
        world.journal.is_slow = True
        world.until("2026-01-26 12:01:00")
        world.crash()
        world.lose_log()
        world.start_again()
        assert world.count == 1
        world.clock.advance(50)
        assert world.count == 1

    def test_a_lost_change_of_a_schedule_is_as_if_never_made(self, tutorial: World) -> None:
        tutorial.schedule("5 12 * * *")
        tutorial.journal.is_slow = True
        tutorial.as_operator(tutorial.calls.unschedule, "nightly")
        tutorial.lose_log()
        tutorial.until("2026-01-26 12:05:01")
        assert tutorial.count == 1


class TestClock:
    def test_a_clock_that_steps_back_repeats_nothing(self, world: World) -> None:
        world.schedule(EACH_MINUTE)
        world.until("2026-01-26 12:03:10")
        assert world.count == 3
        world.step_to("2026-01-26 11:30:00")
        world.until("2026-01-26 12:03:59")
        assert world.count == 3
        world.until("2026-01-26 12:04:00")
        assert world.count == 4

    def test_not_even_after_a_restart(self, world: World) -> None:
        world.schedule(EACH_MINUTE)
        world.until("2026-01-26 12:03:10")
        world.crash()
        world.step_to("2026-01-26 11:30:00")
        world.start_again()
        world.until("2026-01-26 12:03:59")
        assert world.count == 3

    def test_nor_does_another_definition(self, tutorial: World) -> None:
        tutorial.schedule(EACH_MINUTE)
        tutorial.until("2026-01-26 12:03:10")
        tutorial.step_to("2026-01-26 12:01:00")
        tutorial.schedule(EACH_MINUTE, data="y")
        tutorial.until("2026-01-26 12:04:00")
        assert tutorial.data() == ["x", "x", "x", "y"]

    def test_a_new_schedule_of_the_name_begins_now(self, tutorial: World) -> None:
        tutorial.step_to("2099-01-01 00:00:00")
        tutorial.schedule(EACH_MINUTE)
        tutorial.step_to("2026-01-26 12:00:30")
        tutorial.until("2026-01-26 12:05:00")
        assert tutorial.count == 0
        tutorial.as_operator(tutorial.calls.unschedule, "nightly")
        tutorial.schedule(EACH_MINUTE)
        tutorial.until("2026-01-26 12:06:00")
        assert tutorial.count == 1

    @pytest.mark.parametrize(("missed", "count"), [("latest", 1), ("all", 30), ("none", 1)])
    def test_due_times_that_a_step_ahead_skips(self, world: World, missed: str, count: int) -> None:
        world.schedule(EACH_MINUTE, missed=missed)
        world.step_to("2026-01-26 12:30:30")
        assert world.count == count
        world.until("2026-01-26 12:31:00")
        assert world.count == count + 1


class TestMissed:
    """An hour without the server, and due times each ten minutes."""

    @pytest.mark.parametrize(("missed", "count", "due"), [("latest", 1, 1), ("all", 6, 1), ("none", 0, 0)])
    def test_after_a_restart(self, world: World, missed: str, count: int, due: int) -> None:
        world.schedule("*/10 * * * *", missed=missed)
        world.crash()
        world.clock.advance(3661)
        world.start_again()
        assert world.count == count
        assert world.shown()["last_due"] == (seconds("2026-01-26 13:00") if due else None)
        world.until("2026-01-26 13:10")
        assert world.count == count + 1

    @pytest.mark.parametrize(("seconds_late", "count"), [(0, 1), (60, 1), (61, 0)])
    def test_none_puts_tasks_of_the_last_minute(self, world: World, seconds_late: int, count: int) -> None:
        world.schedule("30 12 * * *", missed="none")
        world.crash()
        world.until("2026-01-26 12:30")
        world.clock.advance(seconds_late)
        world.start_again()
        assert world.count == count

    def test_all_puts_many_in_several_transactions(self, tutorial: World) -> None:
        tutorial.schedule(EACH_MINUTE, missed="all")
        tutorial.schedule("45 12 * * *", "another", data="y")
        tutorial.crash()
        tutorial.clock.advance(250 * 60)
        tutorial.start_again()
        assert tutorial.count == PUTS_MAX + 1
        tutorial.clock.advance(0)
        assert tutorial.count == 251
        assert tutorial.data().count("y") == 1
        for statements in tutorial.journal.transactions:
            assert len([each for each in statements if each.space.name == "queue"]) <= 2 * PUTS_MAX + 2

    def test_a_restart_in_the_middle_of_many(self, tutorial: World) -> None:
        tutorial.schedule(EACH_MINUTE, missed="all")
        tutorial.crash()
        tutorial.clock.advance(250 * 60)
        for _ in range(5):
            tutorial.start_again()
            tutorial.crash()
        assert tutorial.count == 250

    def test_the_log_says_which_were_missed(self, tutorial: World, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        tutorial.schedule(EACH_MINUTE)
        tutorial.step_to("2026-01-26 12:30:00")
        [line] = [each for each in caplog.records if each.message == "due times were missed"]
        fields = line.__dict__["fields"]
        assert (fields["first"], fields["last"]) == (
            seconds("2026-01-26 12:01"),
            seconds("2026-01-26 12:29"),
        )

    @pytest.mark.parametrize(("missed", "count"), [("latest", 1), ("all", 60), ("none", 1)])
    def test_while_read_only_nothing_is_put(self, world: World, missed: str, count: int) -> None:
        world.schedule(EACH_MINUTE, missed=missed)
        world.box.set_read_only(True)
        world.until("2026-01-26 13:00:01")
        assert world.count == 0
        world.box.set_read_only(False)
        world.clock.advance(0)
        assert world.count == count
