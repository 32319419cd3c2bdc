"""Consoles of clients: their sessions, and consoles that are connected to other servers."""

from __future__ import annotations

import pytest

from tests.lua.program.scripts import Program, assert_output_alike

PREAMBLE = r"""
local console, fiber, socket, fio = require('console'), require('fiber'), require('socket'), require('fio')
local function path(name) return fio.pathjoin(fio.cwd(), name) end
local server = console.listen(path('console.sock'))
local client
local function open()
    client = socket.tcp_connect('unix/', path('console.sock'))
    return client:read(128)
end
local function ask(text, ...)
    client:write(text:format(...) .. '\n')
    local answer = client:read('\n...\n') or 'closed'
    print((answer:gsub('builtin[/%w]*console.lua:%d+', 'builtin'):gsub('%(socket%)', '')))
end
open()
"""
CONFIGURE = (
    " box.cfg{log_level = 2, wal_mode = 'none', memtx_memory = 32 * 1024 * 1024, listen = path('box.sock')} "
)
SESSION = "ask('box.session.type(), box.session.user(), box.session.euid()') "
CONNECT = "ask([[require('console').connect('%s')]], path('box.sock')) "
CONNECT_USER = "ask([[require('console').connect('some:secret@%s')]], path('box.sock')) "
USER = (
    "box.schema.user.create('some', {password = 'secret'}) "
    "box.schema.user.grant('some', 'execute', 'universe') "
)

SCRIPTS = {
    "a session before box.cfg": SESSION,
    "a session": CONFIGURE + SESSION + "ask('box.session.id() ~= %s', box.session.id())",
    "a session that began before box.cfg": SESSION + CONFIGURE + SESSION,
    "su": CONFIGURE + USER + "ask([[box.session.su('some')]]) " + SESSION,
    "push": "ask('box.session.push{1}') ask('') for _, text in ipairs{'', '1, 2', '1, 2, 3'} do "
    "ask('box.session.push(%s)', text) end",
    "push as Lua": r"client:write('\\set output lua\n') print(client:read(';')) "
    "client:write('box.session.push{1, {a = 2}}\\n') print(client:read(';'), client:read(';'))",
    "triggers": CONFIGURE + "local s, seen = box.session, {} local function note(name) return function(...) "
    "table.insert(seen, {name, s.type(), s.user(), s.peer() ~= nil, ...}) end end "
    "s.on_connect(note('connect')) s.on_auth(note('auth')) s.on_disconnect(note('disconnect')) "
    "open() ask('1') client:close() while #seen < 3 do fiber.yield() end print(require('json').encode(seen))",
    "a trigger that refuses": CONFIGURE
    + "box.session.on_auth(function() error('refused') end) open() print(client:read(1024) == '')",
    "connect outside of a console": "print((select(2, pcall(console.connect)):gsub('^.-: ', '')))",
    "connect to nothing": "for _, place in ipairs{'{}', '', [['/']], [['/no']], [['127.0.0.1:1']]} do "
    "ask([[require('console').connect(%s)]], place) end",
    "connect without rights": CONFIGURE + CONNECT,
    "connect": CONFIGURE
    + USER
    + CONNECT_USER
    + SESSION
    + r"ask('1, 2') ask([[error('no')]]) ask('for') ask('\\help') ask('\\set delimiter #') "
    + "ask([[box.space._schema.name]]) client:write('~.\\n') "
    + SESSION,
    "connect to a console": CONFIGURE
    + "ask([[require('console').connect('%s')]], path('console.sock')) ask('1, 2') "
    + SESSION
    + "client:write('~.\\n') "
    + SESSION,
    "the state of a console that is connected": CONFIGURE
    + USER
    + "function grab() state = fiber.self().storage.console end rawset(_G, 'fiber', fiber) ask('grab()') "
    + CONNECT_USER
    + "print(state.remote.host, state.remote.port == path('box.sock')) "
    "print(state.prompt == 'unix/:' .. path('box.sock')) "
    "client:write('~.\\n') ask('1') print(state.remote, state.prompt)",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=list(SCRIPTS))
def test_is_alike(our: Program, tarantool: Program, script: str) -> None:
    assert_output_alike(our, tarantool, PREAMBLE + script + " os.exit(0)")
