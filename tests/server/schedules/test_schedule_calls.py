"""The procedures `operator.schedule`, `.unschedule` and `.schedules`: input that is refused, and lists."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server.server.schedules.schedule_calls import TASK_MAX
from tests.server.schedules.world import World, seconds

GOOD = {"queue": "jobs", "cron": "* * * * *"}


@pytest.fixture
def world() -> World:
    return World("fifottl")


def test_the_defaults(world: World) -> None:
    record = world.as_operator(world.calls.schedule, "nightly", GOOD)
    assert (record["timezone"], record["missed"], record["data"], record["options"]) == (
        *("UTC", "latest", None),
        {},
    )
    assert record["next_due"] == seconds("2026-01-26 12:01")


def test_the_list_is_in_the_order_of_names(world: World) -> None:
    assert world.as_server(world.calls.schedules) == []
    for name in ("c", "a", "ж", "b"):
        world.schedule("* * * * *", name)
    assert [each["name"] for each in world.as_server(world.calls.schedules)] == ["a", "b", "c", "ж"]


def test_a_replaced_schedule_keeps_its_last_task(world: World) -> None:
    world.schedule("* * * * *")
    world.until("2026-01-26 12:01")
    before = world.shown()
    after = world.schedule("30 * * * *", options={"pri": 3}, data=[1, {"a": None}])
    assert after["last_task"] == before["last_task"]
    assert (after["cron"], after["data"], after["options"]) == ("30 * * * *", [1, {"a": None}], {"pri": 3})


def test_an_empty_map_of_a_lua_client_means_no_options(world: World) -> None:
    assert world.as_operator(world.calls.schedule, "nightly", {**GOOD, "options": []})["options"] == {}


@pytest.mark.parametrize(
    ("name", "definition", "text"),
    [
        (None, GOOD, "the name of a schedule must be a text of 1 to 200 characters"),
        ("", GOOD, "the name of a schedule must be a text of 1 to 200 characters"),
        ("x" * 201, GOOD, "the name of a schedule must be a text of 1 to 200 characters"),
        ("a", None, "the definition of a schedule must be a map"),
        ("a", [], "the definition of a schedule must be a map"),
        (
            "a",
            {**GOOD, "tz": "UTC"},
            "a schedule has no 'tz'; it has queue, cron, timezone, missed, data, options",
        ),
        ("a", {"cron": "* * * * *"}, "queue must be a text, not None"),
        ("a", {"queue": "jobs"}, "cron must be a text, not None"),
        ("a", {**GOOD, "queue": 7}, "queue must be a text, not 7"),
        ("a", {**GOOD, "queue": "none"}, 'there is no queue "none"'),
        ("a", {**GOOD, "cron": "61 * * * *"}, 'the cron expression "61 * * * *" has a bad minute'),
        (
            "a",
            {**GOOD, "timezone": "Mars"},
            'there is no time zone "Mars"; names are as "Europe/Berlin" or "UTC"',
        ),
        ("a", {**GOOD, "timezone": 1}, "timezone must be a text, not 1"),
        ("a", {**GOOD, "missed": "some"}, "missed must be one of latest, all, none, not 'some'"),
        ("a", {**GOOD, "options": 5}, "options must be a map"),
        (
            "a",
            {**GOOD, "options": {"utube": "x"}},
            "the queue \"jobs\" has no option 'utube'; it has delay, ",
        ),
        (
            "a",
            {**GOOD, "data": "x" * TASK_MAX},
            "data and options of a schedule have 16389 bytes; 16384 is the maximum",
        ),
    ],
)
def test_what_is_wrong_is_refused(world: World, name: Any, definition: Any, text: str) -> None:
    assert world.refused(world.calls.schedule, name, definition).startswith(text)
    assert world.as_server(world.calls.schedules) == []


def test_a_schedule_that_does_not_exist_cannot_be_removed(world: World) -> None:
    assert world.refused(world.calls.unschedule, "none") == 'there is no schedule "none"'
    world.schedule("* * * * *")
    assert world.refused(world.calls.unschedule, "none") == 'there is no schedule "none"'


def test_there_may_not_be_too_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iproto_server.server.schedules.schedule_calls.SCHEDULES_MAX", 2)
    for name in ("a", "b"):
        world.schedule("* * * * *", name)
    expected = "there are 2 schedules already, which is the maximum"
    assert world.refused(world.calls.schedule, "c", GOOD) == expected
    world.schedule("30 * * * *", "a")


def test_a_read_only_server_refuses_changes(world: World) -> None:
    world.schedule("* * * * *")
    world.box.set_read_only(True)
    assert "read-only" in world.refused(world.calls.schedule, "b", GOOD)
    assert "read-only" in world.refused(world.calls.unschedule, "nightly")
    assert len(world.as_server(world.calls.schedules)) == 1
