"""console.start: a console on a terminal, or on another standard input."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import REPOSITORY, require_program
from tests.tools.console.terminal_process import TerminalProcess

pytestmark = pytest.mark.process

OURS = (sys.executable, "-m", "tests.lua.console.run_script")
ENVIRONMENT = {"PYTHONPATH": str(REPOSITORY)}
SCRIPT = "require('console').start() print('after it') io.flush() os.exit(0)"
PROMPT, NEXT_PROMPT = "tarantool> ", "         > "

SESSION = """\
1, nil
function double(x)
return 2 * x
end
double(4)

error('bad')
for i = 1, 2 do
i = = 1
x = {
}
[[a
b]]
\\set output lua
{1, a = 2}
\\set delimiter ;
1,
2;
\\set delimiter
\\nothing
print('printed')
require('console').delimiter()
require('console').ac(false)
require('console').start()
require('fiber').self().storage.console.prompt
\\set output yaml
\\help
last"""


@pytest.fixture
def console(tmp_path: Path) -> Iterator[TerminalProcess]:
    script = tmp_path / "start.lua"
    script.write_text(SCRIPT)
    with TerminalProcess([*OURS, script], tmp_path, ENVIRONMENT) as process:
        process.wait_for(PROMPT)
        yield process


def test_a_statement_is_answered(console: TerminalProcess) -> None:
    assert console.ask("1, 2", PROMPT) == "---\n- 1\n- 2\n...\n\n"


def test_an_incomplete_statement_goes_on_in_the_next_line(console: TerminalProcess) -> None:
    assert console.ask("for i = 1, 2 do", NEXT_PROMPT) == ""
    assert console.ask("end", PROMPT) == "---\n...\n\n"


def test_fibers_run_while_the_console_waits(console: TerminalProcess) -> None:
    console.ask("ticks = require('fiber').channel()", PROMPT)
    console.enter(
        "require('fiber').create(function() require('fiber').sleep(0.01) print('ticked') end) return 5"
    )
    console.wait_for("ticked")


def test_a_delimiter_ends_statements(console: TerminalProcess) -> None:
    console.ask("\\set delimiter ;", PROMPT)
    console.ask("1 +", NEXT_PROMPT)
    assert console.ask("2;", PROMPT) == "---\n- 3\n...\n\n"


def test_lines_are_kept(console: TerminalProcess, tmp_path: Path) -> None:
    console.ask("1", PROMPT)
    console.ask("", PROMPT)
    console.ask("'ü'", PROMPT)
    assert (tmp_path / ".tarantool_history").read_text() == "1\n'ü'\n"


def test_the_arrow_key_brings_earlier_lines_back(tmp_path: Path) -> None:
    script = tmp_path / "start.lua"
    script.write_text(SCRIPT)
    (tmp_path / ".tarantool_history").write_text("40 + 2\n")
    with TerminalProcess([*OURS, script], tmp_path, {**ENVIRONMENT, "TERM": "xterm"}) as process:
        process.wait_for("tarantool>")
        process.type_until("\x1b[A", "40 + 2")
        process.enter("")
        process.wait_for("- 42\n")


def test_tab_completes_names(tmp_path: Path) -> None:
    script = tmp_path / "start.lua"
    script.write_text(SCRIPT)
    with TerminalProcess([*OURS, script], tmp_path, {**ENVIRONMENT, "TERM": "xterm"}) as process:
        process.wait_for("tarantool>")
        process.type("string.fo\t")
        process.wait_for("rmat(")


def test_quit_ends_the_console(console: TerminalProcess) -> None:
    console.enter("\\quit")
    console.wait_for("after it\n")
    assert console.wait() == 0


def test_control_d_ends_the_console(console: TerminalProcess) -> None:
    console.type("\x04")
    console.wait_for("after it\n")
    assert console.wait() == 0


def test_control_c_is_a_signal(console: TerminalProcess) -> None:
    console.type("\x03")
    console.wait()
    assert "after it" not in console.output


def _run(command: list[str | Path], text: str, home: Path) -> str:
    done = subprocess.run(
        command,
        input=text.encode(),
        cwd=REPOSITORY,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    return done.stdout.decode()


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "text", [SESSION, f"{SESSION}\n", "", "for", "for\n", "\\quit\n1\n", "1\n'\\195\\188', 'ü'\n"]
)
def test_another_standard_input_is_answered_as_by_a_real_tarantool(tmp_path: Path, text: str) -> None:
    script = tmp_path / "start.lua"
    script.write_text(SCRIPT)
    ours = _run([*OURS, script], text, tmp_path)
    theirs = _run([require_program("tarantool", "tarantool"), script], text, tmp_path)
    assert _comparable(ours) == _comparable(theirs)


def _comparable(output: str) -> str:
    """An output without the lines of modules."""
    return re.sub(r"builtin/[\w./]+\.lua:\d+", "builtin", output)


def test_hooks_and_fields_of_a_console_can_be_replaced(tmp_path: Path) -> None:
    script = tmp_path / "start.lua"
    script.write_text("""\
local console = require('console')
console.on_start(function(self)
    self.prompt = 'other'
    self.eval = function(_, line) if line ~= 'end' then return 'got ' .. line end end
end)
console.start()
print('after it') io.flush() os.exit(0)
""")
    with TerminalProcess([*OURS, script], tmp_path, ENVIRONMENT) as process:
        process.wait_for("other> ")
        assert process.ask("a line", "other> ") == "got a line\n"
        process.enter("end")
        process.wait_for("after it\n")
