"""This project's Lua and a real Tarantool, one after the other: examples that are true of both."""

from __future__ import annotations

import pytest

from tests.lua.snippets import OurLua, TarantoolLua


@pytest.fixture(params=["ours", pytest.param("real", marks=pytest.mark.real_tarantool)])
def lua(request: pytest.FixtureRequest) -> OurLua | TarantoolLua:
    found: OurLua | TarantoolLua = request.getfixturevalue(request.param)
    return found
