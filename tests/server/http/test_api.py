"""The dashboard's API: queues, tasks, repairs, and input that is refused."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from tests.conftest import StartServer
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE, IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.http.api_client import ApiClient, logged_in, of_queue
from tests.server.http.dashboard_application import PASSWORD
from tests.server.http.http_client import HTTP, http_port, request

TUBES = "queue_lua_compat.tubes:app"
LEGACY = "queue_lua_compat.legacy:app"
USERS = "tests.server.http.dashboard_application:app"


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    return [TUBES, USERS]


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    return [*HTTP, "--log-format", "json"]


@pytest.fixture(scope="module")
def port(server: RunningServer) -> int:
    return http_port(server)


@pytest.fixture(scope="module")
def api(port: int) -> ApiClient:
    return logged_in(port, "operator")


@pytest.fixture(scope="module")
def viewer(port: int) -> ApiClient:
    return logged_in(port, "viewer")


@pytest.fixture
def tube(server: RunningServer, tubes: Iterator[int]) -> str:
    """A new tube with a name that has to be encoded."""
    name = f"a/b c?ж%{next(tubes)}"
    with IprotoClient.at(server.address) as client:
        assert client.call("queue.create_tube", name, "fifottl").ok
    return name


@pytest.fixture(scope="module")
def tubes() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def ids(api: ApiClient, tube: str) -> list[str]:
    """Five tasks."""
    return [api.post(of_queue(tube, "/put"), data={"number": number})["id"] for number in range(5)]


def logged(server: RunningServer, action: str) -> dict[str, Any]:
    found = server.process.wait_for(rf'^\{{.*"action": "{action}".*\}}$')
    line: dict[str, Any] = json.loads(found[0])
    return line


class TestReading:
    def test_status(self, api: ApiClient, server: RunningServer) -> None:
        status = api.get("status")
        assert status["pid"] == server.process.pid
        assert status["wal"]["failures"] == 0

    def test_who_is_logged_in(self, api: ApiClient, viewer: ApiClient) -> None:
        operator = api.get("session")
        assert operator["user"] == "operator"
        assert {"queues", "kick", "snapshot"} <= set(operator["may"])
        assert viewer.get("session") == {
            "user": "viewer",
            "instance": operator["instance"],
            "may": ["queue", "queues", "schedules", "sessions", "status", "task", "tasks"],
        }

    @pytest.mark.usefixtures("ids")
    def test_queues(self, api: ApiClient, tube: str) -> None:
        [queue] = [each for each in api.get("queues")["queues"] if each["name"] == tube]
        assert queue.pop("oldest_ready") > 0
        assert queue.items() <= api.get(of_queue(tube)).items()
        assert queue["kind"] == "fifottl"
        assert queue["tasks"]["ready"] == 5
        assert len(api.get("queues?limit=1&after=")["queues"]) == 1
        assert api.get("queues?after=zzz")["queues"] == []

    def test_pages_of_tasks(self, api: ApiClient, tube: str, ids: list[str]) -> None:
        first = api.get(of_queue(tube, "/tasks?state=ready&limit=3"))
        assert [task["id"] for task in first["tasks"]] == ids[:3]
        assert first["tasks"][0]["data"] == {"number": 0}
        second = api.get(of_queue(tube, f"/tasks?state=ready&limit=3&after={first['next']}"))
        assert [task["id"] for task in second["tasks"]] == ids[3:]
        assert second["next"] is None
        assert api.get(of_queue(tube, "/tasks?state=buried")) == {"tasks": [], "next": None}

    def test_a_task(self, api: ApiClient, tube: str, ids: list[str]) -> None:
        task = api.get(of_queue(tube, f"/tasks/{ids[1]}"))
        assert (task["id"], task["state"], task["data"]) == (ids[1], "ready", {"number": 1})
        status, text = api.refused(of_queue(tube, "/tasks/4711"), method="GET")
        assert (status, text) == (404, f'there is no task 4711 in the queue "{tube}"')

    def test_sessions(self, server: RunningServer, api: ApiClient, tube: str, ids: list[str]) -> None:
        with IprotoClient.at(server.address) as client:
            assert client.call(f"queue.tube.{tube}:take").ok
            sessions = api.get("sessions")["sessions"]
        [holder] = [each for each in sessions if each["taken"]]
        assert holder["tasks"][0]["id"] == ids[0]
        assert {each["type"] for each in sessions} == {"binary", "http"}

    def test_history(self, api: ApiClient, tube: str) -> None:
        found = api.get("history")
        assert found["interval"] == 10
        assert len(found["times"]) >= 1
        assert all(len(column) == len(found["times"]) for column in found["series"].values())
        assert {"ready", "put_rate", "connections", "loop_latency"} <= set(found["series"])
        found = api.get(f"history?queue={quote_plus(tube)}")
        assert "service_p95" in found["series"]
        assert api.refused("history?queue=nosuch", method="GET")[0] == 404

    def test_the_description_names_each_path(self, api: ApiClient) -> None:
        described = api.get("openapi.json")
        assert described["openapi"] == "3.1.0"
        for path, methods in described["paths"].items():
            for method in methods:
                place = path.removeprefix("/api/").replace("{name}", "nosuch").replace("{id}", "1")
                answer = request(api.port, f"/api/{place}", method.upper())
                assert answer.status in (200, 401, 415), (path, answer)

    def test_values_that_json_lacks(self, server: RunningServer, api: ApiClient, tube: str) -> None:
        data = {"big": 2**60, 5: [1.5, float("inf")], "bytes": b"\xff", "text": "ж"}
        with IprotoClient.at(server.address) as client:
            number = client.call(f"queue.tube.{tube}:put", data).data[0][0]
        task = api.get(of_queue(tube, f"/tasks/{number}"))
        shown = {"big": str(2**60), "5": [1.5, "inf"], "bytes": "\udcff", "text": "ж"}
        assert task["data"] == shown


class TestRepairs:
    def test_bury_and_kick(self, server: RunningServer, api: ApiClient, tube: str, ids: list[str]) -> None:
        buried = api.post(of_queue(tube, "/bury"), ids=ids[:3])["tasks"]
        assert [(task["id"], task["state"]) for task in buried] == [(each, "buried") for each in ids[:3]]
        line = logged(server, "bury")
        assert (line["user"], line["queue"], line["ids"]) == ("operator", tube, "0, 1, 2")
        assert re.fullmatch(r"127\.0\.0\.1:\d+", line["peer"])
        assert api.post(of_queue(tube, "/kick"), count=2) == {"kicked": 2}
        assert api.get(of_queue(tube))["tasks"]["buried"] == 1

    def test_release_and_delete(self, server: RunningServer, api: ApiClient, tube: str) -> None:
        number = api.post(of_queue(tube, "/put"), data="x", options={"delay": 60})["id"]
        assert api.get(of_queue(tube, f"/tasks/{number}"))["state"] == "delayed"
        assert api.post(of_queue(tube, "/release"), ids=[number])["tasks"][0]["state"] == "ready"
        assert api.post(of_queue(tube, "/delete"), ids=[int(number)])["tasks"][0]["id"] == number
        assert api.refused(of_queue(tube, f"/tasks/{number}"), method="GET")[0] == 404

    def test_all_tasks_or_none(self, api: ApiClient, tube: str, ids: list[str]) -> None:
        status, text = api.refused(of_queue(tube, "/delete"), {"ids": [ids[0], "4711"]})
        assert status == 400
        assert "there is no task" in text
        assert api.get(of_queue(tube))["tasks"]["ready"] == 5

    def test_a_task_that_is_put_reaches_a_waiting_consumer(
        self, server: RunningServer, api: ApiClient, tube: str
    ) -> None:
        with IprotoClient.at(server.address) as client:
            client.send(CALL, {FUNCTION_NAME: f"queue.tube.{tube}:take", TUPLE: [30]})
            while api.get(of_queue(tube))["waiting"] == 0:
                pass
            number = api.post(of_queue(tube, "/put"), data=[1, 2])["id"]
            taken = client.receive().data[0]
        assert (taken[0], taken[2]) == (int(number), [1, 2])

    def test_a_queue_is_paused_drained_and_resumed(self, api: ApiClient, tube: str) -> None:
        for action, state in (("pause", "paused"), ("drain", "draining"), ("resume", "running")):
            assert api.post(of_queue(tube, f"/{action}"))["state"] == state
            assert api.get(of_queue(tube))["state"] == state

    def test_lost_connections_get_a_pause(self, api: ApiClient, tube: str) -> None:
        options = {"disconnect_retry": {"delay": 5}}
        assert api.post(of_queue(tube, "/configure"), options=options)["settings"] == options
        assert api.get(of_queue(tube))["suspicious"] == []
        assert api.post(of_queue(tube, "/configure"), options={"disconnect_retry": None})["settings"] == {}

    def test_a_dead_letter_is_put_back(self, server: RunningServer, api: ApiClient, tube: str) -> None:
        options = {"release_limit": 1, "release_limit_policy": "DLQ"}
        assert api.post(of_queue(tube, "/configure"), options=options)["settings"] == options
        number = api.post(of_queue(tube, "/put"), data="poison")["id"]
        with IprotoClient.at(server.address) as client:
            assert client.call(f"queue.tube.{tube}:take", 0).data[0][0] == int(number)
            assert client.call(f"queue.tube.{tube}:release", int(number)).ok
        assert api.get(of_queue(f"{tube}_dlq"))["dead_letters_of"] == tube
        [requeued] = api.post(of_queue(f"{tube}_dlq", "/requeue"), ids=[number])["tasks"]
        assert (requeued["id"], requeued["state"]) == (number, "ready")

    def test_wrong_options(self, api: ApiClient, tube: str) -> None:
        for body, error in (
            ({}, "options must be a map"),
            ({"options": {"release_limit": "x"}}, "release_limit must be a whole number, not 'x'"),
            ({"options": {"ttr": 5}}, f'the queue "{tube}" has no option "ttr"'),
        ):
            status, text = api.refused(of_queue(tube, "/configure"), body)
            assert status == 400
            assert text.startswith(error)

    def test_a_snapshot(self, api: ApiClient) -> None:
        before = api.get("status")["snapshots"]["taken"]
        assert api.post("snapshot") == {}
        assert api.get("status")["snapshots"]["taken"] == before + 1

    def test_changes_survive_a_kill(self, tmp_path: Path) -> None:
        server = RunningServer(tmp_path, [QUEUE_APPLICATION, USERS], HTTP)
        api = ApiClient(http_port(server))
        assert api.log_in("operator", PASSWORD).status == 200
        number = api.post("queues/queue/put", data="x")["id"]
        server.kill()
        with (
            RunningServer(tmp_path, [QUEUE_APPLICATION, USERS]) as again,
            IprotoClient.at(again.address) as client,
        ):
            assert str(client.call("operator.task", "queue", number).data[0]["id"]) == number

    @pytest.mark.parametrize("action", ["bury", "kick"])
    def test_an_action_that_the_queue_lacks(self, start_server: StartServer, action: str) -> None:
        api = ApiClient(http_port(start_server([QUEUE_APPLICATION, USERS], HTTP)))
        assert api.log_in("operator", PASSWORD).status == 200
        status, text = api.refused(f"queues/queue/{action}", {"ids": ["1"]} if action == "bury" else {})
        assert (status, text) == (
            400,
            f'the queue "queue" has no {action}; its actions: '
            "configure, delete, drain, move, pause, put, release, resume",
        )

    def test_the_queues_of_the_legacy_dialect(self, start_server: StartServer) -> None:
        server = start_server([LEGACY, USERS], [*HTTP, "--guest", "all"])
        api = ApiClient(http_port(server))
        assert api.log_in("operator", PASSWORD).status == 200
        with IprotoClient.at(server.address) as client:
            assert client.call("box.schema.create_space", "legacy").ok
        assert api.get("queues") == {"queues": []}


class TestRights:
    @pytest.mark.parametrize(
        "action",
        ["kick", "delete", "bury", "release", "put", "requeue", "pause", "drain", "resume", "configure"],
    )
    def test_those_who_may_read_change_nothing(
        self, viewer: ApiClient, tube: str, ids: list[str], action: str
    ) -> None:
        bodies: dict[str, dict[str, object]] = {
            **{"put": {"data": 1}, "configure": {"options": {"release_limit": 1}}},
            **{name: {} for name in ("kick", "pause", "drain", "resume")},
        }
        body = bodies.get(action, {"ids": ids[:1]})
        status, text = viewer.refused(of_queue(tube, f"/{action}"), body)
        assert (status, text) == (403, "Write access to universe '' is denied for user 'viewer'")
        assert viewer.get(of_queue(tube))["tasks"]["ready"] == 5

    def test_they_take_no_snapshot(self, viewer: ApiClient) -> None:
        assert viewer.refused("snapshot")[0] == 403

    def test_users_without_rights_see_nothing(self, port: int) -> None:
        nobody = ApiClient(port)
        assert nobody.log_in("nobody", PASSWORD).status == 200
        assert nobody.get("session")["may"] == []
        for path in ("status", "sessions", "queues", "queues/nosuch", "history", "queues/x/tasks"):
            assert nobody.refused(path, method="GET")[0] == 403

    @pytest.mark.parametrize(
        "path", ["status", "sessions", "queues", "queues/x", "queues/x/tasks", "queues/x/tasks/1", "history"]
    )
    def test_nothing_without_a_login(self, port: int, path: str) -> None:
        assert ApiClient(port).refused(path, method="GET") == (401, "log in first")

    @pytest.mark.parametrize("path", ["snapshot", "queues/x/kick", "queues/x/put", "queues/x/delete"])
    def test_no_change_without_a_login(self, port: int, path: str) -> None:
        assert ApiClient(port).refused(path) == (401, "log in first")


class TestWrongInput:
    @pytest.mark.parametrize(
        ("path", "status", "text"),
        [
            ("nosuch", 404, "no such path"),
            ("queues/x/y", 404, "no such path"),
            ("queues/x/tasks/1/2", 404, "no such path"),
            ("", 404, "no such path"),
            ("queues/nosuch", 404, 'there is no queue "nosuch"'),
            ("queues//tasks", 404, 'there is no queue ""'),
            ("queues/%ff/tasks", 404, "there is no queue"),
            ("queues/nosuch/tasks", 404, 'there is no queue "nosuch"'),
            ("queues/nosuch/tasks/1", 404, 'there is no queue "nosuch"'),
            ("queues?limit=0", 400, "limit must be 1 to 1000"),
            ("queues?limit=1001", 400, "limit must be 1 to 1000"),
            ("queues?limit=x", 400, "limit must be an integer"),
            ("queues?limit=1&limit=2", 400, "a parameter occurs twice"),
            ("queues?lim=1", 400, 'there is no parameter "lim"'),
            ("status?x=1", 400, 'there is no parameter "x"'),
            ("queues?" + "&".join(f"a{n}=1" for n in range(30)), 400, "cannot be read"),
            ("snapshot", 405, "this takes POST"),
            ("login", 405, "this takes POST"),
        ],
    )
    def test_of_a_get(self, api: ApiClient, path: str, status: int, text: str) -> None:
        found, error = api.refused(path, method="GET")
        assert (found, text in error) == (status, True), error

    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ("state=lost", "state must be one of ready, taken, delayed, buried, done, not 'lost'"),
            ("older=soon", "older must be a number"),
            ("after=x", "numbers"),
        ],
    )
    def test_of_a_list_of_tasks(self, api: ApiClient, tube: str, query: str, text: str) -> None:
        status, error = api.refused(of_queue(tube, f"/tasks?{query}"), method="GET")
        assert (status, text in error) == (400, True), error

    @pytest.mark.parametrize(
        ("action", "body", "text"),
        [
            ("delete", {}, "ids must be a list of ids"),
            ("delete", {"ids": "1"}, "ids must be a list of ids"),
            ("delete", {"ids": []}, "the number of ids must be 1 to 1000"),
            ("delete", {"ids": ["1"] * 1001}, "the number of ids must be 1 to 1000"),
            ("delete", {"ids": [None]}, "an id must be a number or a text"),
            ("delete", {"ids": [True]}, "an id must be a number or a text"),
            ("delete", {"ids": ["x"]}, "numbers"),
            ("delete", {"ids": ["1"], "force": True}, 'there is no field "force"; the fields are: ids'),
            ("kick", {"count": 0}, "the number of tasks must be 1 to 10000"),
            ("kick", {"count": "1"}, "the number of tasks must be 1 to 10000"),
            ("kick", {"count": 1e400}, "no number of JSON"),
            ("put", {}, "data is missing"),
            ("put", {"data": 1, "options": 5}, "options must be a map"),
            ("put", {"data": 1, "options": {"nosuch": 1}}, "nosuch"),
            ("put", {"data": 2**70}, "does not fit 64 bits"),
            ("put", [], "the body must be a JSON object"),
            ("put", "x", "the body must be a JSON object"),
        ],
    )
    def test_of_a_repair(self, api: ApiClient, tube: str, action: str, body: object, text: str) -> None:
        status, error = api.refused(of_queue(tube, f"/{action}"), body)
        assert (status, text in error) == (400, True), error

    @pytest.mark.parametrize(
        ("raw", "status", "text"),
        [
            (b"", 400, "the body is no JSON"),
            (b"{", 400, "the body is no JSON"),
            (b'{"data": NaN}', 400, "NaN is no number of JSON"),
            (b'{"data": 1, "data": 2}', 400, "a name occurs twice"),
            (b'{"data": "\xff"}', 400, "the body is no JSON"),
            (b"[" * 100_000, 400, "the body is no JSON"),
            (b'{"data": "' + b"x" * 1024 * 1024 + b'"}', 413, "larger than 1048576 bytes"),
        ],
        ids=["empty", "torn", "nan", "twice", "bytes", "deep", "large"],
    )
    def test_of_a_body(self, api: ApiClient, tube: str, raw: bytes, status: int, text: str) -> None:
        answer = api.send("POST", of_queue(tube, "/put"), raw=raw)
        assert answer.status == status
        assert text in json.loads(answer.text)["error"]

    @pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
    def test_of_a_content_type(self, api: ApiClient, tube: str, kind: str) -> None:
        answer = api.send("POST", of_queue(tube, "/put"), {"data": 1}, {"Content-Type": kind})
        assert answer.status == 415

    def test_none_of_it_is_an_error_of_the_server(self, server: RunningServer) -> None:
        assert '"level": "error"' not in server.process.output
