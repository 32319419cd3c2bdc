"""Standard input and output of scripts: nothing is lost, and they are buffered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lua.program.scripts import Program, comparable

LINES = "".join(f"line {number}\n" for number in range(20_000)).encode()


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "script",
    [
        "print(io.read()) print(io.read('*n')) print(io.read(3)) print(io.read('*a'))",
        "for line in io.lines() do print(line) end print(io.read())",
        "print(#io.read('*a')) print(io.read('*a'), io.read('*l'))",
        "io.write(1, ' ', 'two', '\\n') io.stderr:write('an error') print(nil, true)",
        "os.execute('cat >/dev/null') print(io.read())",
    ],
)
def test_streams_are_alike(our: Program, tarantool: Program, script: str) -> None:
    for text in (b"first\n42 rest\nmore\n\xff\0last", b"", LINES):
        ours, theirs = our.run_script(script, text=text), tarantool.run_script(script, text=text)
        assert comparable(ours) == comparable(theirs)


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "text",
    [
        b"print('a script', ...)",
        b"#!shebang\nerror('in line 2')",
        b"print(1)\nx x",
        b"print(io.read())\nprint('all is the script')",
        b"",
        b"\xef\xbb\xbfprint('behind a byte order mark')",
    ],
)
def test_a_script_may_come_from_standard_input(our: Program, tarantool: Program, text: bytes) -> None:
    for arguments in ([], ["-", "a"]):
        assert comparable(our.run(*arguments, text=text)) == comparable(tarantool.run(*arguments, text=text))


def test_all_that_was_printed_arrives(our: Program) -> None:
    script = "for number = 1, 200000 do print(number) end"
    for end in ("", " os.exit(0)", " error('wrong')"):
        lines = our.run_script(script + end).output.splitlines()
        assert (len(lines), lines[-1]) == (200_000, "200000")


def test_standard_output_is_buffered_whatever_pythons_environment_says(our: Program) -> None:
    (our.folder / "script.lua").write_text("io.write('in the buffer') os.execute('echo first')")
    outcome = our.run("script.lua", environment={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert outcome.output == "first\nin the buffer"


def test_files_that_are_open_at_the_end_are_written(our: Program, tmp_path: Path) -> None:
    for end in ("", " os.exit(0)", " error('wrong')", " table.sort({2, 1}, os.exit)"):
        our.run_script("file = io.open('written', 'w') file:write('text')" + end)
        assert (tmp_path / "written").read_text() == "text"
        (tmp_path / "written").unlink()


def test_a_reader_that_goes_away_is_no_error(our: Program) -> None:
    script = our.folder / "script.lua"
    script.write_text("for number = 1, 100000 do print(number) end io.stderr:write('at the end')")
    process = our.start("script.lua")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b"at the end"
    assert process.wait() == 0
    process.stderr.close()
    assert process.stdin is not None
    process.stdin.close()


def test_bytecode_is_a_script(our: Program) -> None:
    our.run_script("local file = io.open('code', 'wb') file:write(string.dump(function(...) print(...) end))")
    assert our.run("code", "a").output == "a\n"
