"""The procedures `operator.…` that show the server, its queues, tasks and sessions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from iproto_server.program_version import PROGRAM_VERSION
from queue_lua_compat.policies.options import TASK_OPTIONS
from tests.conftest import StartServer
from tests.differential.login import authenticate
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE, IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.operators.calling import OPERATORS, TUBES, Connect, called, refused

BROKEN = "tests.server.operators.application:broken"


class TestStatus:
    def test_it_describes_the_server(self, server: RunningServer, client: IprotoClient) -> None:
        client.call("queue.put", "x")
        status = called(client, "status")
        assert (status["version"], status["pid"]) == (PROGRAM_VERSION, server.process.pid)
        assert status["listen"] == [server.address]
        assert (status["read_only"], status["generation"]) == (False, 1)
        assert status["connections"] == {"current": 1, "total": 1}
        assert status["requests"]["total"] == 2
        assert status["wal"]["failures"] == 0
        assert status["snapshots"]["is_running"] is False
        assert status["memory"]["process"] > 1_000_000
        assert status["loop"]["latency"] >= 0
        lsn = status["lsn"]
        client.call("queue.put", "y")
        assert called(client, "status")["lsn"] == lsn + 1

    def test_it_says_that_the_server_is_read_only(self, client: IprotoClient) -> None:
        assert client.call("box.cfg", {"read_only": True}).ok
        assert called(client, "status")["read_only"] is True
        assert client.call("box.cfg", {"read_only": False}).ok


class TestQueues:
    def test_all_figures_of_a_queue(self, client: IprotoClient) -> None:
        client.call("queue.put", "x")
        client.call("queue.take")
        [queue] = called(client, "queues")
        assert queue.pop("waits")["count"] == 1
        assert queue.pop("services")["count"] == 0
        assert queue == {
            "name": "queue",
            "dialect": "tutorial",
            "kind": "tutorial",
            "actions": ["configure", "delete", "drain", "move", "pause", "put", "release", "resume"],
            "options": sorted({"delay", "ttr", *TASK_OPTIONS}),
            "state": "running",
            "settings": {},
            "suspicious": [],
            "dead_letters_of": None,
            "tasks": {"ready": 0, "taken": 1, "delayed": 0},
            "calls": {"put": 1, "take": 1, "ack": 0, "release": 0},
            "oldest_ready": None,
            "waiting": 0,
        }

    def test_pages_of_queues(self, start_server: StartServer) -> None:
        with IprotoClient.at(start_server([TUBES]).address) as client:
            for name in ("b", "a", "c"):
                assert client.call("queue.create_tube", name, "fifo").ok
            assert [queue["name"] for queue in called(client, "queues", {"limit": 2})] == ["a", "b"]
            assert [queue["name"] for queue in called(client, "queues", {"after": "b"})] == ["c"]

    def test_an_application_that_fails_hides_no_others(self, start_server: StartServer) -> None:
        server = start_server([BROKEN, QUEUE_APPLICATION])
        with IprotoClient.at(server.address) as client:
            for _ in range(2):
                assert [queue["name"] for queue in called(client, "queues")] == ["queue"]
        assert server.process.output.count("the queues of broken failed") == 1

    def test_without_queues_there_are_none(self, start_server: StartServer) -> None:
        with IprotoClient.at(start_server([OPERATORS], ["--guest", "all"]).address) as client:
            assert called(client, "queues") == []
            assert refused(client, "tasks", "queue") == 'there is no queue "queue"'


class TestTasks:
    def test_tasks_of_a_state_page_by_page(self, client: IprotoClient) -> None:
        client.call("queue.put_many", ["a", "b", "c"])
        client.call("queue.take")
        first = called(client, "tasks", "queue", {"state": "ready", "limit": 1})
        second = called(client, "tasks", "queue", {"state": "ready", "limit": 9, "after": first[0]["id"]})
        assert [task["data"] for task in (*first, *second)] == ["b", "c"]
        [taken] = called(client, "tasks", "queue", {"state": "taken", "older": 0})
        assert taken["session"] == client.call("box.session.id").data[0]
        assert taken == called(client, "task", "queue", taken["id"])
        assert client.call("operator.task", "queue", 5).data == []
        assert called(client, "tasks", "queue", []) == [taken, *first, *second]

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ((), "queue must be the name of a queue"),
            ((7,), "queue must be the name of a queue"),
            (("none",), 'there is no queue "none"'),
            (("queue", "x"), "options must be a map"),
            (("queue", {"x": 1}), "there is no option 'x'; the options are state, limit, after, older"),
            (("queue", {"state": "gone"}), "state must be one of ready, taken, delayed, buried, done"),
            (("queue", {"state": {}}), "state must be one of ready"),
            (("queue", {"limit": 0}), "limit must be 1 to 1000"),
            (("queue", {"limit": 1001}), "limit must be 1 to 1000"),
            (("queue", {"limit": "x"}), "limit must be 1 to 1000"),
            (("queue", {"older": "x"}), "older must be a number of seconds"),
            (("queue", {"after": []}), "an id must be a number or a text"),
            (("queue", {}, 3), "operator.tasks: too many positional arguments"),
        ],
    )
    def test_wrong_arguments(self, client: IprotoClient, arguments: tuple[Any, ...], text: str) -> None:
        assert refused(client, "tasks", *arguments).startswith(text)


class TestSessions:
    def test_who_holds_which_task(self, connect: Connect, client: IprotoClient) -> None:
        consumer = connect()
        assert authenticate(consumer, "caller").ok
        with_id = consumer.call("box.session.id").data[0]
        client.call("queue.put_many", ["a", "b"])
        assert authenticate(client, "repairer").ok
        client.call("queue.take_many", 2)
        waiting = connect()
        waiting.send(CALL, {FUNCTION_NAME: "queue.take", TUPLE: [60]})
        sessions = {session["id"]: session for session in called(client, "sessions", {"limit": 1})}
        own = sessions[client.call("box.session.id").data[0]]
        assert (own["user"], own["taken"], len(own["tasks"])) == ("repairer", 2, 1)
        assert own["tasks"][0]["queue"] == "queue"
        assert own["oldest_taken_at"] == own["tasks"][0]["taken_at"] >= own["since"]
        assert own["tasks"][0]["touched_at"] is None
        client.call("queue.touch", own["tasks"][0]["id"])
        [touched] = [each for each in called(client, "sessions") if each["id"] == own["id"]]
        assert (
            touched["tasks"][0]["taken_at"] == own["tasks"][0]["taken_at"] < touched["tasks"][0]["touched_at"]
        )
        assert called(client, "task", "queue", own["tasks"][0]["id"])["touched_at"] is not None
        assert re.fullmatch(r"127\.0\.0\.1:\d+", own["peer"])
        assert (sessions[with_id]["user"], sessions[with_id]["taken"]) == ("caller", 0)

    def test_a_session_that_outlives_its_connection(self, start_server: StartServer) -> None:
        server = start_server([TUBES])
        with IprotoClient.at(server.address) as client:
            assert client.call("queue.cfg", {"ttr": 60}).ok
            assert client.call("queue.create_tube", "jobs", "fifo").ok
            with IprotoClient.at(server.address) as consumer:
                consumer.call("queue.tube.jobs:put", "x")
                consumer.call("queue.tube.jobs:take")
                gone = consumer.call("box.session.id").data[0]
            held: list[Any] = []
            while not held:  # the server notices the end of a connection a moment later
                held = [session for session in called(client, "sessions") if session["peer"] is None]
            [session] = held
            assert (session["id"], session["user"], session["taken"]) == (gone, None, 1)
