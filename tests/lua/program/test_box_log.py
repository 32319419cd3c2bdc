"""The options of `box.cfg` that concern the log."""

from __future__ import annotations

import pytest

from tests.lua.program.scripts import Program

pytestmark = [pytest.mark.process, pytest.mark.real_tarantool]

SCRIPT = """
local log, fio = require('log'), require('fio')
fio.mkdir('data')
local function try(options)
    print(pcall(box.cfg, options))
    local cfg = rawget(box, 'space') and box.cfg or {}
    print(cfg.log, cfg.log_level, cfg.log_format, log.cfg.log, log.cfg.level, log.cfg.format)
    log.warn('a warning') log.info('a line') log.verbose('in detail')
end
local function wrong()
    for _, options in ipairs{
        {log_format = 'xml'}, {log_level = 'loud'}, {log_level = {}},
    } do
        print(pcall(box.cfg, options))
    end
end
wrong()
BEFORE
try{FIRST}
wrong()
try{log = 'other.log'}
try{log_nonblock = true}
try{log_level = 'warn'}
try{log_format = 'json', log_level = 6}
try{too_long_threshold = 1}
os.exit()
"""

ALIKE = ("a warning", "a line", "in detail")


def _lines(program: Program) -> list[str]:
    """The lines of the script in the log, without times and places."""
    found = list(program.folder.rglob("*.log"))
    texts = [line for path in found for line in path.read_text().splitlines()]
    for path in [*found, *program.folder.rglob("*.snap"), *program.folder.rglob("*.xlog")]:
        path.unlink()
    return [
        next(text for text in ALIKE if text in line) for line in texts if any(map(line.__contains__, ALIKE))
    ]


@pytest.mark.parametrize(
    ("before", "first"),
    [
        ("", "log = 'a.log', work_dir = 'data'"),
        ("", "log = 'file:a.log', log_level = 6, log_format = 'json'"),
        ("log.cfg{log = 'b.log', level = 4}", "log_level = 5"),
    ],
)
def test_are_those_of_a_real_tarantool(our: Program, tarantool: Program, before: str, first: str) -> None:
    script = SCRIPT.replace("BEFORE", before).replace("FIRST", first)
    outcomes = []
    for program in (our, tarantool):
        outcome = program.run_script(script)
        outcomes.append((outcome.status, outcome.output, _lines(program)))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][2] != []


def test_a_destination_that_cannot_be_opened_is_an_error(our: Program) -> None:
    outcome = our.run_script("print(pcall(box.cfg, {log = 'no/such/folder'})) os.exit()")
    assert outcome.output == "false\tcan't open log no/such/folder: No such file or directory\n"
