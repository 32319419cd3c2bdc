"""A LuaJIT with this project's modules, and a real Tarantool to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lua.snippets import OurLua, TarantoolLua
from tests.programs import require_program


@pytest.fixture(scope="session")
def ours() -> Iterator[OurLua]:
    lua = OurLua()
    yield lua
    lua.close()


@pytest.fixture(scope="session")
def real() -> Iterator[TarantoolLua]:
    with TarantoolLua(require_program("tarantool", "tarantool")) as tarantool:
        yield tarantool
