"""Descriptions of results without what differs between implementations: lines of modules, and addresses."""

from __future__ import annotations

import re

from tests.lua.snippets import OurLua, TarantoolLua

_LINE = re.compile(r"builtin/[\w./]+\.lua:\d+")
_DESCRIBER = re.compile(r"[\w./-]*described\.lua:\d+")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def comparable(described: str) -> str:
    """Return a description without lines of modules and without addresses."""
    return _ADDRESS.sub("ADDRESS", _DESCRIBER.sub("DESCRIBER", _LINE.sub("builtin", described)))


def assert_alike(ours: OurLua, real: TarantoolLua, snippet: str) -> None:
    """Assert that a snippet does the same in both."""
    assert comparable(ours.run(snippet)) == comparable(real.run(snippet)), snippet
