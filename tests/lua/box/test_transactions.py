"""Transactions of fibers."""

from __future__ import annotations

import pytest

from tests.lua.box.alike import assert_alike
from tests.lua.snippets import LuaProcess

SNIPPETS = {
    "rollback": "box.begin() s:insert{1, 'x'} box.rollback() return s:get(1)",
    "commit": "box.begin() s:insert{1, 'x'} box.commit() return s:get(1)",
    "without any": "return pcall(box.commit), pcall(box.rollback), box.is_in_txn(), pcall(box.savepoint)",
    "one within another": (
        "box.begin() local r = {pcall(box.begin)} box.rollback() return r, box.is_in_txn()"
    ),
    "atomic": "return box.atomic(function(a) s:insert{1, 'x'} return a, 2 end, 1), s:get(1)",
    "atomic that fails": (
        "return pcall(box.atomic, function() s:insert{1, 'x'} error('no') end), s:get(1), box.is_in_txn()"
    ),
    "a statement that fails": (
        "box.begin() s:insert{1, 'x'} local ok = pcall(s.insert, s, {1, 'x'}) box.commit() return ok, s:len()"
    ),
    "savepoints": (
        "box.begin() s:insert{1, 'x'} local sp = box.savepoint() s:insert{2, 'x'} "
        "box.rollback_to_savepoint(sp) box.commit() return s:select()"
    ),
    "a savepoint of another transaction": (
        "box.begin() local sp = box.savepoint() box.commit() box.begin() local r = "
        "{pcall(box.rollback_to_savepoint, sp)} box.rollback() return r, "
        "pcall(box.rollback_to_savepoint, 5)"
    ),
    "a fiber that waits": (
        "local fiber = require('fiber') box.begin() s:insert{1, 'x'} fiber.sleep(0) local r = "
        "{box.is_in_txn(), pcall(box.commit)} return r, s:get(1)"
    ),
    "a fiber that rolls back after it waited": (
        "local fiber = require('fiber') box.begin() s:insert{1, 'x'} fiber.sleep(0) return "
        "pcall(box.rollback), s:get(1), box.is_in_txn()"
    ),
    "changes after a fiber has waited": (
        "local fiber = require('fiber') box.begin() s:insert{1, 'x'} fiber.sleep(0) s:insert{2, 'y'} "
        "local r = {s:len(), box.is_in_txn(), pcall(box.commit)} return r, s:select(), box.is_in_txn()"
    ),
    "changes and a rollback after a fiber has waited": (
        "local fiber = require('fiber') box.begin() s:insert{1, 'x'} fiber.sleep(0) s:insert{2, 'y'} "
        "box.rollback() return s:select(), box.is_in_txn()"
    ),
    "a savepoint from before a fiber waited": (
        "local fiber = require('fiber') box.begin() local sp = box.savepoint() s:insert{1, 'x'} "
        "fiber.sleep(0) s:insert{2, 'y'} "
        "return pcall(box.rollback_to_savepoint, sp), s:len(), pcall(box.commit)"
    ),
    "an argument of begin": "box.begin('x') s:insert{1, 'x'} box.commit() return s:len()",
    "a fiber that ends": (
        "local fiber = require('fiber') local f = fiber.new(function() box.begin() s:insert{1, 'x'} "
        "end) f:set_joinable(true) f:join() return s:get(1), box.is_in_txn()"
    ),
    "on_commit": (
        "local n = 0 box.begin() box.on_commit(function() n = n + 1 end) box.on_rollback(function() n "
        "= n + 10 end) s:insert{1, 'x'} box.commit() return n"
    ),
    "on_rollback": (
        "local n = 0 box.begin() box.on_commit(function() n = n + 1 end) box.on_rollback(function() n "
        "= n + 10 end) s:insert{1, 'x'} box.rollback() return n"
    ),
    "on_commit without a transaction": "return pcall(box.on_commit, function() end)",
}


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=list(SNIPPETS))
def test_are_alike(ours: LuaProcess, real: LuaProcess, snippet: str) -> None:
    assert_alike(ours, real, snippet)
