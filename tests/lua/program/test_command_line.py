"""The command line of `iproto-tarantool`: as Tarantool's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lua.program.scripts import Outcome, Program, comparable

SHOW_ARGUMENTS = """#!/usr/bin/env tarantool
print('arguments', ...)
for place = 0, #arg do print(place, arg[place]) end
print(type(arg[-1]), arg[-2], x, y, json)
"""

COMMANDS = [
    ["script.lua"],
    ["script.lua", "a", "-v", "--help", "ü"],
    ["--", "script.lua", "a"],
    ["-e", "x = 1", "-e", "y = x + 1", "script.lua", "a"],
    ["-ex=5", "script.lua"],
    ["-l", "json", "-e", "x = json.encode({1})", "script.lua"],
    ["-ljson", "script.lua"],
    ["-e", "print(..., arg[0], arg[1])", "script.lua", "a"],
    ["-e", "print(1)"],
    ["-e", "return 5"],
    ["-e", ""],
    ["-", "a", "b"],
    ["--", "-", "a"],
    ["-l", "no.such"],
    ["nosuch.lua"],
    [""],
    ["./script.lua"],
    ["--"],
]


@pytest.mark.real_tarantool
@pytest.mark.parametrize("command", COMMANDS)
def test_options_and_arguments_are_alike(our: Program, tarantool: Program, command: list[str]) -> None:
    (our.folder / "script.lua").write_text(SHOW_ARGUMENTS)
    text = b"print('input', ...)"
    if command == ["-l", "no.such"]:  # there a real Tarantool 2.6 hangs after the message
        assert our.run(*command).status == 1
    else:
        assert comparable(our.run(*command, text=text)) == comparable(tarantool.run(*command, text=text))


@pytest.mark.real_tarantool
@pytest.mark.parametrize("command", [["-z"], ["-e"], ["-l"], ["--foo"], ["-iz"]])
def test_a_wrong_command_line_is_refused_alike(our: Program, tarantool: Program, command: list[str]) -> None:
    ours, theirs = our.run(*command), tarantool.run(*command)
    assert (ours.status, ours.output) == (theirs.status, theirs.output) == (64, "")
    assert ours.errors.partition(": ")[2] == theirs.errors.partition(": ")[2]


@pytest.mark.real_tarantool
@pytest.mark.parametrize("option", ["-v", "-V", "--version", "-vh"])
def test_the_version_has_tarantools_form(our: Program, tarantool: Program, option: str) -> None:
    ours, theirs = our.run(option), tarantool.run(option)
    assert ours.status == 0
    assert ours.output.startswith("Tarantool 2.6.0-0-g")
    names = [line.partition(":")[0] for line in ours.output.splitlines()[1:]]
    assert names[:-1] == [line.partition(":")[0] for line in theirs.output.splitlines()[1:]]
    assert names[-1] == "Provided by"


@pytest.mark.parametrize("option", ["-h", "--help", "-hv"])
def test_help_names_the_options(our: Program, option: str) -> None:
    outcome = our.run(option)
    assert (outcome.status, outcome.errors) == (0, "")
    assert all(
        f"  {name}" in outcome.output for name in ("-h, --help", "-v, --version", "-e CODE", "-i", "--")
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("error('no')", "LuajitError: (command line):1: no"),
        ("x x", "LuajitError: (command line):1: '=' expected near 'x'"),
    ],
)
def test_an_error_of_an_option_ends_the_process(our: Program, code: str, message: str) -> None:
    # A real Tarantool 2.6 writes the same, and hangs.
    assert our.run("-e", code, "nothing.lua").output.startswith("Can't open script")
    assert our.run("-e", code) == Outcome("", f"{message}\nfatal error, exiting the event loop\n", 1)


def test_the_executable_is_the_first_argument_from_the_left(our: Program) -> None:
    [path] = our.run("-e", "print(arg[-1])").output.splitlines()
    assert os.path.isabs(path)
    assert Path(path).exists()


def test_the_last_option_opens_a_console(our: Program) -> None:
    outcome = our.run("-i", "-e", "package.preload.console = function() return {start = os.exit} end")
    assert outcome == Outcome("", "Tarantool 2.6.0-0-g0000000\ntype 'help' for interactive help\n", 0)


def test_without_luajit_one_sentence_says_so(our: Program) -> None:
    (our.folder / "lupa.py").write_text("raise ImportError")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(our.folder), str(Path.cwd())])}
    outcome = our.run("-e", "print(1)", environment=environment)
    assert (outcome.status, outcome.output) == (1, "")
    assert "pip install 'iproto-server[lua]'" in outcome.errors
    assert len(outcome.errors.splitlines()) == 1
