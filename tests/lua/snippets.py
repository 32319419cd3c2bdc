"""Snippets of Lua, run by this project's modules and by a real Tarantool; both describe the values alike."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from iproto_server.lua.fibers import FiberRuntime, run

HERE = Path(__file__).parent
DESCRIBED = HERE / "described.lua"


class OurLua:
    """A LuaJIT with this project's modules, whose fibers run on an event loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.runtime = FiberRuntime(self._loop)
        self._run = self.runtime.call(self.runtime.load(DESCRIBED.read_bytes(), b"@described.lua"))
        self._with = self.runtime.load(
            b"local run, text = ... return function() return run(text) end", b"=with"
        )

    def run(self, snippet: str) -> str:
        """Run a chunk, and describe what it returns, or its error."""
        run_snippet = self.runtime.call(self._with, self._run, snippet.encode())
        [described] = self._loop.run_until_complete(run(self.runtime, run_snippet))
        assert isinstance(described, bytes)
        return described.decode()

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()


class LuaProcess:
    """A process that runs snippets.

    Parameters:
        command: the command: a program with `judge.lua` or a file like it.
        environment: the environment; None: this process's own.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, snippet: str) -> str:
        """Run a chunk, and describe what it returns, or its error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        text = snippet.encode()
        self._process.stdin.write(b"%d\n%s" % (len(text), text))
        self._process.stdin.flush()
        size = int(self._process.stdout.readline())
        return self._process.stdout.read(size).decode()


class TarantoolLua(LuaProcess):
    """A process of a real Tarantool that runs snippets.

    Parameters:
        program: the executable.
    """

    def __init__(self, program: str) -> None:
        super().__init__([program, str(HERE / "judge.lua"), str(DESCRIBED)])
