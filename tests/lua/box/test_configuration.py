"""box.cfg of a database that runs, and the state of the instance."""

from __future__ import annotations

import pytest

from tests.lua.box.alike import assert_alike
from tests.lua.snippets import LuaProcess

SNIPPETS = {
    "options": (
        "return box.cfg.log_level, box.cfg.wal_mode, box.cfg.read_only, type(box.cfg.checkpoint_count)"
    ),
    "an unknown option": "return pcall(box.cfg, {nope = 1})",
    "an option that stays": "return pcall(box.cfg, {work_dir = 'x'}), pcall(box.cfg, {wal_mode = 'fsync'})",
    "a wrong value": "return pcall(box.cfg, {read_only = 5}), pcall(box.cfg, {checkpoint_count = 0})",
    "read_only": (
        "box.cfg{read_only = true} local r = {box.info.ro, pcall(s.insert, s, {1, 'x'})} "
        "box.cfg{read_only = false} return r, s:insert{1, 'x'}"
    ),
    "waiting for a state": (
        "local fiber = require('fiber') box.cfg{read_only = true} fiber.new(function() "
        "box.cfg{read_only = false} end) return pcall(box.ctl.wait_rw, 5), pcall(box.ctl.wait_ro, "
        "0.01), box.ctl.wait_rw()"
    ),
    "information": (
        "return box.info.status, type(box.info.lsn), type(box.info.version), type(box.info.uptime), "
        "box.info.id, type(box.info().uuid), type(box.slab.info().items_used)"
    ),
    "a snapshot": "return box.snapshot()",
}


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=list(SNIPPETS))
def test_are_alike(ours: LuaProcess, real: LuaProcess, snippet: str) -> None:
    assert_alike(ours, real, snippet)
