"""`tarantoolctl connect` to the binary port: a session on a terminal is that with a real Tarantool."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.programs import require_program
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool
from tests.running_server import RunningServer
from tests.tools.console.terminal_process import TerminalProcess

pytestmark = [pytest.mark.process, pytest.mark.real_tarantool]

COMMANDS: Final = r"""
1
1, 'two', nil, {3, {4}}, {a = {b = 1}}
return
x = 5
x
x = nil
nil
'ü', 'two\nlines', '\255', ''
2^53, 1/0, -1/0, 0/0, 1.5, 5LL, 18446744073709551615ULL
error('bad')
error({code = 5})
error()
nothing.x
for i = 1, 2 do ␤ x = i ␤ end
x, ␤ 2
break 1
local y = 1 return y + 1
y
function double(n) return 2 * n end
double(21)
double
box.schema.space.create('people', {format = {{'id', 'unsigned'}, {'name', 'string'}}}).name
box.space.people:create_index('pk').name
box.space.people:create_index('name', {parts = {'name'}, unique = false}).name
box.space.people:insert{1, 'Ann'}
box.space.people:insert{2, 'Bob', {tags = {'a', 'b'}}}
box.space.people:insert{1, 'again'}
box.space.people:insert{'three', 'Cid'}
box.space.people:insert{3}
box.space.people:replace{3, 'Cid', box.NULL, 1.5}
box.space.people:select()
box.space.people:select({}, {limit = 1, iterator = 'REQ'})
box.space.people:get(2)
box.space.people:get{2}:tomap{names_only = true}.name
box.space.people:get(99)
box.space.people.index.name:select{'Ann'}
box.space.people:update({1}, {{'=', 'name', 'Anna'}, {'!', 3, 'x'}})
box.space.people:update({1}, {{'=', 'none', 1}})
box.space.people:upsert({4, 'Dan'}, {{'=', 2, 'no'}})
box.space.people:delete{3}
box.space.people:count(), box.space.people:len()
box.space.people.index.pk:max()
for _, t in box.space.people:pairs() do t:unpack() end
box.begin() box.space.people:insert{9, 'gone'} box.rollback() return box.space.people:get(9)
box.atomic(function() return box.space.people:insert{10, 'kept'} end)
pcall(box.space.people.insert, box.space.people, {10, 'twice'})
box.tuple.new{1, {2, 3}, 'x'}
box.error.new(box.error.NO_SUCH_SPACE, 'x').message
box.error(box.error.NO_SUCH_USER, 'x')
box.session.user(), box.session.type(), box.session.id() > 0
box.info.status, box.info.ro
type(box.cfg), box.cfg.wal_mode
box.schema.user.create('u', {password = 'p'}) return box.schema.user.exists('u')
box.schema.user.create('u')
require('fiber').sleep(0.001) return 'slept'
require('json').encode({1, {a = 2}})
setmetatable({1}, {__serialize = function() return 'shown' end})
\set output lua
1, {a = 2}, 'text'
box.space.people:select{1}
error('bad')
\set output lua,block
{1, {2}}
\set output yaml
\set language pascal
\nothing
\help
require('console').delimiter()
('x'):rep(300)
box.space.people:drop()
box.space.people
""".strip().splitlines()

LINE_END: Final = " ␤ "
"""Between the lines of a command that goes on in the next one."""

NEXT_PROMPT: Final = "    > "

_DIFFERENT: Final = (
    (re.compile(r"builtin/[\w./]+\.lua:\d+|\[string \"[^\"]*\"\]:1"), "PLACE"),
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("here")
    (folder / "init.lua").write_text(f"box.cfg{{wal_mode = 'none'}}\n{GUEST_IS_SUPER}")
    with RunningServer(folder, [str(folder / "init.lua")]) as server:
        yield server.address


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RealTarantool(tmp_path_factory.mktemp("there"), GUEST_IS_SUPER) as tarantool:
        yield tarantool.address


def session(address: str, home: Path) -> list[str]:
    """Type the commands, and return what is shown up to each next prompt, and at the end."""
    prompt = f"{address}> "
    command = [require_program("tarantoolctl", "tarantool"), "connect", address]
    with TerminalProcess(command, home) as process:
        shown = [process.wait_for(prompt)]
        for typed in COMMANDS:
            *lines, last = typed.split(LINE_END)
            for line in lines:
                process.enter(line)
                process.wait_for(NEXT_PROMPT)
            process.enter(last)
            shown.append(process.wait_for(f"\n{prompt}"))
        process.type("\x04")
        status = process.wait()
        return [*(comparable(each.replace(address, "ADDRESS")) for each in shown), f"status {status}"]


def comparable(shown: str) -> str:
    """What is shown, without what differs between any two servers; words go on in another line elsewhere."""
    for pattern, replacement in _DIFFERENT:
        shown = pattern.sub(replacement, shown)
    return " ".join(shown.split()) if "PLACE" in shown else shown


def test_a_session_on_a_terminal(ours: str, theirs: str, tmp_path: Path) -> None:
    here, there = session(ours, tmp_path), session(theirs, tmp_path)
    assert len(here) == len(COMMANDS) + 2 > 60
    for command, our_answer, their_answer in zip(["connect", *COMMANDS, "end"], here, there, strict=True):
        assert (command, our_answer) == (command, their_answer)


@pytest.mark.parametrize(
    "text", ["return 1, {2}\n", "local x = 1\nreturn x\n", "error('bad')", "for", "1", ""]
)
def test_a_script_on_standard_input(ours: str, theirs: str, text: str) -> None:
    def run(address: str) -> tuple[int, str, str]:
        command = [require_program("tarantoolctl", "tarantool"), "connect", address]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr.replace(address, "ADDRESS")

    assert run(ours) == run(theirs)
