"""`iproto-tarantool` and a real Tarantool in one directory for scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lua.program.scripts import Program, our_program
from tests.programs import require_program


@pytest.fixture
def our(tmp_path: Path) -> Program:
    return our_program(tmp_path)


@pytest.fixture
def tarantool(tmp_path: Path) -> Program:
    return Program([require_program("tarantool", "tarantool")], tmp_path)
