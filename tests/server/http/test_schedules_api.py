"""The dashboard's API: schedules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer
from tests.server.http.api_client import ApiClient, logged_in
from tests.server.http.http_client import HTTP, http_port, request

TUBES = "queue_lua_compat.tubes:app"
USERS = "tests.server.http.dashboard_application:app"
CRON = "30 2 1 1 *"
PATH = "schedules/nightly%2Freport"
NAME = "nightly/report"


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    return [TUBES, USERS]


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    return [*HTTP, "--log-format", "json"]


@pytest.fixture(scope="module")
def port(server: RunningServer) -> int:
    with IprotoClient.at(server.address) as client:
        assert client.call("queue.create_tube", "jobs", "fifottl").ok
    return http_port(server)


@pytest.fixture
def api(port: int) -> ApiClient:
    """A client of a server without schedules."""
    client = logged_in(port, "operator")
    for schedule in client.get("schedules")["schedules"]:
        client.delete(f"schedules/{schedule['name'].replace('/', '%2F')}")
    return client


def test_a_schedule_is_created_replaced_and_removed(api: ApiClient, server: RunningServer) -> None:
    assert api.get("schedules") == {"schedules": []}
    created = api.put(PATH, queue="jobs", cron=CRON, data={"big": 2**60}, options={"pri": 1})
    assert (created["name"], created["data"], created["last_task"]) == (NAME, {"big": str(2**60)}, None)
    replaced = api.put(PATH, queue="jobs", cron=CRON, timezone="Europe/Berlin", missed="none")
    assert (replaced["timezone"], replaced["missed"], replaced["data"]) == ("Europe/Berlin", "none", None)
    assert api.get("schedules") == {"schedules": [replaced]}
    assert api.delete(PATH) == replaced
    assert api.get("schedules") == {"schedules": []}
    found = server.process.wait_for(r'^\{.*"action": "unschedule".*\}$')
    line: dict[str, Any] = json.loads(found[0])
    assert (line["user"], line["schedule"]) == ("operator", NAME)


def test_rights(api: ApiClient, port: int) -> None:
    api.put(PATH, queue="jobs", cron=CRON)
    viewer = logged_in(port, "viewer")
    assert [each["name"] for each in viewer.get("schedules")["schedules"]] == [NAME]
    definition = {"queue": "jobs", "cron": CRON}
    expected = (403, "Write access to universe '' is denied for user 'viewer'")
    assert viewer.refused(PATH, definition, "PUT") == expected
    assert viewer.refused(PATH, method="DELETE") == expected
    assert logged_in(port, "nobody").refused("schedules", method="GET")[0] == 403
    assert ApiClient(port).refused("schedules", method="GET")[0] == 401
    assert ApiClient(port).refused(PATH, definition, "PUT")[0] == 401
    assert ApiClient(port).refused(PATH, method="DELETE")[0] == 401


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ({"cron": CRON}, "queue must be a text, not None"),
        ({"queue": "none", "cron": CRON}, 'there is no queue "none"'),
        ({"queue": "jobs", "cron": "x"}, 'the cron expression "x" must have 5 or 6 fields'),
        ({"queue": "jobs", "cron": CRON, "timezone": "Mars"}, 'there is no time zone "Mars"'),
        (
            {"queue": "jobs", "cron": CRON, "when": 1},
            'there is no field "when"; the fields are: queue, cron,',
        ),
    ],
)
def test_what_is_wrong_is_refused(api: ApiClient, definition: dict[str, object], text: str) -> None:
    status, found = api.refused(PATH, definition, "PUT")
    assert status == 400
    assert found.startswith(text)


def test_paths_and_methods(api: ApiClient) -> None:
    assert api.refused("schedules/none", method="DELETE") == (404, 'there is no schedule "none"')
    assert api.refused("schedules/a/b", method="DELETE")[0] == 404
    answer = api.send("GET", PATH)
    assert (answer.status, answer.headers["allow"]) == (405, "PUT, DELETE")
    assert api.refused("schedules?limit=1", method="GET")[0] == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_pages_of_other_origins_change_nothing(api: ApiClient, method: str) -> None:
    headers = {"Cookie": api.cookie, "Origin": "http://elsewhere.example", "Content-Type": "application/json"}
    assert request(api.port, f"/api/{PATH}", method, headers, body=b"{}").status == 403
