"""Connections to servers behave as those of a real Tarantool."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lua.modules.alike import comparable
from tests.lua.net.sections import sections
from tests.lua.program.scripts import Program, our_program
from tests.lua.snippets import OurLua, TarantoolLua
from tests.programs import require_program

HERE = Path(__file__).parent
PREAMBLE, SNIPPETS = sections(HERE / "net_box.lua")


@contextmanager
def server(program: Program) -> Iterator[Path]:
    """Run a server. Yields the path of its socket."""
    path = program.folder / "socket"
    process = program.start(str(HERE / "server.lua"), str(path))
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield path
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def our_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with server(our_program(tmp_path_factory.mktemp("ours"))) as path:
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
@pytest.mark.parametrize("name", SNIPPETS)
def test_our_server_is_alike(
    ours: OurLua, real: TarantoolLua, our_server: Path, real_server: Path, name: str
) -> None:
    expected = run(real, real_server, name).replace(str(real_server), str(our_server))
    assert run(ours, our_server, name) == expected, SNIPPETS[name]
