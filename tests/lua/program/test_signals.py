"""Signals: SIGINT and SIGTERM end the process, SIGHUP opens the log anew."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lua.program.scripts import Program

WAIT = "print('ready') io.flush() local ok = pcall(require('fiber').sleep, 100) print('not reached')"
READ = "print('ready') io.flush() while io.read() ~= 'go' do end print('read') "


@contextmanager
def running(program: Program, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has written the line `ready`."""
    (program.folder / "script.lua").write_text(script)
    with program.start("script.lua") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process
        finally:
            process.kill()


def written(process: subprocess.Popen[bytes], text: bytes = b"") -> tuple[bytes, bytes, int]:
    """The rest of a process's output, its errors and its status."""
    output, errors = process.communicate(text)
    return output, errors, process.returncode


@pytest.mark.real_tarantool
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_waiting_script(our: Program, tarantool: Program, number: int) -> None:
    for program in (our, tarantool):
        with running(program, WAIT) as process:
            process.send_signal(number)
            assert written(process) == (b"", b"", 0)


def test_a_signal_ends_a_script_that_works_when_it_waits_or_ends(our: Program) -> None:
    for end in (
        "require('fiber').create(require('fiber').sleep, 100)",
        "require('fiber').sleep(100) print('no')",
    ):
        with running(our, READ + end) as process:
            process.send_signal(signal.SIGTERM)
            assert written(process, b"go\n") == (b"read\n", b"", 0)


def test_hooks_run_when_a_signal_ends_the_process(our: Program) -> None:
    hook = "table.insert(require('internal.program.shutdown').hooks, function() print('hook') end) "
    with running(our, hook + WAIT) as process:
        process.send_signal(signal.SIGTERM)
        assert written(process) == (b"hook\n", b"", 0)


@pytest.mark.parametrize("number", [signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1])
def test_other_signals_are_ignored(our: Program, number: int) -> None:
    with running(our, READ) as process:
        process.send_signal(number)
        assert written(process, b"go\n") == (b"read\n", b"", 0)


def test_sighup_opens_the_log_anew(our: Program, tmp_path: Path) -> None:
    script = """
    local log, fiber = require('log'), require('fiber')
    log.cfg{log = 'old.log'} log.info('one')
    os.rename('old.log', 'moved.log')
    print('ready') io.flush()
    while not require('fio').path.exists('old.log') do fiber.sleep(0.01) end
    log.info('two')
    """
    with running(our, script) as process:
        process.send_signal(signal.SIGHUP)
        assert written(process) == (b"", b"", 0)
    assert (tmp_path / "moved.log").read_text().endswith(" I> one\n")
    reopened, two = (tmp_path / "old.log").read_text().splitlines()
    assert reopened.endswith(" main I> log file has been reopened")
    assert two.endswith(" main/103/script.lua I> two")
