"""Lua code with a database, here and in a real Tarantool."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lua.snippets import DESCRIBED, LuaProcess
from tests.programs import require_program

JUDGE = Path(__file__).with_name("judge.lua")


def process(folder: Path, *command: str) -> LuaProcess:
    """Start a program that runs snippets in a database."""
    environment = {**os.environ, "FOLDER": str(folder), "DESCRIBED": str(DESCRIBED)}
    return LuaProcess([*command, str(JUDGE)], environment)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LuaProcess]:
    with process(tmp_path_factory.mktemp("ours"), sys.executable, "-m", "iproto_server", "serve") as lua:
        yield lua


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LuaProcess]:
    program = require_program("tarantool", "tarantool")
    with process(tmp_path_factory.mktemp("theirs"), program) as lua:
        yield lua
