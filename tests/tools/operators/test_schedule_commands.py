"""The commands for schedules against a running server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.command_line import Outcome, run
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer

TUBES = "queue_lua_compat.tubes:app"
CRON = "30 2 1 1 *"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("tubes"), [TUBES]) as running:
        with IprotoClient.at(running.address) as client:
            assert client.call("queue.create_tube", "jobs", "fifottl").ok
        yield running


@pytest.fixture
def uri(server: RunningServer) -> Iterator[str]:
    """The address of a server without schedules."""
    yield server.address
    with IprotoClient.at(server.address) as client:
        for schedule in client.call("operator.schedules").data[0]:
            assert client.call("operator.unschedule", schedule["name"]).ok


def lines(outcome: Outcome) -> list[Any]:
    """Return the values of a successful command's lines of JSON."""
    assert outcome.status == 0, outcome
    return [json.loads(line) for line in outcome.output.splitlines()]


def test_a_schedule_is_created_listed_and_removed(uri: str) -> None:
    options = ("--timezone", "Europe/Berlin", "--missed", "all", "--options", '{"pri": 3}', "--json")
    [created] = lines(run("schedule", uri, "nightly", "jobs", CRON, '{"to": "ann"}', *options))
    assert (
        created.items()
        >= {
            "name": "nightly",
            "queue": "jobs",
            "cron": CRON,
            "timezone": "Europe/Berlin",
            "missed": "all",
            "data": {"to": "ann"},
            "options": {"pri": 3},
        }.items()
    )
    assert lines(run("schedules", "--json", uri)) == [created]
    assert lines(run("unschedule", "--json", uri, "nightly")) == [created]
    assert run("schedules", uri) == (0, "", ["there are no schedules"])


def test_for_people(uri: str) -> None:
    outcome = run("schedule", uri, "a\x1b", "jobs", CRON, "plain text")
    assert outcome.status == 0
    assert outcome.output.startswith('scheduled "a\\x1b", next due 20')
    assert outcome.output.endswith("-01-01T02:30:00Z\n")
    table = run("schedules", uri).output
    assert "next due" in table
    assert '"plain text"' in table
    assert CRON in table
    assert "\x1b" not in table
    assert run("unschedule", uri, "a\x1b").output == 'removed the schedule "a\\x1b"\n'


def test_without_data(uri: str) -> None:
    assert lines(run("schedule", "--json", uri, "nightly", "jobs", CRON))[0]["data"] is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nightly", "none", CRON), 'there is no queue "none"'),
        (("nightly", "jobs", "61 * * * *"), 'the cron expression "61 * * * *" has a bad minute'),
        (
            ("nightly", "jobs", CRON, "--timezone", "Mars"),
            'there is no time zone "Mars"; names are as "Europe/Berlin" or "UTC"',
        ),
    ],
)
def test_the_server_refuses(uri: str, arguments: tuple[str, ...], text: str) -> None:
    assert run("schedule", uri, *arguments) == (1, "", [text])


def test_there_is_no_such_schedule(uri: str) -> None:
    assert run("unschedule", uri, "none") == (1, "", ['there is no schedule "none"'])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--missed", "some"), 'unknown rule for missed times "some": choose latest, all or none'),
        (("--options", "{"), "this is no JSON"),
        (("--options", "[1]"), 'give an object such as {"pri": 1}'),
    ],
)
def test_a_wrong_command_line(uri: str, arguments: tuple[str, ...], text: str) -> None:
    outcome = run("schedule", uri, "nightly", "jobs", CRON, *arguments)
    assert outcome.status == 2
    assert text in " ".join(outcome.errors)


def test_a_server_that_puts_nothing_yet_has_none(start_server: StartServer) -> None:
    assert run("schedules", "--json", start_server([TUBES]).address) == (0, "", [])
