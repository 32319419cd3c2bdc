"""console.listen: the text protocol, and tarantoolctl as its client."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server.testing.logged_process import LoggedProcess
from tests.programs import REPOSITORY, require_program
from tests.tools.console.terminal_process import TerminalProcess

pytestmark = pytest.mark.process

SCRIPT = """\
io.stdout:setvbuf('line')
require('console').listen('unix/:{path}')
print('listening')
require('fiber').sleep(3600)
"""

GREETING_SIZE = 128

STATEMENTS = (
    *(
        "1",
        "1, 'a', nil",
        "",
        "   ",
        "x = 1",
        "x",
        "x = nil",
        "nil",
        "nil, nil",
        "return 5",
        "return",
        "{}",
        "{1, {2}}",
    ),
    *(
        "{a = {b = 1}}",
        "'two\\nlines'",
        "'\\255'",
        "print",
        "1.5, -1, 2^53, 1/0",
        "5LL, 18446744073709551615ULL",
    ),
    *(
        "error('bad')",
        "error({code = 5})",
        "error()",
        "nothing.x",
        "for",
        "function f()",
        "end",
        "1;",
        "1; 2",
        "=1",
    ),
    *(
        "local y = 1",
        "y",
        "-- nothing",
        "1 -- comment",
        "'ü'",
        "\\set output lua",
        "1, {a = 2}, nil",
        "error('bad')",
    ),
    *(
        "\\set output lua,block",
        "{1, {2}}",
        "x = 1",
        "\\set output yaml",
        "\\set output json",
        "\\set output",
    ),
    *(
        "\\set language",
        "\\set language lua",
        "\\set language pascal",
        "\\help",
        "\\nothing",
        "\\set",
        "\\set x",
    ),
    *("require('console').delimiter()", "require('console').eos()", "require('console').ac(true)", "1\r"),
    *(
        "require('fiber').sleep(0.001) return 'slept'",
        "require('fiber').yield()",
        "require('console').eval('1')",
    ),
    *(
        "require('fiber').self().storage.console.running",
        "'long ' .. ('x'):rep(5000)",
        "setmetatable({}, {})",
    ),
)


def _server(command: list[str], directory: Path) -> tuple[LoggedProcess, Path]:
    path = directory / "console.sock"
    script = directory / "listen.lua"
    script.write_text(SCRIPT.format(path=path))
    process = LoggedProcess([*command, str(script)], cwd=REPOSITORY)
    process.wait_for("listening")
    return process, path


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    command = [sys.executable, "-m", "tests.lua.console.run_script"]
    process, path = _server(command, tmp_path_factory.mktemp("here"))
    yield path
    process.kill()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    program = require_program("tarantool", "tarantool")
    process, path = _server([program], tmp_path_factory.mktemp("real"))
    yield path
    process.kill()


class Client:
    """A connection to a console."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("rb")
        self.greeting = self._file.read(GREETING_SIZE)

    def ask(self, statement: str) -> str:
        """Send a statement, and return all that comes before the answer to the next one."""
        mark = f"MARK{time.monotonic_ns()}"
        self.send(f"{statement}\n'{mark}'\n")
        found = b""
        while mark.encode() not in found or not found.endswith((b"\n...\n", b";")):
            part = self._socket.recv(65_536)
            if not part:
                break
            found += part
        return comparable(found.decode("utf-8", "replace").replace(mark, "MARK"))

    def send(self, text: str) -> None:
        """Send a text."""
        self._socket.sendall(text.encode())

    def rest(self) -> bytes:
        """What comes until the server ends the connection."""
        return self._file.read()

    def close(self) -> None:
        """End the connection."""
        self._file.close()
        self._socket.close()


def comparable(answer: str) -> str:
    """An answer without addresses and lines of modules."""
    return re.sub(
        r"0x[0-9a-f]+|builtin#\d+", "ADDRESS", re.sub(r"builtin/[\w./]+\.lua:\d+", "builtin", answer)
    )


@pytest.fixture
def client(ours: Path) -> Iterator[Client]:
    client = Client(ours)
    yield client
    client.close()


def test_the_greeting_is_two_lines_of_64_bytes(client: Client) -> None:
    first, second = client.greeting.decode().splitlines()
    assert (len(first), len(second)) == (63, 63)
    assert re.fullmatch(r"Tarantool \d+\.\d+\.\d+ \(Lua console\) +", first)
    assert second.rstrip() == "type 'help' for interactive help"


def test_a_line_is_a_statement(client: Client) -> None:
    client.send("1, 2\n\\quit\n")
    assert client.rest() == b"---\n- 1\n- 2\n...\n"


def test_clients_have_settings_of_their_own(ours: Path, client: Client) -> None:
    client.send("\\set output lua\n1\n\\quit\n")
    assert client.rest() == b"true;1;"
    other = Client(ours)
    other.send("1\n\\quit\n")
    assert other.rest() == b"---\n- 1\n...\n"
    other.close()


def test_a_delimiter_ends_statements(client: Client) -> None:
    client.send("\\set delimiter $EOF$\n1,\n2$EOF$\n\\set delimiter\n$EOF$\n\\quit$EOF$\n")
    assert client.rest() == (
        b"---\n...\n---\n- 1\n- 2\n...\n---\n- error: Can not install delimiter for net box sessions\n...\n"
    )


def test_a_client_that_goes_away_disturbs_nobody(ours: Path, client: Client) -> None:
    other = Client(ours)
    other.send("require('fiber').sleep(0.01) return ('x'):rep(1000000)\n")
    other.close()
    client.send("1\n\\quit\n")
    assert client.rest() == b"---\n- 1\n...\n"


@pytest.mark.real_tarantool
def test_the_greeting_is_that_of_a_real_tarantool(ours: Path, theirs: Path) -> None:
    clients = Client(ours), Client(theirs)
    assert clients[0].greeting == clients[1].greeting
    for each in clients:
        each.close()


@pytest.mark.real_tarantool
def test_a_session_is_that_of_a_real_tarantool(ours: Path, theirs: Path) -> None:
    here, there = Client(ours), Client(theirs)
    for statement in STATEMENTS:
        assert here.ask(statement) == there.ask(statement), statement
    here.close()
    there.close()


@pytest.mark.real_tarantool
def test_tarantoolctl_runs_a_script(ours: Path, theirs: Path) -> None:
    program = require_program("tarantoolctl", "tarantool")

    def run(path: Path, text: str) -> tuple[int, str]:
        command = [program, "connect", f"unix/:{path}"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    for text in ("return 1, {2}\n", "local x = 1\nreturn x\n", "error('bad')", "for", ""):
        assert run(ours, text) == run(theirs, text), text


@pytest.mark.real_tarantool
def test_a_session_of_tarantoolctl_is_that_with_a_real_tarantool(
    ours: Path, theirs: Path, tmp_path: Path
) -> None:
    program = require_program("tarantoolctl", "tarantool")

    def session(path: Path) -> list[str]:
        prompt = f"unix/:{path}> "
        with TerminalProcess([program, "connect", f"unix/:{path}"], tmp_path) as process:
            process.wait_for(prompt)
            answers = []
            for statement in STATEMENTS:
                if "\r" in statement or statement in ("for", "function f()"):
                    continue  # goes on in the next line
                process.enter(statement)
                answers.append(comparable(process.wait_for(f"\n{prompt}")))
            process.enter("\\quit")
            process.wait()
            return [*answers, process.output]

    for here, there in zip(session(ours), session(theirs), strict=True):
        assert here.replace(str(ours), "PATH") == there.replace(str(theirs), "PATH")
