"""Drivers in other languages: a small program executes requests that it reads as lines of JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients.drivers.driver import ClientError, Operation, Row, Target
from tests.programs import missing, require_program

HERE = Path(__file__).resolve().parent.parent


_Process = subprocess.Popen[str]
_idle: dict[tuple[str, ...], list[_Process]] = {}
"""Idle processes by their commands: starting one takes longer than most tests."""


def _start(command: Sequence[str | Path]) -> _Process:
    return subprocess.Popen(
        [*map(str, command)],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )


def end_idle_processes() -> None:
    """End idle processes by closing their input."""
    while _idle:
        _, processes = _idle.popitem()
        for process in processes:
            process.communicate(timeout=15)


class Bridge:
    """A driver behind a child process.

    A request is one line, `[method, argument, ...]`; the answer is one line, `{"result": ...}` or
    `{"error": {"message": ..., "code": ..., "type": ...}}`. A process has one connection after the other,
    each of a bridge of its own.

    Parameters:
        command: The child process.
        target: The server.
        user: Who to be; None for guest.
        password: The user's password.
    """

    def __init__(
        self, command: Sequence[str | Path], target: Target, user: str | None, password: str | None
    ) -> None:
        self._idle = _idle.setdefault(tuple(map(str, command)), [])
        self.process = self._idle.pop() if self._idle else _start(command)
        try:
            self.request("connect", target.host, target.port, user or "", password or "")
        except BaseException:
            self.kill()
            raise
        self._is_open = True

    def ping(self) -> None:
        assert self.request("ping") is True

    def insert(self, space: str, row: Row) -> list[Row]:
        return self._rows("insert", space, row)

    def replace(self, space: str, row: Row) -> list[Row]:
        return self._rows("replace", space, row)

    def update(self, space: str, index: str, key: Row, operations: Sequence[Operation]) -> list[Row]:
        return self._rows("update", space, index, key, operations)

    def upsert(self, space: str, row: Row, operations: Sequence[Operation]) -> list[Row]:
        return self._rows("upsert", space, row, operations)

    def delete(self, space: str, index: str, key: Row) -> list[Row]:
        return self._rows("delete", space, index, key)

    def select(
        self, space: str, index: str, key: Row, *, iterator: str = "EQ", limit: int = 100, offset: int = 0
    ) -> list[Row]:
        return self._rows("select", space, index, key, iterator, limit, offset)

    def call(self, procedure: str, *arguments: object) -> list[object]:
        return self._rows("call", procedure, arguments)

    def close(self) -> None:
        """Close the connection, and keep the process for the next bridge."""
        if self._is_open:
            self._is_open = False
            self.request("disconnect")
            self._idle.append(self.process)

    def kill(self) -> None:
        """Kill the process."""
        self._is_open = False
        self.process.kill()
        self.process.communicate(timeout=15)

    def request(self, method: str, *arguments: object) -> Any:
        """Execute a request.

        Parameters:
            method: What to do; one of the methods above, or what else the program knows.
            arguments: Its arguments.

        Returns:
            The program's answer.

        Raises:
            ClientError: The server's error.
        """
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([method, *arguments]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _rows(self, method: str, *arguments: object) -> list[Any]:
        return list(self.request(method, *arguments))

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"{self.process.args!r} ended"
        answer = json.loads(line)
        if "error" in answer:
            error = answer["error"]
            raise ClientError(error.get("code"), error["message"], error.get("type"))
        return answer.get("result")


class NetBox(Bridge):
    """`net.box`, Tarantool's own connector, in a real Tarantool that only acts as a client.

    Parameters:
        target: The server.
        user: Who to be; None for guest.
        password: The user's password.
    """

    def __init__(self, target: Target, user: str | None = None, password: str | None = None) -> None:
        program = require_program("tarantool", "tarantool")
        super().__init__([program, HERE / "lua" / "bridge.lua"], target, user, password)


class NodeDriver(Bridge):
    """npm's tarantool-driver.

    It rounds integers above 2^53 (JavaScript's numbers are doubles) and passes on an error's text only. Its
    CALL is the protocol's first one, in whose answers each value lies in an array of its own.

    Parameters:
        target: The server.
        user: Who to be; None for guest.
        password: The user's password.
    """

    def __init__(self, target: Target, user: str | None = None, password: str | None = None) -> None:
        program = require_program("node", "nodejs")
        if not (HERE / "node" / "node_modules" / "tarantool-driver").is_dir():
            missing(f"tarantool-driver is not installed: (cd {HERE / 'node'} && npm ci)")
        super().__init__([program, HERE / "node" / "bridge.js"], target, user, password)

    def call(self, procedure: str, *arguments: object) -> list[object]:
        return [value for (value,) in self._rows("call", procedure, arguments)]
