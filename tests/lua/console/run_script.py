"""Runs a file of Lua with this project's modules: `python -m tests.lua.console.run_script FILE`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

from iproto_server.lua.fibers import FiberRuntime, run


async def _main(text: bytes) -> None:
    runtime = FiberRuntime(asyncio.get_running_loop())
    await run(runtime, runtime.load(text, b"@script"))


if __name__ == "__main__":
    uvloop.run(_main(Path(sys.argv[1]).read_bytes()))
