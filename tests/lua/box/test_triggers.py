"""Triggers of spaces."""

from __future__ import annotations

import pytest

from tests.lua.box.alike import assert_alike
from tests.lua.snippets import LuaProcess

SNIPPETS = {
    "on_replace": (
        "local calls = {} local f = function(old, new, name, operation) table.insert(calls, {old, new, "
        "name, operation}) end s:on_replace(f) s:insert{1, 'a'} s:replace{1, 'b'} s:update(1, {{'=', "
        "2, 'c'}}) s:upsert({1, 'd'}, {{'=', 2, 'e'}}) s:delete{1} s:on_replace(nil, f) s:insert{2, "
        "'a'} return calls, #s:on_replace()"
    ),
    "in their order": (
        "local r = {} local f, g = function() table.insert(r, 'f') end, function() table.insert(r, "
        "'g') end s:on_replace(f) s:on_replace(g) s:insert{1, 'a'} return r, s:on_replace()[1] == g, "
        "s:on_replace(f, g) == f, #s:on_replace()"
    ),
    "that refuse": (
        "s:on_replace(function() error('refused') end) return pcall(s.insert, s, {1, 'a'}), s:get(1)"
    ),
    "that refuse with an error of box": (
        "s:on_replace(function() box.error{code = 77, reason = 'no'} end) local ok, e = "
        "pcall(s.insert, s, {1, 'a'}) return ok, e.code, e.message, s:get(1)"
    ),
    "that change other rows": (
        "s:on_replace(function(old, new) if new and new[1] == 1 then s:insert{2, 'b'} end end) "
        "s:insert{1, 'a'} return s:select()"
    ),
    "before_replace": (
        "s:before_replace(function(old, new) return box.tuple.new{new[1], 'changed'} end) return "
        "s:insert{1, 'a'}, s:get(1)"
    ),
    "before_replace without a value": "s:before_replace(function() end) return s:insert{1, 'a'}, s:get(1)",
    "before_replace with nil": (
        "s:before_replace(function() return nil end) s:insert{1, 'a'} return s:get(1)"
    ),
    "before_replace with the old row": (
        "s:insert{1, 'a'} s:before_replace(function(old) return old end) s:replace{1, 'b'} return s:get(1)"
    ),
    "what changes return if the old row is kept": (
        "s:insert{1, 'a'} s:before_replace(function(old) return old end) "
        "local function n(...) return select('#', ...), ... end return {n(s:replace{1, 'b'})}, "
        "{n(s:insert{2, 'b'})}, {n(s:update(1, {{'=', 2, 'c'}}))}, {n(s:delete(1))}, "
        "{n(s:upsert({1, 'd'}, {{'=', 2, 'e'}}))}, s:select()"
    ),
    "what changes return if there is to be no row": (
        "s:insert{1, 'a'} s:insert{2, 'a'} s:before_replace(function() return nil end) "
        "local function n(...) return select('#', ...), ... end return {n(s:replace{1, 'b'})}, "
        "{n(s:replace{3, 'b'})}, {n(s:update(2, {{'=', 2, 'c'}}))}, s:select()"
    ),
    "the list of before_replace": (
        "local function f(old, new) return new end s:before_replace(f) local r = s:before_replace() "
        "local g = function() return nil end s:before_replace(g, r[1]) s:insert{1, 'a'} "
        "return #r, r[1] == f, s:before_replace()[1] == g, s:before_replace(nil, g), s:select()"
    ),
    "run_triggers": (
        "local n, b = 0, 0 s:on_replace(function() n = n + 1 end) s:before_replace(function() b = b + 1 end) "
        "s:replace{1, 'a'} local r = {n, b, s:run_triggers(false)} s:replace{1, 'b'} "
        "s:on_replace(function() end) s:delete{1} table.insert(r, n) "
        "box.space.test:run_triggers(true) s:replace{1, 'c'} "
        "return r, n, b, #s:on_replace()"
    ),
    "run_triggers with numbers": (
        "local n = 0 s:on_replace(function() n = n + 1 end) s:run_triggers(0) s:replace{1, 'a'} "
        "s:run_triggers(1) s:replace{1, 'a'} return n"
    ),
    "run_triggers with something else": (
        "local r = {} for place, each in ipairs{'x', {}, box.NULL} do "
        "r[place] = select(2, pcall(s.run_triggers, s, each)):gsub('^.-: ', '') end return r"
    ),
    "before_replace with something else": (
        "s:before_replace(function() return 5 end) return pcall(s.insert, s, {1, 'a'})"
    ),
    "what is none": (
        "return pcall(s.on_replace, s, 5), pcall(s.on_replace, s, nil, function() end), "
        "pcall(s.before_replace, s, {})"
    ),
    "truncate": (
        "local n = 0 local f = box.space._truncate:on_replace(function(old, new) if new.id == s.id "
        "then n = n + 1 end end) s:truncate() box.space._truncate:on_replace(nil, f) return n"
    ),
}


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=list(SNIPPETS))
def test_are_alike(ours: LuaProcess, real: LuaProcess, snippet: str) -> None:
    assert_alike(ours, real, snippet)
