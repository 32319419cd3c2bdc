"""box.cfg of a database that runs, and the state of the instance."""

from __future__ import annotations

import pytest

from tests.lua.box.alike import assert_alike
from tests.lua.snippets import LuaProcess

SNIPPETS = {
    "options": (
        "return box.cfg.log_level, box.cfg.wal_mode, box.cfg.read_only, type(box.cfg.checkpoint_count)"
    ),
    "defaults": (
        "local r = {} for name, value in pairs(box.cfg) do r[#r + 1] = name .. '=' .. tostring(value) end "
        "table.sort(r) for place = #r, 1, -1 do "
        "if r[place]:match('^work_dir') then table.remove(r, place) end end return r"
    ),
    "listening": (
        "local r = {} for _, address in ipairs{'unix/:./s.sock', '/tmp/' .. require('uuid').str(), "
        "'127.0.0.1:0'} do box.cfg{listen = address} r[#r + 1] = box.cfg.listen == address end "
        "box.cfg{listen = ''} return r, box.cfg.listen"
    ),
    "options without an effect here": (
        "box.cfg{vinyl_cache = 5} local r = {box.cfg.vinyl_cache} box.cfg{vinyl_cache = ''} return r, "
        "box.cfg.vinyl_cache, pcall(box.cfg, {vinyl_dir = 'x'}), box.cfg{vinyl_dir = '.'}"
    ),
    "values of wrong types": (
        "return pcall(box.cfg, {vinyl_dir = 5}), pcall(box.cfg, {memtx_memory = 'x'}), pcall(box.cfg, "
        "{listen = {}}), pcall(box.cfg, {hot_standby = 1}), pcall(box.cfg, {replication = true})"
    ),
    "the version": "return box.info.version == _TARANTOOL, box.info().version == _TARANTOOL",
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
    "a backup": (
        "local files = box.backup.start() local r = {#files, files[1]:match('snap$'), "
        "tostring(select(2, pcall(box.backup.start)))} box.backup.stop() box.backup.stop() "
        "r[4] = tostring(select(2, pcall(box.backup.start, 1000))) box.backup.stop() return r"
    ),
    "a snapshot": "return box.snapshot()",
}


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=list(SNIPPETS))
def test_are_alike(ours: LuaProcess, real: LuaProcess, snippet: str) -> None:
    assert_alike(ours, real, snippet)
