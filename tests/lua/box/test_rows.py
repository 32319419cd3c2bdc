"""Rows of spaces, found and changed by Lua code as by that of a real Tarantool."""

from __future__ import annotations

import pytest

from tests.lua.box.alike import assert_alike
from tests.lua.snippets import LuaProcess

SNIPPETS = {
    "insert": "return s:insert{1, 'x'}, s:insert{2, 'y', 5}, s:get(1), s:get{2}",
    "a duplicate key": "s:insert{1, 'x'} return pcall(s.insert, s, {1, 'y'})",
    "a wrong type": "return pcall(s.insert, s, {'a'})",
    "no row": "return pcall(s.insert, s), pcall(s.insert, s, 'x'), pcall(s.replace, s, 5)",
    "a dot in place of a colon": "return pcall(s.insert, {1}), pcall(s.insert), pcall(s.index.pk.get, 1)",
    "select": (
        "s:insert{1, 'x'} s:insert{2, 'y'} s:insert{3, 'x'} return s:select(), s:select{2}, "
        "s.index.sk:select('x')"
    ),
    "select with options": (
        "for i = 1, 9 do s:insert{i, 'x'} end return s:select({3}, {iterator = 'GE', limit = 2, offset "
        "= 1}), s:select(3, {iterator = box.index.LT, limit = 1}), s:select(nil, {limit = 0})"
    ),
    "an unknown iterator": "return pcall(s.select, s, 1, {iterator = 'NEXT'})",
    "a key of a wrong type": (
        "return pcall(s.select, s, 'x'), pcall(s.get, s, 'x'), pcall(s.get, s, {1, 2}), pcall(s.get, s)"
    ),
    "a key that is a tuple": "s:insert{1, 'x'} return s:get(box.tuple.new{1}), s:delete(box.tuple.new{1})",
    "a key that is nothing": (
        "s:insert{1, 'x'} s:insert{2, 'y'} return pcall(s.get, s, box.NULL), s:select(box.NULL), s:select(), "
        "s:pairs(box.NULL):length(), s.index.sk:max(box.NULL), pcall(s.delete, s, box.NULL)"
    ),
    "a key with nil": (
        "s:insert{1, 'x'} return pcall(s.get, s, {box.NULL}), s:get{1, nil}, pcall(s.get, s, {[2] = 1})"
    ),
    "a key that is a map": (
        "return pcall(s.get, s, {a = 1}), pcall(s.delete, s, {a = 1}), pcall(s.update, s, {a = 1}, {}), "
        "s:select{a = 1}"
    ),
    "a key that serializes itself": (
        "s:insert{1, 'x'} return s:get(setmetatable({1}, {__serialize = 'map'})), "
        "s:get(setmetatable({1}, {__serialize = function() return {2} end}))"
    ),
    "keys of other types": (
        "s:insert{1, 'x'} return s:get(1LL), s:get(1ULL), pcall(s.get, s, -1), pcall(s.get, s, 1.5), "
        "pcall(s.get, s, 0/0), pcall(s.get, s, 1e300), pcall(s.get, s, {{1}}), pcall(s.get, s, true), "
        "pcall(s.get, s, '\\255'), s.index.sk:select('\\255'), "
        "pcall(s.get, s, require('decimal').new(1)), pcall(s.get, s, require('uuid').new())"
    ),
    "names that change": (
        "s:format{{'id', 'unsigned'}, {'n', 'string'}} s:insert{1, 'x'} local before = s:get(1).n "
        "s:format{{'id', 'unsigned'}, {'m', 'string'}} return before, s:get(1).n, s:get(1).m, "
        "s:get(1):tomap{names_only = true}"
    ),
    "rows that change and change back": (
        "s:insert{1, 'x'} local a = s:get(1) s:replace{1, 'y'} local b = s:get(1) s:replace{1, 'x'} "
        "return a, b, s:get(1), s:delete(1), s:insert(a)"
    ),
    "rows of many sizes": (
        "local sizes = {} for i, size in ipairs{1, 900, 1023, 1024, 1025, 4096, 70000} do "
        "local row = s:replace{i, ('x'):rep(size), i} local found = s:get(i) "
        "table.insert(sizes, {#row[2], #found[2], #s:select(i)[1][2], #s:update(i, {{'+', 3, 1}})[2], "
        "#s:delete(i)[2]}) end return sizes"
    ),
    "more rows than a few": (
        "for i = 1, 40 do s:insert{i, 'x'} end return s:select({3}, {iterator = 'GE', limit = 16}), "
        "s:select({3}, {iterator = 'GE', limit = 17}), s:select({39}, {iterator = 'GT', limit = 16})"
    ),
    "a row that is a tuple": (
        "local t = s:insert{1, 'x'} s:delete(1) return s:insert(t), s:replace(t:update{{'=', 2, 'z'}})"
    ),
    "rows that are sparse": "return s:insert{1, 'x', nil, 5}, s:insert{2, 'y', box.NULL}",
    "tables with most places empty": (
        "local t = {1, [30] = 2} s:insert{1, 'x', t} return s:get(1), s:update(1, {{'=', 3, t}}), "
        "pcall(s.insert, s, {1, [30] = 2}), box.tuple.new{1, t}, box.tuple.new(1, t), "
        "box.tuple.new{1, 2}:transform(2, 1, t)"
    ),
    "operations that are a tuple": (
        "s:insert{1, 'x', 5} return s:update(1, box.tuple.new{{'=', 3, 6}}), "
        "s:upsert({1, 'x'}, box.tuple.new{{'=', 3, 7}}), s:get(1)"
    ),
    "calls without operations": (
        "return pcall(s.update, s, 1), pcall(s.upsert, s, {1, 'x'}, 'y'), pcall(s.upsert, s, 5, {}), "
        "pcall(s.upsert, s)"
    ),
    "options that are no table": "return pcall(s.select, s, 1, 5), pcall(s.select, s, 1, true)",
    "min and max": (
        "s:insert{1, 'x'} s:insert{2, 'y'} return s.index.sk:min(), s.index.sk:max('x'), "
        "s.index.pk:min(5), s.index.pk:max()"
    ),
    "count and len": (
        "s:insert{1, 'x'} s:insert{2, 'x'} return s:count(), s:len(), s.index.sk:count('x'), "
        "s.index.pk:count(2, {iterator = 'LT'}), s.index.pk:len()"
    ),
    "random": "s:insert{1, 'x'} return s.index.pk:random(7)",
    "update": (
        "s:insert{1, 'x', 5} return s:update(1, {{'=', 2, 'z'}, {'!', 3, 7}, {'+', 4, 1}}), "
        "s:update({1}, {{'#', 3, 1}})"
    ),
    "update of a missing row": "return s:update(99, {{'=', 2, 'z'}})",
    "update by another index": "return pcall(s.index.sk.update, s.index.sk, 'x', {{'=', 3, 1}})",
    "wrong operations": (
        "s:insert{1, 'x'} return pcall(s.update, s, 1, {{'?', 2, 1}}), pcall(s.update, s, 1, {{'+', 2, "
        "1}}), pcall(s.update, s, 1, 5), pcall(s.update, s, 1, {{'=', 9, 1}}), pcall(s.update, s, 1, "
        "{{'=', 1, 2}})"
    ),
    "upsert": "return s:upsert({1, 'x', 1}, {{'+', 3, 1}}), s:upsert({1, 'x', 1}, {{'+', 3, 1}}), s:get(1)",
    "upsert without operations": (
        "return pcall(s.upsert, s, {1, 'x'}), pcall(s.upsert, s, {1, 'x'}, {{'=', 3, 1}}, 5)"
    ),
    "delete": "s:insert{1, 'x'} return s:delete(1), s:delete(1)",
    "auto_increment": "return s:auto_increment{'x'}, s:auto_increment{'y'}, pcall(s.auto_increment, s, 5)",
    "truncate": "s:insert{1, 'x'} return s:truncate(), s:len()",
    "names of fields": (
        "s:format{{'id', 'unsigned'}, {name = 'n', type = 'string'}} s:insert{1, 'x', 5} return "
        "s:get(1).n, s:get(1):tomap(), s:get(1):tomap{names_only = true}, s:get(1).nothing, s:format()"
    ),
    "frommap": (
        "s:format{{'id', 'unsigned'}, {name = 'n', type = 'string', is_nullable = true}} return "
        "s:frommap{id = 3, n = 'f'}, s:frommap({id = 3, z = 'f'}), s:frommap{}, s:frommap({id = 3}, "
        "{table = true})"
    ),
    "pairs": (
        "for i = 1, 4 do s:insert{i, 'x'} end local r = {} for _, t in s:pairs(3, {iterator = 'LE'}) "
        "do table.insert(r, t[1]) end return r"
    ),
    "pairs while rows go": (
        "for i = 1, 9 do s:insert{i, i % 2 == 0 and 'a' or 'b'} end local r = {} for _, t in "
        "s.index.sk:pairs('a') do table.insert(r, t[1]) s:update(t[1], {{'=', 2, 'b'}}) end return r, "
        "s.index.sk:count('b')"
    ),
    "pairs while rows come": (
        "s:insert{1, 'x'} local r = {} for _, t in s:pairs() do table.insert(r, t[1]) if #r < 12 then "
        "s:replace{t[1] + 1, 'n'} end end return r"
    ),
    "pairs backwards while rows change": (
        "for i = 1, 9 do s:insert{i, 'b'} end local r = {} for _, t in s.index.sk:pairs('b', {iterator "
        "= 'REQ'}) do table.insert(r, t[1]) if t[1] == 9 then s:replace{8, 'a'} s:replace{7, 'z'} end "
        "end return r"
    ),
    "pairs with functions of luafun": (
        "for i = 1, 4 do s:insert{i, 'x'} end return s:pairs():nth(1), s:pairs():length(), "
        "s:pairs():map(function(t) return t[1] end):totable(), s.index.sk:pairs{'none'}:nth(1)"
    ),
    "large numbers": (
        "return s:insert{18446744073709551615ULL, 'x', -9223372036854775807LL, 1e300, 0.1}, "
        "s:get(18446744073709551615ULL)"
    ),
    "a size": "s:insert{1, 'x'} return s:bsize()",
    "a space that is gone": "s:drop() return (pcall(s.insert, s, {1}))",
}


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=list(SNIPPETS))
def test_are_alike(ours: LuaProcess, real: LuaProcess, snippet: str) -> None:
    assert_alike(ours, real, snippet)
