"""The module log, and the lines on standard error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lua.program.scripts import Program, comparable

FORMATS = ("", "log.cfg{}", "log.cfg{format = 'json'}", "log.cfg{level = 6}", "log.log_format('plain')")

MESSAGES = """
for _, name in ipairs{'error', 'warn', 'info', 'verbose', 'debug'} do log[name]('at level %s', name) end
log.info('no arguments %d %s %%')
log.warn('%d %s %5.2f', 5, 'text', 1 / 3)
log.warn(5) log.warn(2.5) log.warn(true) log.warn(nil) log.warn() log.warn(5, 6) log.warn('%s %s', nil, true)
log.warn(1ULL) log.warn('%s', -5LL)
log.warn('') log.warn('two\\nlines') log.warn('zero\\0byte') log.warn('ü \\255 "quoted" / \\\\ \\1 \\127 \\t')
log.warn({x = 5}) log.warn({x = {1, 'ü/"'}}) log.warn({message = 'its message'}) log.warn({level = 1, x = 2})
log.warn({x = 'a\\0b'}) log.warn(setmetatable({x = 1}, {__serialize = 'map'}))
log.warn(setmetatable({x = 1}, {__tostring = function() return 'not this' end}))
local function inner() log.error('in a function') end
inner()
setmetatable({}, {__index = function() log.warn('in a metamethod') end}).x = nil
coroutine.wrap(function() log.warn('in a coroutine') end)()
loadstring("require('log').warn('in a chunk')")()
loadstring("require('log').warn('in a named chunk')", '=name')()
loadstring("require('log').warn('in a file')", '@/some/folder/file.lua')()
pcall(log.warn, 'by pcall')
local fiber = require('fiber')
fiber.create(function() fiber.self():name('my fiber') log.warn('in a fiber') error('of a fiber') end)
fiber.create(function() error({}) end)
fiber.self():name('') log.warn('without a name')
error('at the end')
"""

LEVELS = """
local function try(...)
    print(pcall(...))
    log.error('error') log.info('info') log.debug('debug')
    print(log.cfg.level)
end
for _, level in ipairs{
    7, 'debug', 'no such', 0, -5, 100, 1.5, {}, '3', true, 'fatal', 'syserror', 'crit', 'warn', 'verbose',
} do
    try(log.level, level)
end
try(log.level) try(log.level, nil)
try(log.log_format, 'no such') try(log.log_format) try(log.log_format, 5)
print(log.pid(), log.rotate())
"""

OPTIONS = """
local function try(options)
    print(pcall(log.cfg, options))
    print(log.cfg.level, log.cfg.format, log.cfg.log, log.cfg.nonblock)
    log.warn('a warning')
end
for _, options in ipairs{
    {level = 'no such'}, {level = {}}, {level = true}, {format = 'no such'}, {format = 5}, {nonblock = 5},
    {level = 4, format = 'no such'}, {level = 6, 7}, {level = 'warn', format = 'json'}, {},
    {format = 'plain'}, {no_such_option = 1}, {log = ''}, {log = 'other.log'}, {nonblock = true},
    {nonblock = false}, {level = 5.7}, {format = 'json'},
} do
    try(options)
end
try(nil)
"""


@pytest.mark.real_tarantool
@pytest.mark.parametrize("configuration", FORMATS)
def test_lines_are_alike(our: Program, tarantool: Program, configuration: str) -> None:
    script = f"local log = require('log') {configuration} {MESSAGES}"
    ours, theirs = comparable(our.run_script(script)), comparable(tarantool.run_script(script))
    assert ours == theirs


@pytest.mark.real_tarantool
@pytest.mark.parametrize("text", [LEVELS, OPTIONS])
def test_settings_are_alike(our: Program, tarantool: Program, text: str) -> None:
    script = "local log = require('log') " + text
    assert comparable(our.run_script(script)) == comparable(tarantool.run_script(script))


@pytest.mark.real_tarantool
@pytest.mark.parametrize("log", ["a.log", "file:a.log", "| cat > a.log", "pipe:cat > a.log"])
def test_the_log_goes_to_its_destination(our: Program, tarantool: Program, log: str) -> None:
    script = f"""
    local log = require('log')
    log.cfg{{log = '{log}'}} log.info('first') log.warn('second')
    print(log.pid() > 0, log.cfg.log)
    """
    outcomes, texts = [], []
    for program in (our, tarantool):
        outcomes.append(program.run_script(script))
        path = program.folder / "a.log"
        texts.append([line.partition(" main")[2] for line in path.read_text().splitlines()])
        path.unlink()
    assert outcomes[0].output == outcomes[1].output
    assert texts[0] == texts[1]


def test_a_destination_that_cannot_be_opened_is_an_error(our: Program) -> None:
    for log, message in (
        ("/no/such/folder/a.log", "can't open log /no/such/folder/a.log: No such file or directory"),
        ("nosuch:x", "expecting a file name or a prefix, such as '|', 'pipe:', 'syslog:'"),
    ):
        outcome = our.run_script(f"print(pcall(require('log').cfg, {{log = '{log}'}}))")
        assert outcome.output.startswith("false\t")
        assert outcome.output.endswith(f": {message}\n")


def test_tables_are_members_of_a_line_in_json(our: Program) -> None:
    script = """
    local log = require('log')
    log.cfg{format = 'json'}
    log.info({x = 5}) log.info({}) log.info({1, 2})
    """
    lines = [json.loads(line) for line in our.run_script(script).errors.splitlines()]
    assert lines[0]["x"] == 5
    assert "message" not in lines[1]
    assert lines[2]["message"] == "[1,2]"


def test_a_file_that_was_moved_is_opened_anew(our: Program, tmp_path: Path) -> None:
    script = """
    local log = require('log')
    log.cfg{log = 'a.log'} log.info('one')
    os.rename('a.log', 'b.log')
    log.rotate() log.info('two')
    """
    assert our.run_script(script).errors == ""
    assert "one" in (tmp_path / "b.log").read_text()
    assert "two" in (tmp_path / "a.log").read_text()
