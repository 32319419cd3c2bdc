"""A server that is the source of backups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iproto_server.tools.operators.operator_client import OperatorClient
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer

USERS = """
credentials:
  users:
    ann: {password: secret, roles: [super]}
    bob: {password: secret, privileges: [{permissions: [read, write, execute], universe: true}]}
    eve: {password: secret}
"""


class Source:
    """A server that keeps one snapshot, with jobs in its database."""

    def __init__(self, start_server: StartServer, tmp_path: Path) -> None:
        self.directory = tmp_path / "data"
        self.directory.mkdir()
        (tmp_path / "users.yaml").write_text(USERS)
        options = ["--checkpoint-count", "1", "--config", str(tmp_path / "users.yaml")]
        self.server: RunningServer = start_server([], options, work_dir=self.directory)
        self.address = self.server.address
        self.client = IprotoClient.at(self.address)
        assert self.client.call("box.schema.space.create", "jobs", {"format": [["id"], ["status"]]}).ok
        assert self.client.call("box.space.jobs:create_index", "primary").ok
        parts = {"parts": [2, "string", 1, "unsigned"]}
        assert self.client.call("box.space.jobs:create_index", "status", parts).ok
        self._jobs = 0

    def add(self, count: int = 1, padding: str = "") -> None:
        """Add jobs."""
        for _ in range(count):
            self._jobs += 1
            assert self.client.call("box.space.jobs:insert", [self._jobs, f"job {self._jobs}{padding}"]).ok

    def snapshot(self) -> None:
        """Take a snapshot, which removes old files."""
        assert self.client.call("box.snapshot").data == ["ok"]


Answer = Callable[[str, tuple[Any, ...]], list[Any]]


def answering(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    """Let a server answer otherwise."""

    def call(self: Any, name: str, *arguments: Any) -> list[Any]:
        return answer(name, arguments)

    monkeypatch.setattr(OperatorClient, "call", call)
