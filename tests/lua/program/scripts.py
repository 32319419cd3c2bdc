"""Scripts of Lua, run by `iproto-tarantool` and by a real Tarantool."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ENDLESS = b"entering the event loop"
"""What a process says that goes on after its script; it is ended by SIGTERM."""

_DIFFERENT = (
    (re.compile(r"0x[0-9a-f]+"), "0xADDRESS"),
    (re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[\d+\]", re.MULTILINE), "TIME [PID]"),
    (re.compile(r'"time": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}([+-]\d{4})"'), r'"time": "TIME\1"'),
    (re.compile(r'"pid": \d+ '), '"pid": PID '),
    (re.compile(r" utils\.c:\d+ E>"), " E>"),  # places in Tarantool's code
    (re.compile(r', "file": "\.\\/src[^"]*", "line": \d+'), ""),
    (re.compile(r'(builtin[/\\]+[a-z_.]+)(:|", "line": )\d+'), r"\1\2LINE"),
)


@dataclass(frozen=True)
class Outcome:
    """What a process has written, and its exit status."""

    output: str
    errors: str
    status: int


@dataclass(frozen=True)
class Program:
    """An executable.

    Attributes:
        command: how it is started.
        folder: the working directory of its processes.
    """

    command: Sequence[str]
    folder: Path

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a process whose streams are pipes."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*self.command, *arguments],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=self.folder,
            env=environment,
        )

    def run(
        self,
        *arguments: str,
        text: bytes = b"",
        environment: Mapping[str, str] | None = None,
        ends_itself: bool = False,
    ) -> Outcome:
        """Run a process to its end.

        Parameters:
            arguments: its arguments.
            text: its standard input.
            environment: its environment variables; None: those of this process.
            ends_itself: whether it ends without a signal if it goes on after its script.
        """
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as written:
            given.write(text)
            given.seek(0)
            process = subprocess.Popen(
                [*self.command, *arguments],
                stdin=given,
                stdout=written,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env=environment,
            )
            errors = b""
            assert process.stderr is not None
            with process.stderr:
                for line in process.stderr:
                    errors += line
                    if ENDLESS in line and not ends_itself:
                        process.send_signal(signal.SIGTERM)
            status = process.wait()
            written.seek(0)
            return Outcome(written.read().decode(errors="replace"), errors.decode(errors="replace"), status)

    def run_script(self, script: str, *arguments: str, text: bytes = b"") -> Outcome:
        """Run a script, the file `script.lua` in the working directory."""
        (self.folder / "script.lua").write_text(script)
        return self.run("script.lua", *arguments, text=text, ends_itself="os.exit" in script)


def our_program(folder: Path) -> Program:
    """The program `iproto-tarantool` of this checkout."""
    return Program([sys.executable, "-m", "iproto_server.tarantool_cli.main"], folder)


def comparable(outcome: Outcome) -> Outcome:
    """Return an outcome without what differs between any two processes."""
    output, errors = outcome.output, outcome.errors
    for pattern, replacement in _DIFFERENT:
        output, errors = pattern.sub(replacement, output), pattern.sub(replacement, errors)
    return replace(outcome, output=output, errors=errors)


def assert_output_alike(our: Program, tarantool: Program, text: str) -> None:
    """Assert that a script, which may make a database, writes here what it does in a real Tarantool."""
    expected = comparable(tarantool.run_script(text))
    for file in our.folder.glob("*.snap"):
        file.unlink()
    assert comparable(our.run_script(text)).output == expected.output
