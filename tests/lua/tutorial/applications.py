"""The tutorial's application, started with a console on a terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY, require_program
from tests.real_tarantool import QUEUES
from tests.tools.console.terminal_process import TerminalProcess

HERE: Final = Path(__file__).parent
PROMPT: Final = "tarantool> "
OURS, SERVED, REAL = "ours", "served", "real"

ON_A_FREE_PORT: Final = """\
local configure = box.cfg
box.cfg = function(options) options.listen = '127.0.0.1:0' return configure(options) end
"""
"""What `-e` runs in front of the file, whose port may be in use."""

_DIFFERENT: Final = (
    (re.compile(r"\b1[5-9]\d{17}\b"), "ID"),
    (re.compile(r"(wait|runat): \d+\.\d+"), r"\1: TIME"),
    (re.compile(r"^- \d+(\.\d+|e-\d+|\.\d+e-\d+)$", re.MULTILINE), "- TIME"),
)


def masked(answer: str) -> str:
    """An answer without ids and times, and without the spaces at the ends of its lines."""
    for pattern, replacement in _DIFFERENT:
        answer = pattern.sub(replacement, answer)
    return "\n".join(line.rstrip() for line in answer.splitlines()).strip()


def program(who: str) -> list[str]:
    """The command of a program that runs files; skips the test if a real Tarantool is missing."""
    if who == OURS:
        return [sys.executable, "-m", "iproto_server.tarantool_cli.main"]
    return [require_program("tarantool", "tarantool")]


def tutorial_text() -> str:
    """The tutorial; skips the test where it does not lie beside the repository."""
    return _beside("tutorial-en.txt").read_text(encoding="utf-8")


def final_files() -> Path:
    """The folder with the tutorial's final files; skips the test where they are not beside the repository."""
    return _beside("init.lua").parent


def _beside(name: str) -> Path:
    """A file of the tutorial. It is no program that can be installed, so its lack never fails a test."""
    found = next(filter(Path.is_file, (queue.with_name(name) for queue in QUEUES)), None)
    return found or pytest.skip(f"the tutorial's {name} does not lie near the repository")


def put_files(folder: Path, source: Path) -> None:
    """Copy an application, and what a real Tarantool needs for `package.reload`."""
    shutil.copytree(HERE / "rock", folder, dirs_exist_ok=True)
    for name in ("init.lua", "queue.lua"):
        shutil.copy(source / name, folder / name)


@dataclass(frozen=True)
class Running:
    """A running application.

    Attributes:
        console: its terminal.
        address: where it listens.
    """

    console: TerminalProcess
    address: str

    def ask(self, statement: str) -> str:
        """Type a statement, and return the answer as it is shown, from its first line on."""
        *lines, last = statement.splitlines()
        for line in lines:
            self.console.enter(line)
            self.console.wait_for("         > ")
        self.console.enter(last)
        answer = self.console.wait_for(f"\n{PROMPT}")
        return answer[answer.index("---") :] if "---" in answer else answer

    def client(self) -> IprotoClient:
        """A connection as guest."""
        return IprotoClient.at(self.address)


def _quiet(log: Path) -> str:
    """What `-e` runs for the log to be no part of what the console shows."""
    return f"local quiet = box.cfg box.cfg = function(o) o.log = '{log}' return quiet(o) end\n"


@contextmanager
def running(who: str, folder: Path) -> Iterator[Running]:
    """Run the file `init.lua` of a folder, which has the database, too; at the end it is killed.

    Parameters:
        who: `OURS`, `iproto-tarantool`; `SERVED`, `iproto-server serve`; or `REAL`.
        folder: the folder.
    """
    log = folder / f"{who}.log"
    if who == SERVED:
        options = ["--listen", "127.0.0.1:0", "--work-dir", str(folder), "--log", str(log)]
        command = [sys.executable, "-m", "iproto_server", "serve", "init.lua", *options]
    else:
        command = [*program(who), "-e", ON_A_FREE_PORT + _quiet(log), "init.lua"]
    paths = os.pathsep.join(entry or str(REPOSITORY) for entry in (str(REPOSITORY), *sys.path))
    with TerminalProcess(command, folder, {"PYTHONPATH": paths}) as console:
        console.wait_for(PROMPT)
        application = Running(console, "")
        answer = application.ask("box.info.listen")
        found = re.search(r"127\.0\.0\.1:\d+", answer)
        assert found, answer
        yield Running(console, found[0])
