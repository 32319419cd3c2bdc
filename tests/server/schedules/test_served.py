"""Schedules of a running server: rights, the log, reloads, restarts, and kills around due times."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conftest import StartServer
from tests.differential.login import authenticate
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.schedules.clock_application import OFFSET
from tests.server.stream import CONFLICT, Stream

OPERATORS = "tests.server.operators.application:app"
CLOCK = "tests.server.schedules.clock_application:app"
TUBES = "queue_lua_compat.tubes:app"
LEGACY = "queue_lua_compat.legacy:app"
EACH_MINUTE: Final = "* * * * *"
FAR: Final = "0 0 1 1 *"
DEADLINE: Final = 30.0
KILLS: Final = 6


def schedule(client: IprotoClient, name: str = "nightly", **more: object) -> dict[str, Any]:
    """Create a schedule."""
    definition = {"queue": "queue", "cron": FAR, "data": "x", **more}
    [record] = client.call("operator.schedule", name, definition).data
    found: dict[str, Any] = record
    return found


def shown(client: IprotoClient, name: str = "nightly") -> dict[str, Any]:
    """Return a schedule."""
    [records] = client.call("operator.schedules").data
    [found] = [each for each in records if each["name"] == name]
    record: dict[str, Any] = found
    return record


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is true."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it has not come true"
        time.sleep(0.01)


def logged(server: RunningServer, action: str) -> dict[str, Any]:
    """Return the line of the log about an action, without its time."""
    found = server.process.wait_for(rf'^\{{.*"action": "{action}".*\}}$')
    line: dict[str, Any] = json.loads(found[0])
    return line


class TestRights:
    @pytest.fixture
    def server(self, start_server: StartServer) -> RunningServer:
        return start_server([QUEUE_APPLICATION, OPERATORS], ["--log-format", "json", "--guest", "all"])

    def test_a_reader_may_list(self, server: RunningServer) -> None:
        with IprotoClient.at(server.address) as client:
            schedule(client)
            assert authenticate(client, "reader").ok
            assert shown(client)["cron"] == FAR
            for call in (("schedule", "x", {"queue": "queue", "cron": FAR}), ("unschedule", "nightly")):
                text = client.call(f"operator.{call[0]}", *call[1:]).failure[1]
                assert text == "Write access to universe '' is denied for user 'reader'"

    def test_a_caller_may_nothing(self, server: RunningServer) -> None:
        with IprotoClient.at(server.address) as client:
            assert authenticate(client, "caller").ok
            text = client.call("operator.schedules").failure[1]
            assert text == "Read access to universe '' is denied for user 'caller'"

    def test_a_repairer_may_change_them_and_the_log_says_so(self, server: RunningServer) -> None:
        with IprotoClient.at(server.address) as client:
            assert authenticate(client, "repairer").ok
            schedule(client)
            assert client.call("operator.unschedule", "nightly").ok
            assert client.call("box.space._queue_schedules:len").data == [0]
        line = logged(server, "schedule")
        assert (line["user"], line["schedule"], line["queue"]) == ("repairer", "nightly", "queue")
        assert (line["cron"], line["timezone"], line["missed"]) == (FAR, "UTC", "latest")
        assert line["peer"].startswith("127.0.0.1:")
        line = logged(server, "unschedule")
        assert (line["user"], line["schedule"]) == ("repairer", "nightly")


def test_schedules_survive_a_reload(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION, CLOCK])
    with IprotoClient.at(server.address) as client:
        schedule(client, cron=EACH_MINUTE)
        assert client.call("package.reload").data == [2]
        client.call("clock.step", 60)
        wait_for(lambda: client.call("queue.stats").data[0]["ready"] == 1)
        assert shown(client)["last_error"] is None


def test_a_read_only_server_puts_nothing_until_it_may(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION, CLOCK])
    with IprotoClient.at(server.address) as client:
        schedule(client, cron=EACH_MINUTE, missed="all")
        assert client.call("box.cfg", {"read_only": True}).ok
        client.call("clock.step", 180)
        schedule_before = shown(client)
        assert client.call("box.cfg", {"read_only": False}).ok
        wait_for(lambda: client.call("queue.stats").data[0]["ready"] == 3)
        assert schedule_before["last_due"] is None


def test_a_change_in_a_stream_counts_when_it_is_committed(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION, CLOCK])
    with IprotoClient.at(server.address) as client:
        schedule(client)
        stream = Stream(client)
        assert stream.begin().ok
        changed = {"queue": "queue", "cron": EACH_MINUTE, "data": "y"}
        assert stream.call("operator.schedule", "nightly", changed).ok
        client.call("clock.step", 60)
        assert shown(client)["cron"] == FAR
        assert stream.commit().ok
        wait_for(lambda: client.call("queue.stats").data[0]["ready"] == 1)


def test_a_change_in_a_stream_gives_way_to_a_put(start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION, CLOCK])
    with IprotoClient.at(server.address) as client:
        schedule(client, cron=EACH_MINUTE)
        stream = Stream(client)
        assert stream.begin().ok
        assert stream.call("operator.unschedule", "nightly").ok
        client.call("clock.step", 60)
        wait_for(lambda: client.call("queue.stats").data[0]["ready"] == 1)
        assert stream.commit().failure == CONFLICT
        assert shown(client)["last_error"] is None


def test_due_times_of_a_stopped_server_are_made_up_for(start_server: StartServer, tmp_path: Path) -> None:
    first = start_server([QUEUE_APPLICATION, CLOCK], work_dir=tmp_path)
    with IprotoClient.at(first.address) as client:
        schedule(client, cron=EACH_MINUTE, missed="all")
        schedule(client, "latest", cron=EACH_MINUTE, data="y")
    first.stop()
    second = start_server([QUEUE_APPLICATION, CLOCK], work_dir=tmp_path, environment={OFFSET: "300"})
    with IprotoClient.at(second.address) as client:
        assert client.call("queue.stats").data[0]["ready"] == 5 + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("application", "queue"), [(QUEUE_APPLICATION, "queue"), (TUBES, "jobs"), (LEGACY, "queue_0/jobs")]
)
def test_kills_around_due_times_lose_and_repeat_nothing(application: str, queue: str, tmp_path: Path) -> None:
    """The clock is stepped over due times, and the server killed at any moment before or after the put.

    Each other start finds the clock behind.
    """
    chance = random.Random(23)
    offset, first_due = 0, 0
    server: RunningServer | None = None
    try:
        for life in range(KILLS + 1):
            environment = {OFFSET: str(offset - 240 if life % 2 else offset)}
            server = RunningServer(tmp_path, [application, CLOCK], environment=environment)
            with IprotoClient.at(server.address) as client:
                if life == 0:
                    if application == TUBES:
                        assert client.call("queue.create_tube", "jobs", "fifo").ok
                    elif application == LEGACY:
                        assert client.call("queue.take", 0, "jobs", 0.001).ok
                    record = schedule(client, queue=queue, cron=EACH_MINUTE, missed="all")
                    first_due = record["next_due"]
                [offset] = client.call("clock.step", 60 * chance.randint(4, 12)).data
                if life < KILLS:
                    time.sleep(chance.random() * 0.2)  # the moment of the kill, not a wait
                    server.kill()
                else:
                    now = time.time() + offset
                    wait_for(lambda: shown(client)["next_due"] > now)  # noqa: B023
                    last_due = shown(client)["last_due"]
                    [figures] = client.call("operator.queue", queue).data
                    assert sum(figures["tasks"].values()) == (last_due - first_due) // 60 + 1
                    assert last_due > first_due
        assert server is not None
        server.stop()
    finally:
        if server is not None and server.process.running:
            server.kill()
