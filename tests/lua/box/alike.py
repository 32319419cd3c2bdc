"""Snippets that begin with an empty space."""

from __future__ import annotations

from tests.lua.snippets import LuaProcess
from tests.lua.values.alike import comparable

PREAMBLE = (
    "if box.space.test then box.space.test:drop() end local s = box.schema.space.create('test') "
    "s:create_index('pk', {parts = {1, 'unsigned'}}) "
    "s:create_index('sk', {unique = false, parts = {2, 'string'}}) "
)
"""`s` is a space of keys and texts."""


def assert_alike(ours: LuaProcess, real: LuaProcess, snippet: str) -> None:
    """Assert that a snippet does the same here and in a real Tarantool."""
    expected = comparable(real.run(PREAMBLE + snippet))
    assert comparable(ours.run(PREAMBLE + snippet)) == expected, snippet
