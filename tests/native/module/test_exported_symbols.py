"""The compiled module exports its starts alone: its functions meet none of other libraries in the process."""

from __future__ import annotations

import re
import subprocess

from tests.programs import require_program


def test_the_module_exports_nothing_but_its_starts() -> None:
    """That of Python, and those that Lua loads."""
    from iproto_server.native import _native

    listed = subprocess.run(
        [require_program("nm", "binutils"), "--dynamic", "--defined-only", _native.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.findall(r" [A-Z] (\w+)$", listed.stdout, re.MULTILINE) == [
        "PyInit__native",
        "luaopen_iproto",
        "luaopen_iproto_box",
    ]
