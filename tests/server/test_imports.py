"""A start imports only what it needs, and requests and snapshots need no more than the start has imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from tests.command_line import TIMEOUT
from tests.conftest import StartServer
from tests.iproto_client import (
    DELETE,
    FUNCTION_NAME,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    OPERATIONS,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
    IprotoClient,
)
from tests.programs import REPOSITORY
from tests.running_server import QUEUE_APPLICATION

MODULES: Final = "tests.server.modules_application:app"

NOT_FOR_A_START: Final = {
    "BTrees": "keeps ready tasks of tubes in order",
    "anyio": "belongs to starlette",
    "cronsim": "computes due times of schedules",
    "ctypes": "calls ICU, for indexes with a collation",
    "difflib": "suggests keys of a configuration file",
    "email": "belongs to importlib.metadata",
    "fractions": "encodes decimals with a fraction in keys of indexes",
    "h11": "belongs to uvicorn",
    "importlib.metadata": "reads the version for --version",
    "importlib.resources": "takes longer than pkgutil, which reads a package's file as well",
    "iproto_server.config.socket_activation": "is for sockets from systemd",
    "iproto_server.config.tarantool3": "reads a YAML file",
    "iproto_server.config.tls": "reads certificates",
    "iproto_server.metrics.graphite": "reports to Graphite",
    "iproto_server.metrics.graphite_sender": "reports to Graphite",
    "iproto_server.metrics.exposition": "writes metrics for Prometheus",
    "iproto_server.metrics.prometheus": "collects metrics for Prometheus",
    "iproto_server.protocol.tarantool15": "is for clients of Tarantool 1.5",
    "iproto_server.server.configured_users": "makes users of a YAML file",
    "iproto_server.server.http": "serves HTTP",
    "iproto_server.server.tarantool15": "is for clients of Tarantool 1.5",
    "iproto_server.testing": "is for tests",
    "iproto_server.tools": "is for other commands",
    "rich": "shows tables of operators' commands",
    "persistent": "belongs to BTrees",
    "prometheus_client": "writes metrics for Prometheus",
    "starlette": "serves HTTP",
    "sysconfig": "finds Python's own modules at a reload",
    "tarantool": "is the connector of `play`",
    "textual": "is the screen of `top`",
    "tempfile": "belongs to importlib.resources",
    "tomllib": "reads a configuration file",
    "uvicorn": "serves HTTP",
    "yaml": "is the format of `cat` and of a configuration file",
    "zope": "belongs to BTrees",
    "zoneinfo": "computes due times of schedules",
}
"""Modules, with all that is in them, that a plain server does without, and what they are for."""

NOT_FOR_A_COMMAND: Final = {
    "BTrees": "is for queues",
    "asyncio": "is for servers",
    "decimal": "is for data",
    "iproto_server.error_codes": "is for data",
    "iproto_server.native": "is for servers",
    "msgpack": "is for data",
    "rich": "is for tables",
    "ssl": "is for servers",
    "tarantool": "is for connections",
    "textual": "is for screens",
    "uvloop": "is for servers",
    "zstandard": "is for data",
}
"""The same for commands that only print something."""


def found(forbidden: Iterable[str], modules: Iterable[str]) -> dict[str, list[str]]:
    """The imported modules that are forbidden."""
    return {
        name: some
        for name in forbidden
        if (some := [each for each in modules if each == name or each.startswith(f"{name}.")])
    }


@pytest.fixture
def client(start_server: StartServer) -> IprotoClient:
    """A client of a server without special options."""
    return IprotoClient.at(start_server([QUEUE_APPLICATION, MODULES]).address)


def modules_of(client: IprotoClient) -> list[str]:
    """The modules that a server has imported."""
    with client:
        modules: list[str] = client.call("modules").data[0]
        return modules


def test_a_start_does_without(client: IprotoClient) -> None:
    assert found(NOT_FOR_A_START, modules_of(client)) == {}


@pytest.mark.parametrize(
    "arguments", [("--help",), ("serve", "--help"), ("cat", "--help"), ("top", "--help"), ("--version",)]
)
def test_a_command_that_prints_does_without(arguments: tuple[str, ...]) -> None:
    code = (
        "import sys\n"
        "from iproto_server.cli import main\n"
        f"assert main({list(arguments)!r}) == 0\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )
    assert found(NOT_FOR_A_COMMAND, done.stderr.split()) == {}


def test_requests_import_nothing(client: IprotoClient) -> None:
    with client:
        space, before = client.space_id("rows"), client.call("modules").data
        client.call("queue.put", "task")
        [task] = client.call("queue.take").data
        assert client.call("queue.ack", task["id"]).ok
        for number in range(2):
            row, key = [number, f"{number}"], {SPACE_ID: space, INDEX_ID: 0, KEY: [number]}
            assert client.request(INSERT, {SPACE_ID: space, TUPLE: row}).data == [row]
            assert client.request(REPLACE, {SPACE_ID: space, TUPLE: row}).data == [row]
            assert client.request(SELECT, {**key, INDEX_ID: 1, KEY: [f"{number}"], LIMIT: 1}).data == [row]
            assert client.request(SELECT, {**key, ITERATOR: 5, LIMIT: 1}).data == [row]
            assert client.request(UPDATE, {**key, TUPLE: [["+", 0, 10], [":", 1, 0, 0, "a"]]}).ok is False
            splice = {**key, TUPLE: [[":", 1, 0, 0, "a"]]}
            assert client.request(UPDATE, splice).data == [[number, f"a{number}"]]
            upsert = {SPACE_ID: space, TUPLE: row, OPERATIONS: [["=", 1, f"b{number}"]]}
            assert client.request(UPSERT, upsert).ok
            assert client.request(DELETE, key).data == [[number, f"b{number}"]]
            assert client.request(INSERT, {SPACE_ID: space, TUPLE: ["wrong"]}).ok is False
            assert client.request(SELECT, {**key, FUNCTION_NAME: "", INDEX_ID: 9}).ok is False
        assert client.call("modules").data == before


def test_a_snapshot_imports_nothing(client: IprotoClient) -> None:
    with client:
        before = client.call("modules").data
        assert client.call("snapshot").data == ["ok"]
        assert client.call("modules").data == before


def test_a_start_from_files_does_without(start_server: StartServer, tmp_path: Path) -> None:
    first = start_server([QUEUE_APPLICATION, MODULES], work_dir=tmp_path)
    with IprotoClient.at(first.address) as client:
        client.call("queue.put", "in the snapshot")
        assert client.call("snapshot").data == ["ok"]
        client.call("queue.put", "in the log")
    first.stop()
    second = start_server([QUEUE_APPLICATION, MODULES], work_dir=tmp_path)
    assert found(NOT_FOR_A_START, modules_of(IprotoClient.at(second.address))) == {}
