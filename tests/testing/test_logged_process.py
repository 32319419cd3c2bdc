"""The output of a child process, as tests see it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from iproto_server.testing.logged_process import LoggedProcess


def run(directory: Path, program: str) -> LoggedProcess:
    """A Python program that runs, unbuffered."""
    return LoggedProcess([sys.executable, "-u", "-c", program], cwd=directory)


def test_what_was_written_before_something_else_is_seen_is_there(tmp_path: Path) -> None:
    # The file is the answer; whoever has seen it sees every line that was written before it.
    process = run(
        tmp_path,
        "import os, signal\n"
        "for number in range(200):\n"
        "    print('line', number)\n"
        "    with open(f'{number}', 'x'): pass\n"
        "signal.pause()",
    )
    for number in range(200):
        while not (tmp_path / str(number)).exists():
            assert process.running
        assert f"line {number}" in process.output
    process.kill()


def test_a_process_that_writes_much_never_waits_for_a_reader(tmp_path: Path) -> None:
    process = run(tmp_path, "for number in range(200_000): print('line', number)")
    assert process.wait() == 0
    assert process.lines == [f"line {number}" for number in range(200_000)]


def test_a_line_that_does_not_end_is_there_when_the_process_has_ended(tmp_path: Path) -> None:
    process = run(tmp_path, "import sys; sys.stdout.write('one\\ntw'); sys.stdout.buffer.write(b'o\\xff')")
    assert (process.wait(), process.lines) == (0, ["one", "two\N{REPLACEMENT CHARACTER}"])
    assert (process.ended, process.running) == (True, False)


def test_waiting_for_a_line_ends_with_the_process(tmp_path: Path) -> None:
    process = run(tmp_path, "print('something else')")
    with pytest.raises(AssertionError, match="ended without 'ready'; it wrote:\nsomething else"):
        process.wait_for("ready")
    process.wait()


def test_a_process_that_does_not_end_on_sigterm_is_killed(tmp_path: Path) -> None:
    process = run(
        tmp_path,
        "import signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('not yet'))\n"
        "print('ready')\n"
        "while True: signal.pause()",
    )
    process.wait_for("^ready$")
    with pytest.raises(AssertionError, match="did not end on SIGTERM"):
        process.terminate(timeout=0.1)
    assert process.wait() == -signal.SIGKILL
