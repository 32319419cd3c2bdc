"""Servers whose Lua code keeps the tutorial's queue, or a tube."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY
from tests.running_server import RunningServer
from tests.server.http.http_client import HTTP
from tests.suites.catalogue import SUITES, SettingError

USERS = "tests.server.http.dashboard_application:app"
TUTORIAL, TUBE, MODULE = "tutorial", "tube", "module"

GUEST = "box.cfg{} box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})\n"
SCRIPTS = {
    TUTORIAL: "package.reload = {count = 1} queue = require('queue')",
    TUBE: "queue = require('queue.abstract') queue.create_tube('mail', 'fifo')",
    MODULE: "queue = require('queue') queue.create_tube('mail', 'fifo')",
}


@dataclass(frozen=True)
class LuaQueue:
    """A queue that Lua code keeps, as its clients see it.

    Attributes:
        server: its server.
        kind: what keeps it.
        name: its name.
        folder: the files of its database.
    """

    server: RunningServer
    kind: str
    name: str
    folder: Path

    def put(self, client: IprotoClient, data: object) -> Any:
        """Put a task, and return its id."""
        return self._id(self._call(client, "put", data))

    def take(self, client: IprotoClient, timeout: float = 0) -> Any:
        """Take a task, and return its id."""
        return self._id(self._call(client, "take", timeout))

    def take_request(self, timeout: float) -> tuple[str, float]:
        """What a client calls to take a task."""
        return self._function("take"), timeout

    def _call(self, client: IprotoClient, function: str, *arguments: object) -> Any:
        [task] = client.call(self._function(function), *arguments).data
        return task

    def _id(self, task: Any) -> Any:
        return task["id"] if self.kind == TUTORIAL else task[0]

    def _function(self, name: str) -> str:
        return f"queue.{name}" if self.kind == TUTORIAL else f"queue.tube.mail:{name}"


def modules_of(kind: str) -> Path:
    """The folder with the code of a queue; skips the test if it is not there."""
    if kind == TUTORIAL:
        return REPOSITORY / "examples" / "tutorial"
    if kind == TUBE:
        return Path(__file__).parent / "modules"
    try:
        return SUITES["queue"].checkout()
    except SettingError as error:
        pytest.skip(str(error))


@pytest.fixture(params=[TUTORIAL, TUBE, MODULE])
def queue(request: pytest.FixtureRequest, start_server: StartServer, tmp_path: Path) -> LuaQueue:
    """An empty queue of each kind, in a server with HTTP and users of the dashboard."""
    kind: str = request.param
    modules = modules_of(kind)
    script = tmp_path / "init.lua"
    search = f"package.path = '{modules}/?.lua;{modules}/?/init.lua;' .. package.path\n"
    script.write_text(GUEST + search + SCRIPTS[kind])
    folder = tmp_path / "data"
    folder.mkdir()
    server = start_server([str(script), USERS], list(HTTP), work_dir=folder)
    return LuaQueue(server, kind, "queue" if kind == TUTORIAL else "mail", folder)


@pytest.fixture
def client(queue: LuaQueue) -> Iterator[IprotoClient]:
    with IprotoClient.at(queue.server.address) as client:
        yield client
