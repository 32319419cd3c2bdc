"""Schedules that are changed, and those that fail."""

from __future__ import annotations

import logging

import pytest

from iproto_server.server.schedules.schedule import SPACE
from iproto_server.server.schedules.scheduler import LONGEST_PAUSE
from tests.server.schedules.minutes import EACH_MINUTE
from tests.server.schedules.world import DIALECTS, World, seconds


@pytest.fixture(params=DIALECTS)
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


@pytest.fixture
def tutorial() -> World:
    return World()


class TestChanges:
    def test_a_new_schedule_puts_nothing_for_the_past(self, world: World) -> None:
        world.schedule(EACH_MINUTE, missed="all")
        assert world.count == 0
        assert world.shown()["next_due"] == seconds("2026-01-26 12:01")

    def test_one_that_begins_at_a_due_time_waits_for_the_next(self) -> None:
        world = World(start="2026-01-26 12:00:00")
        world.schedule(EACH_MINUTE)
        assert world.count == 0
        world.until("2026-01-26 12:01")
        assert world.count == 1

    def test_another_definition_puts_nothing_for_the_past(self, world: World) -> None:
        world.schedule("0 13 * * *")
        world.until("2026-01-26 12:40")
        world.schedule("10 12 * * *", missed="all")
        assert world.count == 0
        world.until("2026-01-27 12:10")
        assert world.count == 1

    def test_the_same_definition_keeps_a_due_time_that_waits(self, tutorial: World) -> None:
        tutorial.schedule("5 12 * * *")
        tutorial.applications.clear()
        tutorial.until("2026-01-26 12:06")
        tutorial.applications.append(tutorial.application)
        tutorial.schedule("5 12 * * *")
        tutorial.clock.advance(LONGEST_PAUSE)
        assert tutorial.count == 1

    def test_after_unschedule_nothing_is_put(self, world: World) -> None:
        world.schedule(EACH_MINUTE)
        world.until("2026-01-26 12:01")
        record = world.as_operator(world.calls.unschedule, "nightly")
        assert record["last_due"] == seconds("2026-01-26 12:01")
        world.until("2026-01-26 12:10")
        assert world.count == 1
        assert world.as_server(world.calls.schedules) == []

    def test_a_rolled_back_schedule_puts_nothing(self, tutorial: World) -> None:
        def create_in_vain() -> None:
            tutorial.calls.schedule("nightly", {"queue": "queue", "cron": EACH_MINUTE})
            raise ValueError

        with pytest.raises(ValueError):
            tutorial.as_operator(create_in_vain)
        tutorial.until("2026-01-26 12:10")
        assert tutorial.count == 0

    def test_rows_that_clients_have_damaged_hold_up_no_others(
        self, tutorial: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        for name in ("a", "b", "c", "d", "e"):
            tutorial.schedule(EACH_MINUTE, name, data=name)
        space = tutorial.box.space[SPACE]
        for name, field, value in (
            ("a", "cron", "nonsense"),
            ("b", "timezone", "Nowhere"),
            ("c", "missed", "some"),
            ("d", "handled", 2**60),
        ):
            tutorial.as_server(space.update, name, [("=", field, value)])
        tutorial.until("2026-01-26 12:01")
        assert tutorial.data() == ["e"]
        errors = [each["last_error"] for each in tutorial.as_server(tutorial.calls.schedules)]
        assert errors[0].startswith('the cron expression "nonsense" must have')
        assert errors[1].startswith('there is no time zone "Nowhere"')
        assert errors[2] == "missed must be one of latest, all, none, not 'some'"
        assert errors[3] is not None
        assert errors[4] is None

    def test_a_space_of_that_name_that_is_not_the_servers(self, tutorial: World) -> None:
        tutorial.as_server(tutorial.box.schema.create_space, SPACE)
        expected = f"the space {SPACE} is not the one that the server creates for schedules"
        definition = {"queue": "queue", "cron": EACH_MINUTE}
        assert tutorial.refused(tutorial.calls.schedule, "nightly", definition) == expected
        assert tutorial.as_server(tutorial.calls.schedules) == []

    def test_a_dropped_space_has_no_schedules(self, tutorial: World) -> None:
        tutorial.schedule(EACH_MINUTE)
        tutorial.as_server(tutorial.box.space[SPACE].drop)
        tutorial.until("2026-01-26 12:05")
        assert tutorial.count == 0
        tutorial.schedule(EACH_MINUTE)
        tutorial.until("2026-01-26 12:06")
        assert tutorial.count == 1


class TestFailures:
    """A put that fails is tried again, and its due time follows the policy for missed ones."""

    @pytest.fixture
    def tube(self) -> World:
        world = World("fifo")
        world.create_tube("small", "limfifottl", capacity=2)
        return world

    @pytest.mark.parametrize(("missed", "count"), [("latest", 1), ("all", 3), ("none", 1)])
    def test_a_queue_that_does_not_exist(
        self, tube: World, missed: str, count: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        tube.schedule(EACH_MINUTE, missed=missed)
        tube.drop_tube("jobs")
        tube.until("2026-01-26 12:03:00")
        [line, *_] = [each for each in caplog.records if each.message == "a schedule cannot put its task"]
        assert line.levelno == logging.WARNING
        assert line.__dict__["fields"] == {
            "schedule": "nightly",
            "queue": "jobs",
            "retry_in": 1.0,
            "error": 'there is no queue "jobs"',
        }
        shown = tube.shown()
        assert (shown["last_error"], shown["last_due"]) == ('there is no queue "jobs"', None)
        tube.create_tube("jobs", "fifo")
        tube.until("2026-01-26 12:03:59")
        assert tube.count == count
        assert tube.shown()["last_error"] is None
        assert tube.shown()["last_due"] == seconds("2026-01-26 12:03")

    def test_none_gives_up_after_a_minute(self, tube: World) -> None:
        tube.schedule("1 12 * * *", missed="none")
        tube.drop_tube("jobs")
        tube.until("2026-01-26 12:10:00")
        tube.create_tube("jobs", "fifo")
        tube.until("2026-01-26 13:00:00")
        assert tube.count == 0
        assert tube.shown()["last_error"] == 'there is no queue "jobs"'
        assert tube.shown()["next_due"] == seconds("2026-01-27 12:01")
        tube.until("2026-01-27 12:01:00")
        assert tube.count == 1

    def test_another_definition_has_not_failed(self, tube: World) -> None:
        tube.schedule("1 12 * * *", queue="small", missed="all", options={"pri": "high"})
        tube.until("2026-01-26 12:01:00")
        assert tube.shown()["last_error"] is not None
        tube.schedule("2 12 * * *", queue="small")
        assert tube.shown()["last_error"] is None
        tube.until("2026-01-26 12:02:00")
        assert sum(tube.queue("small").counts().values()) == 1

    def test_attempts_become_rarer(self, tube: World, caplog: pytest.LogCaptureFixture) -> None:
        tube.schedule("1 12 * * *")
        tube.drop_tube("jobs")
        tube.until("2026-01-26 13:01:00")
        lines = [each for each in caplog.records if each.message == "a schedule cannot put its task"]
        delays = [line.__dict__["fields"]["retry_in"] for line in lines]
        assert delays[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
        assert 60 < len(delays) < 70

    def test_a_full_tube_takes_what_fits(self, tube: World) -> None:
        tube.schedule(EACH_MINUTE, queue="small", missed="all")
        tube.until("2026-01-26 12:05:00")
        small = tube.queue("small")
        assert sum(small.counts().values()) == 2
        assert tube.shown()["last_error"] == 'there is no room in the queue "small"'
        assert tube.shown()["last_due"] == seconds("2026-01-26 12:02")
        for task in small.tasks(None, limit=9):
            tube.as_server(small.delete, task.id)
        tube.until("2026-01-26 12:05:59")
        assert sum(small.counts().values()) == 2
        assert tube.shown()["last_due"] == seconds("2026-01-26 12:04")

    def test_a_trigger_that_refuses_the_task(self, tutorial: World, caplog: pytest.LogCaptureFixture) -> None:
        is_refusing = True

        def refuse(old: object, new: object) -> None:
            if is_refusing:
                raise RuntimeError("not today")

        tutorial.box.space["queue"].on_replace(refuse)
        tutorial.schedule(EACH_MINUTE)
        tutorial.schedule("1 12 * * *", "another", queue="queue")
        tutorial.until("2026-01-26 12:01:00")
        assert tutorial.count == 0
        [line, _] = [each for each in caplog.records if each.message == "a schedule cannot put its task"]
        assert line.exc_info is not None
        is_refusing = False
        tutorial.until("2026-01-26 12:01:01")
        assert tutorial.count == 2

    def test_a_wrong_option_is_found_by_the_put(self) -> None:
        world = World("fifottl")
        world.schedule(EACH_MINUTE, options={"pri": "high"})
        world.until("2026-01-26 12:01:00")
        assert world.count == 0
        assert world.shown()["last_error"]

    def test_a_clock_that_steps_back_does_not_hold_up_attempts(self, tube: World) -> None:
        tube.schedule("1 12 * * *")
        tube.drop_tube("jobs")
        tube.until("2026-01-26 12:05:00")
        tube.create_tube("jobs", "fifo")
        tube.step_to("2026-01-26 12:03:00")
        tube.until("2026-01-26 12:03:59")
        assert tube.count == 1

    def test_a_drained_queue_refuses_the_task_until_it_is_resumed(self, world: World) -> None:
        world.schedule(EACH_MINUTE)
        world.as_server(world.queue().drain)
        world.until("2026-01-26 12:03:00")
        assert (world.count, world.shown()["last_due"]) == (0, None)
        assert world.shown()["last_error"] is not None
        world.as_server(world.queue().resume)
        world.until("2026-01-26 12:03:59")
        assert (world.count, world.shown()["last_error"]) == (1, None)

    def test_one_that_fails_holds_up_no_others(self, tube: World) -> None:
        tube.create_tube("gone", "fifo")
        tube.schedule(EACH_MINUTE, "a", queue="gone")
        tube.schedule(EACH_MINUTE, "b")
        tube.drop_tube("gone")
        tube.until("2026-01-26 12:03:00")
        assert tube.count == 3


class TestLegacy:
    """A tube of the legacy queue exists as long as it has tasks: a schedule puts into it in any case."""

    def test_a_tube_that_was_never_used(self) -> None:
        world = World("legacy")
        world.schedule(EACH_MINUTE, queue="queue_0/new tube")
        world.until("2026-01-26 12:01:00")
        assert sum(world.queue("queue_0/new tube").counts().values()) == 1

    def test_a_tube_that_is_empty_after_a_restart(self) -> None:
        world = World("legacy")
        world.schedule(EACH_MINUTE)
        world.until("2026-01-26 12:01:00")
        world.delete_all()
        world.crash()
        world.start_again()
        world.until("2026-01-26 12:02:00")
        assert world.count == 1

    @pytest.mark.parametrize("name", ["queue_1/jobs", "queue_0", "queue_0/", "jobs"])
    def test_there_is_no_such_space(self, name: str) -> None:
        world = World("legacy")
        definition = {"queue": name, "cron": EACH_MINUTE}
        assert world.refused(world.calls.schedule, "nightly", definition) == f'there is no queue "{name}"'
