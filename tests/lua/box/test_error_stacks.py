"""Errors that clients get from Lua code: with their types, their fields and their causes."""

from __future__ import annotations

import pytest

from tests.lua.box.alike import assert_alike
from tests.lua.snippets import LuaProcess

SNIPPET = """
box.schema.user.create('u', {{password = 'p', if_not_exists = true}})
box.schema.user.grant('u', 'execute', 'universe', nil, {{if_not_exists = true}})
box.cfg{{listen = '127.0.0.1:0'}}
local c = require('net.box').connect('u:p@' .. box.info.listen)
local _, e = pcall(c.eval, c, [[{text}]])
local r = {{}}
while e ~= nil do
    local fields = e:unpack()
    fields.trace, fields.prev = nil
    r[#r + 1] = {{fields, type(e.trace[1].line), type(e.trace[1].file)}}
    e = e.prev
end
c:close()
box.cfg{{listen = ''}}
return r
"""

TEXTS = {
    "a text": "error('x')",
    "a text that is no UTF-8, with a zero": "error('\\255\\0z')",
    "no text": "error()",
    "a syntax error": "not lua",
    "a code": "box.error(box.error.UNKNOWN)",
    "a type of the user": "box.error{code = 5, reason = 'q', type = 'Mine'}",
    "a cause": (
        "local cause, e = box.error.new(box.error.UNKNOWN), box.error.new(box.error.TIMEOUT) "
        "e:set_prev(cause) error(e)"
    ),
    "a negative code": "error(box.error.new{code = 2 ^ 31, reason = 'z'})",
    "a forbidden function": "box.schema.func.create('forbidden')",
    "a forbidden change": "box.space.test:insert{1}",
    "an error of the system": "local _, e = require('fio').open('/no/such/file') error(e)",
    "a timeout": "box.ctl.wait_ro(0.01)",
    "a cancellation": "require('fiber').self():cancel() require('fiber').testcancel()",
    "a transaction that is left open": "box.begin()",
    "a connection that fails": "require('net.box').connect('127.0.0.1:1'):eval('return 1')",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_are_alike(ours: LuaProcess, real: LuaProcess, text: str) -> None:
    assert_alike(ours, real, SNIPPET.format(text=text))
