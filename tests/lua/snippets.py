"""Snippets of Lua, run by this project's modules and by a real Tarantool; both describe the values alike."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType

from iproto_server.lua.runtime import Runtime

HERE = Path(__file__).parent
DESCRIBED = HERE / "described.lua"


class OurLua:
    """A LuaJIT with this project's modules."""

    def __init__(self) -> None:
        self.runtime = Runtime()
        self._run = self.runtime.call(self.runtime.load(DESCRIBED.read_bytes(), b"@described.lua"))

    def run(self, snippet: str) -> str:
        """Run a chunk, and describe what it returns, or its error."""
        described = self.runtime.call(self._run, snippet.encode())
        assert isinstance(described, bytes)
        return described.decode()


class TarantoolLua:
    """A process of a real Tarantool that runs snippets.

    Parameters:
        program: the executable.
    """

    def __init__(self, program: str) -> None:
        command = [program, str(HERE / "judge.lua"), str(DESCRIBED)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> TarantoolLua:
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
