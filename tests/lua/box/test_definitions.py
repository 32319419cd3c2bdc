"""Definitions of spaces, indexes, sequences, users and functions, made by Lua code."""

from __future__ import annotations

import pytest

from tests.lua.box.alike import assert_alike
from tests.lua.snippets import LuaProcess

SNIPPETS = {
    "a space": (
        "return s.name, s.engine, s.field_count, s.temporary, s.is_local, s.enabled, box.space.test == "
        "s, box.space[s.id] == s"
    ),
    "an index": (
        "return s.index.sk.name, s.index.sk.unique, s.index.sk.type, s.index.sk.parts, s.index[1] == "
        "s.index.sk, s.index.sk.id"
    ),
    "an index with a path": (
        "s:create_index('j', {unique = false, parts = {{'[3].a', 'unsigned', is_nullable = true}}}) "
        "s:insert{1, 'x', {a = 7}} return s.index.j.parts, s.index.j:select(7)"
    ),
    "what there is not": "return box.space.nothing, s.index.nothing, s.nothing",
    "a name that is taken": (
        "return pcall(box.schema.space.create, 'test'), select(2, box.schema.space.create('test', "
        "{if_not_exists = true}))"
    ),
    "whether something is created": (
        "local d, q = box.schema, {if_not_exists = true} local r = {select(2, d.create_space('new')), "
        "select('#', d.space.create('new', q)), select('#', box.space.new:create_index('pk')), "
        "select(2, box.space.new:create_index('pk', q)), select('#', d.sequence.create('new')), "
        "select(2, d.sequence.create('new', q))} box.space.new:drop() box.sequence.new:drop() return r"
    ),
    "wrong options": (
        "return pcall(box.schema.space.create, 'q', {nope = 1}), pcall(box.schema.space.create, 'q', "
        "{engine = 'zz'}), pcall(box.schema.space.create)"
    ),
    "rename and drop": (
        "s:rename('other') local gone = box.space.test s:rename('test') return gone, "
        "s.index.sk:drop(), s.index.sk, s:drop(), box.space.test"
    ),
    "alter": (
        "s.index.sk:alter{unique = true} local now = s.index.sk.unique s.index.sk:rename('renamed') "
        "return now, s.index.renamed.name, s.index.sk"
    ),
    "a definition that is undone": (
        "box.begin() local r = {pcall(box.schema.space.create, 'undone')} box.rollback() return r[1], "
        "box.space.undone"
    ),
    "a sequence": (
        "local q = box.schema.sequence.create('q', {if_not_exists = true}) q:reset() return q:next(), "
        "q:next(), box.sequence.q:set(10), box.sequence.q:next(), q:drop(), box.sequence.q"
    ),
    "a sequence of an index": (
        "s:drop() s = box.schema.space.create('test') s:create_index('pk', {sequence = true}) return "
        "s:insert{box.NULL, 'x'}, s:insert{box.NULL, 'y'}"
    ),
    "users": (
        "box.schema.user.create('u', {if_not_exists = true}) return box.schema.user.exists('u'), "
        "pcall(box.schema.user.create, 'u'), box.schema.user.drop('u'), box.schema.user.exists('u')"
    ),
    "grants": (
        "box.schema.user.create('u') box.schema.user.grant('u', 'read', 'space', 'test') local r = "
        "{pcall(box.schema.user.grant, 'u', 'read', 'space', 'test')} box.schema.user.drop('u') return "
        "r"
    ),
    "once": (
        "local n, key = 0, tostring(s.id) box.once(key, function(a) n = n + a end, 2) box.once(key, "
        "function(a) n = n + a end, 2) return n, pcall(box.once, 5)"
    ),
    "a stored function": (
        "box.schema.func.create('sum', {body = [[function(a, b) return a + b end]], is_deterministic = "
        "true}) local f = box.func.sum local r = {f:call{1, 2}, f.name, f.language, f.body, "
        "f.is_deterministic, f.is_sandboxed} f:drop() return r, box.func.sum"
    ),
    "a body that is no function": (
        "return pcall(box.schema.func.create, 'bad', {body = 'garbage('}), "
        "pcall(box.schema.func.create, 'bad', {body = '5'}), box.func.bad"
    ),
    "a sandbox": (
        "box.schema.func.create('sb', {body = [[function() return os, print ~= nil, box, string.format "
        "~= nil, require end]], is_sandboxed = true}) local r = {box.func.sb:call()} "
        "box.func.sb:drop() return r, pcall(box.schema.func.create, 'sb', {is_sandboxed = true})"
    ),
    "errors of a body": (
        "box.schema.func.create('err', {body = [[function(code) if code then box.error{code = code, "
        "reason = 'r'} end error('boo') end]]}) local r = {pcall(box.func.err.call, box.func.err)} "
        "local _, e = pcall(box.func.err.call, box.func.err, {77}) box.func.err:drop() return r, "
        "e.code, e.message"
    ),
    "a function without a body": (
        "function global_function(a) return a, 2 end box.schema.func.create('global_function') local r "
        "= {box.func.global_function:call{7}} box.func.global_function:drop() return r"
    ),
    "wrong options of a function": (
        "return pcall(box.schema.func.create, 'q', {nope = 1}), pcall(box.schema.func.create, 'q', "
        "{body = 5})"
    ),
}


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=list(SNIPPETS))
def test_are_alike(ours: LuaProcess, real: LuaProcess, snippet: str) -> None:
    assert_alike(ours, real, snippet)
