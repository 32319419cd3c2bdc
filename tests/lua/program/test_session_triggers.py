"""Triggers of sessions: their order, their rights, and that they can wait."""

from __future__ import annotations

import pytest

from tests.lua.program.scripts import Program, comparable

SCRIPT = """
local fiber, log = require('fiber'), {}
local function note(text)
    local s = box.session
    log[#log + 1] = table.concat({text, s.user(), s.effective_user(), tostring(s.id() > 1)}, ' ')
end
local function first() note('first begins') WORK note('first ends') end
local function second() note('second') end
local done = fiber.channel(1)
for _, event in ipairs{'on_connect', 'on_auth', 'on_disconnect'} do box.session[event](second) end
box.session.on_disconnect(function() done:put(true) end, nil)
box.cfg{log = '/dev/null', wal_mode = 'none', memtx_memory = 32 * 1024 * 1024, listen = '127.0.0.1:0'}
box.session.on_disconnect(second, second)
for _, event in ipairs{'on_connect', 'on_auth', 'on_disconnect'} do box.session[event](first) end
box.schema.user.create('u', {password = 'p'})
local c = require('net.box').connect('u:p@' .. box.info.listen)
note('connected ' .. tostring(c:ping()))
c:close()
done:get(10)
fiber.sleep(0.05)
print(table.concat(log, '\\n'))
os.exit(0)
"""

WORK = {
    "which do not wait": "",
    # those of on_connect and on_auth do not hold up a client here
    "which wait": "if #log > 6 then fiber.sleep(0.01) end",
    "which act as another user": "box.session.su('guest', note, 'as guest')",
}


@pytest.mark.parametrize("work", WORK.values(), ids=list(WORK))
def test_is_alike(our: Program, tarantool: Program, work: str) -> None:
    script = SCRIPT.replace("WORK", work)
    expected = comparable(tarantool.run_script(script)).output
    for file in our.folder.glob("*.snap"):
        file.unlink()
    assert comparable(our.run_script(script)).output == expected
    assert "second" in expected


LOGINS = """
box.cfg{log = '/dev/null', wal_mode = 'none', memtx_memory = 32 * 1024 * 1024, listen = '127.0.0.1:0'}
box.schema.user.create('u', {password = ''})
local connect, address = require('net.box').connect, box.info.listen
box.session.on_auth(function(user, is_ok) print(user, is_ok) end)
for _, login in ipairs{'', 'u@', 'u:@', 'u:wrong@', 'guest@', 'guest:@'} do
    local c = connect(login .. address)
    print(login, c.state)
    c:close()
end
os.exit(0)
"""


def test_logins_of_net_box_are_alike(our: Program, tarantool: Program) -> None:
    expected = comparable(tarantool.run_script(LOGINS)).output
    for file in our.folder.glob("*.snap"):
        file.unlink()
    assert comparable(our.run_script(LOGINS)).output == expected
    assert "guest\ttrue" in expected
