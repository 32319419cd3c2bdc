"""The procedures `operator.…` that repair queues, and the rights that they need."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartServer
from tests.differential.login import authenticate
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE, IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.operators.calling import OPERATORS, TUBES, Connect, called, refused
from tests.server.stream import Stream

LEGACY = "queue_lua_compat.legacy:app"


def logged(server: RunningServer, action: str) -> dict[str, Any]:
    """Return the line of the log about an action, without its time."""
    found = server.process.wait_for(rf'^\{{.*"action": "{action}".*\}}$')
    line: dict[str, Any] = json.loads(found[0])
    del line["time"]
    return line


class TestRepairs:
    def test_the_task_of_a_consumer_that_hangs_is_released(
        self, server: RunningServer, connect: Connect, client: IprotoClient
    ) -> None:
        task_id = client.call("queue.put", "x").data[0]["id"]
        hanging, other = connect(), connect()
        hanging.call("queue.take")
        sync = other.send(CALL, {FUNCTION_NAME: "queue.take", TUPLE: [60]})
        assert authenticate(client, "repairer").ok
        [released] = called(client, "release", "queue", [task_id])
        assert released["state"] == "ready"
        answer = other.receive()
        assert (answer.sync, answer.data[0]["id"]) == (sync, task_id)
        assert "taken by" in hanging.call("queue.ack", task_id).failure[1]
        line = logged(server, "release")
        assert re.fullmatch(r"127\.0\.0\.1:\d+", line.pop("peer"))
        assert line.pop("session") > 0
        assert line == {
            "level": "info",
            "logger": "iproto_server.operator",
            "event": "an operator's action",
            "action": "release",
            "queue": "queue",
            "count": 1,
            "ids": f"{task_id}",
            "user": "repairer",
        }

    def test_many_tasks_are_deleted_together_or_not_at_all(
        self, server: RunningServer, client: IprotoClient
    ) -> None:
        ids = [task["id"] for task in client.call("queue.put_many", list(range(30))).data[0]]
        assert refused(client, "delete", "queue", [*ids, 7]) == 'there is no task 7 in the queue "queue"'
        assert client.call("queue.stats").data[0]["total"] == 30
        assert len(called(client, "delete", "queue", [str(task_id) for task_id in ids])) == 30
        assert client.call("queue.stats").data[0]["total"] == 0
        line = logged(server, "delete")
        assert line["count"] == 30
        assert line["ids"] == ", ".join(map(str, ids[:20])) + ", …"
        assert server.process.output.count('"action": "delete"') == 1

    def test_a_repair_in_a_stream_is_logged_when_it_is_committed(
        self, server: RunningServer, client: IprotoClient
    ) -> None:
        task_id = client.call("queue.put", "x").data[0]["id"]
        undone = Stream(client, 1)
        undone.begin()
        assert undone.call("operator.delete", "queue", task_id).ok
        undone.roll_back()
        assert client.call("queue.stats").data[0]["total"] == 1
        stream = Stream(client, 2)
        stream.begin()
        assert stream.call("operator.delete", "queue", task_id).ok
        stream.commit()
        assert client.call("queue.stats").data[0]["total"] == 0
        assert logged(server, "delete")["count"] == 1
        assert server.process.output.count('"action": "delete"') == 1

    def test_a_task_is_put(self, client: IprotoClient) -> None:
        assert called(client, "put", "queue", {"to": "ann"}, {"delay": 60})["state"] == "delayed"
        assert "has no option 'pri'" in refused(client, "put", "queue", 1, {"pri": 1})
        assert refused(client, "put", "queue", 1, "x") == "options must be a map"

    @pytest.mark.parametrize("action", ["bury", "kick"])
    def test_an_action_that_the_dialect_lacks(self, client: IprotoClient, action: str) -> None:
        assert refused(client, action, "queue", 1) == (
            f'the queue "queue" has no {action}; its actions: '
            "configure, delete, drain, move, pause, put, release, resume"
        )

    @pytest.mark.parametrize(
        ("ids", "text"),
        [
            ([], "the number of ids must be 1 to 1000"),
            (list(range(1001)), "the number of ids must be 1 to 1000"),
            (None, "an id must be a number or a text, not None"),
            ([[1]], "an id must be a number or a text, not [1]"),
            (["x"], "ids of the queue \"queue\" are numbers, not 'x'"),
            ([1, 1.5], "an id must be an integer or a text, not 1.5"),
            ([float("nan")], "an id must be an integer or a text, not nan"),
            ([2], 'there is no task 2 in the queue "queue"'),
        ],
    )
    def test_wrong_ids(self, client: IprotoClient, ids: Any, text: str) -> None:
        assert refused(client, "release", "queue", ids) == text

    def test_buried_tasks_of_a_tube(self, start_server: StartServer) -> None:
        with IprotoClient.at(start_server([TUBES]).address) as client:
            for name in ("jobs", "failed"):
                assert client.call("queue.create_tube", name, "fifottl").ok
            for data in "abc":
                client.call("queue.tube.jobs:put", data, {"pri": 5})
            assert [task["state"] for task in called(client, "bury", "jobs", [0, 1, 2])] == ["buried"] * 3
            assert called(client, "kick", "jobs", 2) == 2
            [moved] = called(client, "move", "jobs", [2], "failed")
            assert (moved["data"], moved["details"]["pri"]) == ("c", 5)
            for count in (0, 10_001, "x", True):
                assert refused(client, "kick", "jobs", count) == "the number of tasks must be 1 to 10000"
            assert refused(client, "move", "jobs", [0], "jobs").endswith("target of its own tasks")
            assert refused(client, "move", "jobs", [0]) == "target must be the name of a queue"

    def test_tubes_of_the_older_queue(self, start_server: StartServer) -> None:
        with IprotoClient.at(start_server([LEGACY]).address) as client:
            task_id = client.call("queue.put", 0, "jobs", 0, 0, 0, 0, "x").data[0][0]
            client.call("queue.take", 0, "jobs", 0)
            [queue] = called(client, "queues")
            assert (queue["name"], queue["tasks"]["taken"]) == ("queue_0/jobs", 1)
            assert called(client, "bury", "queue_0/jobs", task_id)[0]["state"] == "buried"
            assert called(client, "release", "queue_0/jobs", [task_id])[0]["state"] == "ready"

    def test_a_snapshot_is_taken(self, server: RunningServer, client: IprotoClient) -> None:
        client.call("queue.put", "x")
        assert called(client, "snapshot") == "ok"
        assert called(client, "status")["snapshots"]["taken"] == 1
        assert logged(server, "snapshot")["user"] == "guest"


class TestPolicies:
    def test_a_queue_is_paused_drained_and_resumed(
        self, server: RunningServer, connect: Connect, client: IprotoClient
    ) -> None:
        client.call("queue.put", "x")
        other = connect()
        assert called(client, "pause", "queue")["state"] == "paused"
        assert other.call("queue.take").data == []
        assert called(client, "drain", "queue")["state"] == "draining"
        assert other.call("queue.take").data[0]["data"] == "x"
        assert "is draining" in other.call("queue.put", "y").failure[1]
        assert called(client, "resume", "queue")["state"] == "running"
        assert other.call("queue.put", "y").ok
        for action in ("pause", "drain", "resume"):
            line = logged(server, action)
            assert (line["queue"], line["user"]) == ("queue", "guest")

    def test_a_poison_becomes_a_dead_letter_and_is_put_back(
        self, server: RunningServer, connect: Connect, client: IprotoClient
    ) -> None:
        options = {"release_limit": 2, "release_limit_policy": "DLQ"}
        assert called(client, "configure", "queue", options)["settings"] == options
        assert logged(server, "configure")["options"] == str(options)
        task_id = client.call("queue.put", "poison").data[0]["id"]
        for _ in range(2):
            with IprotoClient.at(server.address) as consumer:
                assert consumer.call("queue.take", 5).data[0]["id"] == task_id
        waiting = connect()
        waiting.send(CALL, {FUNCTION_NAME: "queue.take", TUPLE: [60]})
        while not (dead := called(client, "queue", "queue_dlq")["tasks"]["ready"]):
            pass
        assert dead == 1
        [task] = called(client, "tasks", "queue_dlq")
        assert task["details"] == {"releases": 0, "timeouts": 0, "disconnects": 2}
        [requeued] = called(client, "requeue", "queue_dlq", [task_id])
        assert (requeued["id"], requeued["state"]) == (task_id, "ready")
        assert waiting.receive().data[0]["id"] == task_id
        assert logged(server, "requeue")["ids"] == str(task_id)

    def test_all_of_it_survives_a_kill(self, tmp_path: Path) -> None:
        arguments = ([QUEUE_APPLICATION, OPERATORS], ["--guest", "all"])
        server = RunningServer(tmp_path, *arguments)
        with IprotoClient.at(server.address) as client:
            called(client, "configure", "queue", {"release_limit": 1, "release_limit_policy": "DLQ"})
            dead = client.call("queue.put", "poison").data[0]["id"]
            client.call("queue.take")
            client.call("queue.release", dead)
            put = client.call("queue.put", "x", {"unique_key": "k", "unique_for": 3600}).data[0]["id"]
            client.call("queue.take")
            client.call("queue.ack", put)
            called(client, "pause", "queue")
        server.kill()
        with RunningServer(tmp_path, *arguments) as server, IprotoClient.at(server.address) as client:
            assert [task["id"] for task in called(client, "tasks", "queue_dlq")] == [dead]
            again = client.call("queue.put", "x", {"unique_key": "k", "unique_for": 3600}).data[0]
            assert (again["id"], again["status"]) == (put, "-")
            assert called(client, "queue", "queue")["state"] == "paused"

    @pytest.mark.parametrize("options", [None, {}, [], "x", 5])
    def test_wrong_options(self, client: IprotoClient, options: Any) -> None:
        assert refused(client, "configure", "queue", options) == "options must be a map"

    def test_a_user_who_may_only_call_uses_all_options_of_put(
        self, server: RunningServer, connect: Connect, client: IprotoClient
    ) -> None:
        worker = connect()
        assert authenticate(worker, "worker").ok
        options = {"unique_key": "k", "release_limit": 1, "release_limit_policy": "DLQ", "ttr": 60}
        put = worker.call("queue.put", "x", options).data[0]
        assert worker.call("queue.put", "x", options).data[0]["id"] == put["id"]
        worker.call("queue.take")
        assert worker.call("queue.release", put["id"]).data[0]["status"] == "-"
        assert [task["id"] for task in called(client, "tasks", "queue_dlq")] == [put["id"]]

    def test_puts_with_options_in_a_stream(self, client: IprotoClient, connect: Connect) -> None:
        options = {"unique_key": "k", "unique_for": 60, "release_limit": 3}
        stream = Stream(connect(), 1)
        stream.begin()
        assert (
            'a stream cannot create the space "_queue_' in stream.call("queue.put", "x", options).failure[1]
        )
        stream.roll_back()
        assert client.call("queue.put", "first", {"unique_key": "first", "release_limit": 1}).ok
        stream.begin()
        put = stream.call("queue.put", "x", options).data[0]["id"]
        assert stream.call("queue.put", "x", options).data[0]["id"] == put
        stream.roll_back()
        stream.begin()
        put = stream.call("queue.put", "x", options).data[0]["id"]
        stream.commit()
        assert client.call("queue.put", "x", options).data[0]["id"] == put
        assert client.call("queue.stats").data[0]["total"] == 2


class TestRights:
    def test_reading_needs_read(self, client: IprotoClient) -> None:
        assert authenticate(client, "caller").ok
        for name in ("status", "queues", "sessions"):
            assert client.call(f"operator.{name}").failure == (
                42,
                "Read access to universe '' is denied for user 'caller'",
            )

    def test_repairs_need_write(self, server: RunningServer, client: IprotoClient) -> None:
        task_id = client.call("queue.put", "x").data[0]["id"]
        assert authenticate(client, "reader").ok
        assert called(client, "task", "queue", task_id)["data"] == "x"
        assert called(client, "status")["connections"]["current"] == 1
        options = {"release_limit": 1}
        calls = (
            *(
                ("delete", "queue", task_id),
                ("put", "queue", 1),
                ("snapshot",),
                ("configure", "queue", options),
            ),
            *(("pause", "queue"), ("drain", "queue"), ("resume", "queue"), ("requeue", "queue", 1)),
        )
        for call in calls:
            assert refused(client, *call) == "Write access to universe '' is denied for user 'reader'"
        assert '"action"' not in server.process.output

    def test_who_may_repair(self, client: IprotoClient) -> None:
        task_id = client.call("queue.put", "x").data[0]["id"]
        assert authenticate(client, "repairer").ok
        assert called(client, "delete", "queue", task_id)[0]["data"] == "x"

    def test_a_single_procedure_may_be_granted(self, client: IprotoClient) -> None:
        task_id = client.call("queue.put", "x").data[0]["id"]
        client.call("queue.take")
        assert authenticate(client, "nurse").ok
        assert called(client, "tasks", "queue")[0]["id"] == task_id
        assert called(client, "release", "queue", task_id)[0]["state"] == "ready"
        assert refused(client, "delete", "queue", task_id) == (
            "Execute access to function 'operator.delete' is denied for user 'nurse'"
        )

    def test_others_may_call_nothing(self, client: IprotoClient) -> None:
        assert authenticate(client, "stranger").ok
        assert refused(client, "status").startswith("Execute access to function 'operator.status' is denied")

    def test_a_read_only_server_can_be_looked_at_only(self, client: IprotoClient) -> None:
        task_id = client.call("queue.put", "x").data[0]["id"]
        assert client.call("box.cfg", {"read_only": True}).ok
        assert called(client, "task", "queue", task_id)["state"] == "ready"
        assert "read-only" in refused(client, "delete", "queue", task_id)
        assert client.call("box.cfg", {"read_only": False}).ok


def test_there_are_no_others(client: IprotoClient) -> None:
    assert client.call("operator.stop").failure == (33, "Procedure 'operator.stop' is not defined")


def test_a_text_of_a_client_makes_no_line_of_the_log(server: RunningServer, client: IprotoClient) -> None:
    assert "no queue" in refused(client, "delete", f"x{os.linesep}y", [1])
    assert '"action"' not in server.process.output
