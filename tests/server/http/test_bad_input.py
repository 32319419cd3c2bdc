"""Bad values for every parameter and every field of the API: each is refused, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import pytest

from iproto_server.server.http.openapi import OPENAPI
from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer
from tests.server.http.api_client import ApiClient, logged_in
from tests.server.http.http_client import HTTP, http_port

NO_NUMBERS: Final = (
    "nan",
    "inf",
    "-inf",
    "1e999",
    "0x10",
    "1_000",
    " 1",
    "1 ",
    "+1",
    "-1",
    "٣",
    "x",
    "1,5",
    "1" * 400,
)
BAD_PARAMETERS: Final = {
    "limit": (*NO_NUMBERS, "0", "1001", "1.5", "1.0", "1e2", "true", "null"),
    "older": (*NO_NUMBERS, "1e2", ".", "1.", ".5", "true"),
    "state": ("nan", "READY", "ready,taken", "\0", "%FF", "1"),
    "queue": ("nosuch", "\0", "%FF", "x" * 5000),
    # Any name or id can be the one to begin after, but not of another type or twice.
    "after": (),
}
"""Values by the parameter's name; whatever has no value here takes any text."""

NO_JSON: Final = (
    "",
    "{",
    "nan",
    "[]",
    '"x"',
    "5",
    "null",
    '{"FIELD": NaN}',
    '{"FIELD": Infinity}',
    '{"FIELD": 1e999}',
    '{"FIELD": -1e999}',
    '{"FIELD": "\\ud800"}',
    '{"FIELD": 1, "FIELD": 1}',
    '{"FIELD": ' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"FIELD": ' + "9" * 5000 + "}",
    '{"no such field": 1}',
    '{"FIELD": "\x00"}',
)
"""Bodies that are refused whatever their fields; FIELD stands for one that the path knows."""

_TOO_LARGE: Final = 2**64
NO_IDS: Final[tuple[object, ...]] = (
    None,
    5,
    "x",
    {},
    [],
    [None],
    [True],
    [[]],
    [1.5],
    [-(2**70)],
    [_TOO_LARGE],
    ["nosuch"],
    [1] * 1001,
)
NO_MAPS: Final = (5, "x", [1], True, 1.5)
BAD_FIELDS: Final[dict[str, dict[str, Sequence[object]]]] = {
    "login": {
        "user": (None, 5, 1.5, True, [], {}, "", "x" * 1025),
        "password": (None, 5, 1.5, True, [], {}, "", "x" * 1025),
        "token": (None, 5, 1.5, True, [], {}, "", "x" * 1025),
    },
    "logout": {},
    "snapshot": {},
    "queues/{name}/put": {"data": (), "options": (*NO_MAPS, {"dealy": 1}, {"delay": -1}, {"delay": "1"})},
    "queues/{name}/kick": {"count": (None, 0, -1, 1.5, 10_001, _TOO_LARGE, True, "1", [], {})},
    "queues/{name}/release": {"ids": NO_IDS},
    "queues/{name}/bury": {"ids": NO_IDS},
    "queues/{name}/delete": {"ids": NO_IDS},
    "queues/{name}/requeue": {"ids": NO_IDS},
    "queues/{name}/pause": {},
    "queues/{name}/drain": {},
    "queues/{name}/resume": {},
    "queues/{name}/configure": {
        "options": (*NO_MAPS, None, {}, {"nosuch": 1}, {"release_limit": -5}, {"release_limit": 1.5})
    },
    "schedules/{name}": {
        "queue": (None, 5, 1.5, True, [], {}, "nosuch"),
        "cron": (None, 5, 1.5, True, [], {}, "", "* * *", "60 * * * *", "nan * * * *", "*/0 * * * *"),
        "timezone": (5, 1.5, True, [], {}, "", "Europe/Nowhere", "../etc/passwd", "\0"),
        "missed": (5, 1.5, True, [], {}, "", "often"),
        "data": (),
        "options": NO_MAPS,
    },
}
"""Values by path and field."""

GOOD: Final = {"queue": "jobs", "cron": "0 0 1 1 *", "user": "operator", "password": "x"}
"""Values of the other fields of a body."""


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    return ["queue_lua_compat.tubes:app", "tests.server.http.dashboard_application:app"]


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    return HTTP


@pytest.fixture(scope="module")
def api(server: RunningServer) -> ApiClient:
    with IprotoClient.at(server.address) as client:
        assert client.call("queue.create_tube", "jobs", "fifottl").ok
        for number in range(3):
            assert client.call("queue.tube.jobs:put", number).ok
    return logged_in(http_port(server), "operator")


def operations() -> list[tuple[str, str, dict[str, object]]]:
    """Path, method and description of each operation of the API."""
    return [
        (path.removeprefix("/api/"), method, operation)
        for path, methods in OPENAPI["paths"].items()
        for method, operation in methods.items()
    ]


def place(path: str) -> str:
    return path.replace("{name}", "jobs").replace("{id}", "1")


def check_refused(api: ApiClient, path: str, answer_status: int, text: str) -> None:
    assert 400 <= answer_status < 500, (path, answer_status, text)
    error = json.loads(text)["error"]
    assert error
    assert len(error) < 1000, error
    assert api.get("queues/jobs")["tasks"]["ready"] == 3


PARAMETERS: Final = [
    (path, each["name"])
    for path, method, operation in operations()
    if method == "get"
    for each in operation.get("parameters", ())  # type: ignore[attr-defined]
    if each["in"] == "query"
]


@pytest.mark.parametrize(("path", "name"), PARAMETERS)
def test_parameters(api: ApiClient, path: str, name: str) -> None:
    for value in BAD_PARAMETERS[name]:
        given = value if value.startswith("%") else quote(value)
        answer = api.send("GET", f"{place(path)}?{name}={given}")
        check_refused(api, f"{path}?{name}={value[:30]}", answer.status, answer.text)
    twice = api.send("GET", f"{place(path)}?{name}=1&{name}=1")
    check_refused(api, path, twice.status, twice.text)


@pytest.mark.parametrize("path", [path for path, method, _ in operations() if method == "get"])
def test_parameters_that_a_path_lacks(api: ApiClient, path: str) -> None:
    for query in ("nosuch=1", "limit[]=1", "=1", "older=1&x=1", "&".join(f"x{n}=1" for n in range(100))):
        answer = api.send("GET", f"{place(path)}?{query}")
        check_refused(api, f"{path}?{query[:30]}", answer.status, answer.text)


def test_the_table_has_every_operation_with_a_body() -> None:
    described = {
        path: set(_fields(operation)) for path, _, operation in operations() if "requestBody" in operation
    }
    assert described == {path: set(fields) for path, fields in BAD_FIELDS.items()}
    assert {name for _, name in PARAMETERS} == set(BAD_PARAMETERS)


def _fields(operation: dict[str, object]) -> set[str]:
    schema = operation["requestBody"]["content"]["application/json"]["schema"]  # type: ignore[index]
    return {name for one in schema.get("oneOf", [schema]) for name in one["properties"]}


@pytest.mark.parametrize("path", BAD_FIELDS)
def test_bodies(api: ApiClient, path: str) -> None:
    method = "PUT" if path.startswith("schedules") else "POST"
    fields = BAD_FIELDS[path]
    for text in NO_JSON:
        raw = text.replace("FIELD", next(iter(fields), "x")).encode()
        answer = api.send(method, place(path), raw=raw)
        check_refused(api, f"{path}: {text[:30]}", answer.status, answer.text)


@pytest.mark.parametrize(
    ("path", "field"), [(path, field) for path, fields in BAD_FIELDS.items() for field in fields]
)
def test_fields(api: ApiClient, path: str, field: str) -> None:
    method = "PUT" if path.startswith("schedules") else "POST"
    others = {name: GOOD[name] for name in BAD_FIELDS[path] if name in GOOD and field != "token"}
    for value in BAD_FIELDS[path][field]:
        answer = api.send(method, place(path), {**others, field: value})
        check_refused(api, f"{path}: {field}={str(value)[:30]}", answer.status, answer.text)


@pytest.mark.parametrize(
    "name", ["", "nosuch", "%00", "%FF", "..", "a/b", "x" * 5000, "%2e%2e", "jobs/", "%ED%A0%80"]
)
def test_names_of_queues_and_schedules(api: ApiClient, name: str) -> None:
    for path, method, operation in operations():
        if "{name}" in path:
            body: dict[str, object] | None = {} if "requestBody" in operation else None
            answer = api.send(method.upper(), path.replace("{name}", name).replace("{id}", "1"), body)
            assert 400 <= answer.status < 500, (path, name, answer)


@pytest.mark.parametrize("task_id", ["nan", "-1", "1.5", "1e999", str(2**64), "9" * 500, "%00", "%FF", "x"])
def test_ids(api: ApiClient, task_id: str) -> None:
    assert api.refused(f"queues/jobs/tasks/{task_id}", method="GET")[0] in (400, 404)
