"""Connections to servers behave as those of a real Tarantool."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lua.modules.alike import comparable
from tests.lua.net.sections import sections
from tests.lua.program.scripts import Program
from tests.lua.snippets import OurLua, TarantoolLua
from tests.programs import require_program

HERE = Path(__file__).parent
PREAMBLE, SNIPPETS = sections(HERE / "net_box.lua")

OTHER_ANSWERS = {
    "a prepared statement",
    "a wrong password",
    "an unknown user",
    "statements of SQL",
    "without a password",
}
"""Snippets that our server answers in another way: it has no SQL, and does not tell which users there are."""


@contextmanager
def server(program: Program) -> Iterator[Path]:
    """Run a server. Yields the path of its socket."""
    path = program.folder / "socket"
    process = program.start(str(HERE / "server.lua"), environment={**os.environ, "SOCKET": str(path)})
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield path
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def our_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("ours")
    with server(Program([sys.executable, "-m", "iproto_server", "serve"], folder)) as path:
        yield path


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    program = Program([require_program("tarantool", "tarantool")], tmp_path_factory.mktemp("real"))
    with server(program) as path:
        yield path


def run(lua: OurLua | TarantoolLua, path: Path, name: str) -> str:
    """Run a snippet with connections to a server."""
    return comparable(lua.run((PREAMBLE + SNIPPETS[name]).replace("@PATH@", str(path))))


@pytest.mark.real_tarantool
@pytest.mark.parametrize("name", SNIPPETS)
def test_alike(ours: OurLua, real: TarantoolLua, real_server: Path, name: str) -> None:
    expected = run(real, real_server, name)
    assert run(ours, real_server, name) == expected, SNIPPETS[name]


@pytest.mark.real_tarantool
@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() - OTHER_ANSWERS))
def test_our_server_is_alike(
    ours: OurLua, real: TarantoolLua, our_server: Path, real_server: Path, name: str
) -> None:
    expected = run(real, real_server, name).replace(str(real_server), str(our_server))
    assert run(ours, our_server, name) == expected, SNIPPETS[name]


def test_a_connection_ends_when_nobody_refers_to_it(ours: OurLua, our_server: Path) -> None:
    snippet = """
        local connection = require('net.box').connect('user:secret@unix/:@PATH@')
        local transport = connection._transport
        connection = nil
        for _ = 1, 1000 do
            collectgarbage()
            if transport.state == 'error' then break end
            fiber.sleep(0.001)
        end
        return transport.state, transport.link
    """
    assert ours.run((PREAMBLE + snippet).replace("@PATH@", str(our_server))) == 'ok "error" nil'


def test_no_descriptor_is_left_open(ours: OurLua, our_server: Path) -> None:
    snippet = """
        local function open() return #require('fio').listdir('/proc/self/fd') end
        local function round()
            local failed = net.connect('127.0.0.1:1', {reconnect_after = 0.001, wait_connected = false})
            local refused = net.connect('user:wrong@unix/:@PATH@')
            local connected = net.connect(ADDRESS)
            connected:call('sleep', {1}, {is_async = true})
            failed:wait_state('error_reconnect', 5)
            failed:close()
            refused:close()
            connected:close()
        end
        round()
        collectgarbage()
        local before = open()
        for _ = 1, 20 do round() end
        return open() <= before
    """
    assert ours.run((PREAMBLE + snippet).replace("@PATH@", str(our_server))) == "ok true"


def test_pauses_between_attempts_grow(ours: OurLua, our_server: Path) -> None:
    snippet = """
        local paused, suspend = {}, require('internal.fibers.scheduler').suspend
        local scheduler = require('internal.fibers.scheduler')
        function scheduler.suspend(timeout)
            if scheduler.current().name:find('127.0.0.1:1 ', 1, true) and timeout then
                paused[#paused + 1] = timeout
                timeout = 0
            end
            return suspend(timeout)
        end
        local other = net.connect('127.0.0.1:1', {reconnect_after = 100, wait_connected = false})
        while #paused < 20 do fiber.sleep(0.001) end
        scheduler.suspend = suspend
        other:close()
        return paused[1], paused[2], paused[20]
    """
    assert ours.run((PREAMBLE + snippet).replace("@PATH@", str(our_server))) == "ok 100 150 1000"
