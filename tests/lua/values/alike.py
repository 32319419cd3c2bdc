"""Snippets with values of `box` in this project's Lua and in a real Tarantool, without what must differ."""

from __future__ import annotations

import re

from tests.lua.snippets import OurLua, TarantoolLua

PREFIX = "local box = rawget(_G, 'box') or require('internal.box.init') "
"""The table `box` in both, without a database."""

_DIFFERENT = (
    (re.compile(r"builtin/[\w./]+\.lua:\d+"), "builtin"),
    (re.compile(r"[\w./-]*described\.lua:\d+"), "described"),
    (re.compile(r"struct \d+"), "struct NUMBER"),
    (re.compile(r"(?:const )?(struct (?:error|tuple)) ?[&*]?"), r"\1"),
    (re.compile(r'(\["file"\]=)"(?:\./src/[^"]*|\[C\]|builtin/[^"]*)",\["line"\]=\d+'), r"\1C"),
    (re.compile(r"0x[0-9a-f]+|builtin#\d+"), "ADDRESS"),
    (re.compile(r"\(value expected\)"), "(no value)"),
)
"""Lines of modules, references and pointers to structs, built-in places, addresses, and words of LuaJIT."""


def comparable(described: str) -> str:
    """A description without what must differ."""
    for pattern, name in _DIFFERENT:
        described = pattern.sub(name, described)
    return described


def run(lua: OurLua | TarantoolLua, snippet: str) -> str:
    """Run a snippet, and describe what it does."""
    return comparable(lua.run(PREFIX + snippet))


def assert_alike(ours: OurLua, real: TarantoolLua, snippet: str) -> None:
    """Assert that a snippet does the same in both."""
    assert run(ours, snippet) == run(real, snippet), snippet
