"""`iproto-server connect` with a real Tarantool."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import Outcome, run
from tests.real_tarantool import RealTarantool
from tests.tools.console.terminal_process import TerminalProcess

pytestmark = [pytest.mark.real_tarantool, pytest.mark.process]

APPLICATION = """\
box.schema.user.passwd('admin', 'secret')
box.schema.user.create('reader', {password = 'reader'})
box.schema.space.create('people'):create_index('pk')
for id = 1, 100 do box.space.people:insert{id, 'name ' .. id} end
"""

CONNECT = (sys.executable, "-m", "iproto_server", "connect")


@pytest.fixture(scope="module")
def tarantool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTarantool]:
    with RealTarantool(tmp_path_factory.mktemp("tarantool"), APPLICATION) as server:
        yield server


def run_text(tarantool: RealTarantool, text: str) -> Outcome:
    """Run a text that is the standard input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return run("connect", f"admin:secret@{tarantool.address}")


# -- scripts --


def test_a_script_prints_what_it_returns(tarantool: RealTarantool) -> None:
    assert run_text(tarantool, "local x = 2\nreturn x, {x}\n") == (0, "---\n- 2\n- - 2\n...\n", [])


def test_an_error_is_a_line_and_status_1(tarantool: RealTarantool) -> None:
    assert run_text(tarantool, "error('bad')") == (1, "", ["bad"])


def test_commands_precede_the_statement(tarantool: RealTarantool) -> None:
    status, output, _ = run_text(tarantool, "\\set output table\nbox.space.people:select({}, {limit = 1})")
    assert status == 0
    assert output == (
        "┌───┬────────┐\n│ 1 │ 2      │\n├───┼────────┤\n│ 1 │ name 1 │\n└───┴────────┘\n1 row\n"
    )
    assert run_text(tarantool, "\\set output lua\n1, {2}") == (0, "1, {2};\n", [])


def test_an_unknown_command_is_an_error(tarantool: RealTarantool) -> None:
    assert run_text(tarantool, "\\nothing\n1") == (
        1,
        "",
        ["Invalid command \\nothing. Type \\help for help."],
    )


def test_sql_is_another_language(tarantool: RealTarantool) -> None:
    status, output, _ = run_text(tarantool, "\\set output table\n\\set language sql\nSELECT 1 AS a")
    assert (status, output) == (0, "┌───┐\n│ A │\n├───┤\n│ 1 │\n└───┘\n1 row\n")
    status, output, errors = run_text(tarantool, "\\set language sql\nSELECT nothing")
    assert (status, output) == (1, "")
    assert "NOTHING" in errors[0]


def test_pushed_values_are_lines_on_stderr(tarantool: RealTarantool) -> None:
    status, output, errors = run_text(tarantool, "box.session.push({1, 'a'}) return 7")
    assert (status, output, errors) == (0, "---\n- 7\n...\n", ['pushed: [1,"a"]'])


def test_nothing_is_no_statement(tarantool: RealTarantool) -> None:
    assert run_text(tarantool, "") == (0, "", [])


# -- errors of the connection --


def refused(uri: str) -> Outcome:
    return run("connect", uri)


def test_nobody_listens() -> None:
    assert refused("127.0.0.1:1") == (1, "", ["cannot connect to 127.0.0.1:1: Connection refused"])


def test_a_wrong_password(tarantool: RealTarantool) -> None:
    assert refused(f"admin:wrong@{tarantool.address}").errors == [
        f"{tarantool.address} refuses the login of user admin: Incorrect password supplied for user 'admin'"
    ]


def test_a_user_without_the_right_to_eval(tarantool: RealTarantool) -> None:
    assert refused(f"reader:reader@{tarantool.address}").errors == [
        f"{tarantool.address} refuses the statements of reader: "
        "Execute access to universe '' is denied for user 'reader'"
    ]


# -- the terminal --


@pytest.fixture
def terminal(tarantool: RealTarantool, tmp_path: Path) -> Iterator[tuple[TerminalProcess, str]]:
    prompt = f"{tarantool.address}> "
    with TerminalProcess([*CONNECT, f"admin:secret@{tarantool.address}"], tmp_path) as process:
        process.wait_for(f"connected to {tarantool.address}\n")
        process.wait_for(prompt)
        yield process, prompt


Terminal = tuple[TerminalProcess, str]


def test_a_statement_is_answered(terminal: Terminal) -> None:
    process, prompt = terminal
    assert process.ask("1, 2", prompt) == "---\n- 1\n- 2\n...\n\n"


def test_an_incomplete_statement_goes_on(terminal: Terminal) -> None:
    process, prompt = terminal
    next_prompt = f"{'':{len(prompt) - 2}}> "
    assert process.ask("for i = 1, 2 do", next_prompt) == ""
    assert process.ask("end return 5", prompt) == "---\n- 5\n...\n\n"


def test_control_c_drops_what_was_typed(terminal: Terminal) -> None:
    process, prompt = terminal
    process.ask("for i = 1, 2 do", "> ")
    process.type("\x03")
    process.wait_for(prompt)
    assert process.ask("6", prompt) == "---\n- 6\n...\n\n"


def test_control_c_stops_waiting_for_an_answer(terminal: Terminal) -> None:
    process, prompt = terminal
    assert process.ask("\\set output lua", prompt) == "true;\n"
    process.enter("box.session.push('begun') require('fiber').sleep(100)")
    process.wait_for('pushed: "begun"\n')
    process.interrupt()
    process.wait_for("interrupted: the server may go on with the statement\n")
    process.wait_for(prompt)
    assert process.ask("{7}", prompt) == "{7};\n"


def test_tuples_are_shown_as_tables(terminal: Terminal) -> None:
    process, prompt = terminal
    assert process.ask("\\set output table", prompt) == ""
    assert "│ 1 │ name 1 │\n" in process.ask("box.space.people:get(1)", prompt)


def test_a_delimiter_ends_statements(terminal: Terminal) -> None:
    process, prompt = terminal
    process.ask("\\set delimiter ;", prompt)
    process.ask("1 +", "> ")
    assert process.ask("2;", prompt) == "---\n- 3\n...\n\n"


def test_help_is_that_of_the_command(terminal: Terminal) -> None:
    process, prompt = terminal
    assert "\\set output table" in process.ask("\\help", prompt)


def test_lines_are_kept(terminal: Terminal, tmp_path: Path) -> None:
    process, prompt = terminal
    process.ask("1", prompt)
    assert (tmp_path / ".iproto_server_history").read_text() == "1\n"


def test_quit_ends_it(terminal: Terminal) -> None:
    process, _ = terminal
    process.enter("\\quit")
    assert process.wait() == 0


def test_control_d_ends_it(terminal: Terminal) -> None:
    process, _ = terminal
    process.type("\x04")
    assert process.wait() == 0


def test_long_answers_are_paged(tarantool: RealTarantool, tmp_path: Path) -> None:
    environment = {"PAGER": "tail -n 1"}
    with TerminalProcess([*CONNECT, f"admin:secret@{tarantool.address}"], tmp_path, environment) as process:
        prompt = f"{tarantool.address}> "
        process.wait_for(prompt)
        assert "name 50" not in process.ask("box.space.people:select()", prompt)


def test_tab_completes_names_of_the_server(tarantool: RealTarantool, tmp_path: Path) -> None:
    command = [*CONNECT, f"admin:secret@{tarantool.address}"]
    with TerminalProcess(command, tmp_path, {"TERM": "xterm", "NO_COLOR": "1"}) as process:
        process.wait_for("connected to")
        process.type("box.space.peo\t")
        process.wait_for("ple")


def test_errors_are_red(tarantool: RealTarantool, tmp_path: Path) -> None:
    command = [*CONNECT, f"admin:secret@{tarantool.address}"]
    with TerminalProcess(command, tmp_path, {"TERM": "xterm"}) as process:
        process.wait_for("connected to")
        process.enter("error('bad')")
        process.wait_for("\x1b[31m---\n- error: bad")
