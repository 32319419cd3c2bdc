"""Descriptions of results without what differs between implementations, as lines of modules and addresses."""

from __future__ import annotations

import re

from tests.lua.snippets import OurLua, TarantoolLua

_DIFFERENT = (
    (re.compile(r"builtin/[\w./]+\.lua:\d+"), "builtin"),
    (re.compile(r"[\w./-]*described\.lua:\d+"), "described"),
    (re.compile(r"struct \d+"), "struct NUMBER"),
    (re.compile(r"0x[0-9a-f]{6,}|builtin#\d+"), "ADDRESS"),
)
_BOX_ERROR = re.compile(r"cdata:ctype<const struct error(?: &)?>:(.*)", re.DOTALL)
_TABLE_AS_KEY = re.compile(r"\[(map:|seq:)?\{")


def _escaped(text: str) -> str:
    """A text as `described.lua` quotes it."""
    text = re.sub(r'[\x00-\x1f"\\]', lambda found: f"\\{ord(found.group()):03d}", text)
    return re.sub(
        r"[^\x00-\x7f]", lambda found: "".join(f"\\{byte:03d}" for byte in found.group().encode()), text
    )


def comparable(described: str) -> str:
    """Return a description without what differs: box errors are texts, and tables as keys have no order."""
    found = _BOX_ERROR.search(described)
    if found:
        described = f'{described[: found.start()]}"{_escaped(found.group(1))}"'
    for pattern, name in _DIFFERENT:
        described = pattern.sub(name, described)
    return "".join(sorted(described)) if _TABLE_AS_KEY.search(described) else described


def described(lua: OurLua | TarantoolLua, snippet: str) -> str:
    """Run a snippet. Returns its description without what differs between implementations."""
    return comparable(lua.run(snippet))


def assert_alike(ours: OurLua, real: TarantoolLua, snippet: str) -> None:
    """Assert that a snippet does the same in both."""
    assert comparable(ours.run(snippet)) == comparable(real.run(snippet)), snippet
