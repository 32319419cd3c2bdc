"""A server in the test's process, and the code of an application that the test changes while it runs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from iproto_server.importer import ApplicationModules
from iproto_server.server.applications import reload
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE, IprotoClient
from tests.server.in_process import ServerInProcess

HEAD = """\
import asyncio
from iproto_server import Application, Box, BoxError, STILL_WAITING, WaitQueue
app = Application("jobs")
"""

SPACE = """
@app.setup
def make_space(box):
    space = box.schema.create_space('things', if_not_exists=True)
    space.create_index('primary', if_not_exists=True)
"""
"""A setup, which may be gone on with."""


class Reloadable:
    """The files of an application, `reloaded_jobs`, and a server of it.

    Parameters:
        directory: where they are, and the server's data.
        running: ends the server.
    """

    def __init__(self, directory: Path, running: ExitStack) -> None:
        self.directory = directory
        self._running = running
        self.server: ServerInProcess

    def write(self, body: str, module: str = "reloaded_jobs", head: str = HEAD) -> None:
        """Change a module; `body` goes behind the imports and the application."""
        path = (self.directory / "code").joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + dedent(body))

    def version(self, number: object, more: str = "") -> None:
        """Write a version, which tells its number, with something more in it."""
        self.write(f"@app.procedure('version')\ndef version(box):\n    return {number!r}\n" + dedent(more))

    def start(self, *targets: str, **options: Any) -> IprotoClient:
        """Start the server; the answer is a client of it."""
        modules = ApplicationModules(targets or ["reloaded_jobs:app"])
        server = ServerInProcess(
            self.directory / "data", modules.load(), import_anew=modules.load_anew, **options
        )
        self.server = self._running.enter_context(server)
        return self.connect()

    def stop(self) -> None:
        """End the server before the test ends."""
        self._running.close()

    def connect(self) -> IprotoClient:
        """Another client."""
        return self.server.connect()

    def within(self, function: Callable[[], Any]) -> Any:
        """Call a function in the server's loop."""

        async def call() -> Any:
            return function()

        return self.server.run(call())

    def collect(self) -> int:
        """How many objects there are when the garbage is gone."""

        def count() -> int:
            gc.unfreeze()
            gc.collect()
            return len(gc.get_objects())

        number: int = self.within(count)
        return number


def send_call(client: IprotoClient, name: str, *arguments: object) -> int:
    """Send a call without waiting for its answer."""
    return client.send(CALL, {FUNCTION_NAME: name, TUPLE: list(arguments)})


def failure_of_reload(client: IprotoClient) -> str:
    """Why a reload has failed; the generation before goes on."""
    count = client.call("package.reload.count").data[0]
    number, text = client.call("package.reload").failure
    begin = f"the reload failed, generation {count} stays in force: "
    assert number == 32
    assert text.startswith(begin), text
    assert client.call("package.reload.count").data == [count]
    return text.removeprefix(begin)


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reloadable]:
    """The files; modules that were imported of them are forgotten afterwards."""
    (tmp_path / "code").mkdir()
    # The test's process has many objects of its own.
    monkeypatch.setattr(reload, "MANY_BLOCKS", sys.maxsize)
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    try:
        with ExitStack() as running:
            yield Reloadable(tmp_path, running)
    finally:
        for name in [name for name in sys.modules if name.startswith("reloaded_")]:
            del sys.modules[name]
