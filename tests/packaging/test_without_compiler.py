"""An installation without compiled modules: the client works, and the rest says what is missing."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import pytest

from iproto_server.program_version import PROGRAM_VERSION
from tests.conftest import StartServer
from tests.packaging.project import copy_project, pip, run
from tests.running_server import QUEUE_APPLICATION

HERE: Final = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sysconfig.get_platform()}"
MISSING: Final = (
    f"iproto_server.native._native is missing: install a wheel for {HERE}, or a C compiler and Python.h "
    "(Debian: gcc libc6-dev python3-dev) and then the package again"
)

CLIENT: Final = """\
import asyncio, sys
import iproto_server.client as client
from iproto_server.client.sync import Queue

async def work(address):
    async with client.Queue(address, "tutorial") as queue:
        await queue.put({"to": "ann"})
        task = await queue.take()
        await task.ack()
        return task.data

print(client.__file__, asyncio.run(work(sys.argv[1])))
with Queue(sys.argv[1], "tutorial") as queue:
    queue.put({"to": "bob"})
    task = queue.take()
    task.ack()
    print(task.data)
print(*(name for name in sys.modules if name.startswith("iproto_server.native")))
"""

PLUGIN: Final = """\
import pytest
pytest_plugins = ["iproto_server.testing"]
def test_nothing():
    pass
def test_a_server(iproto_server):
    pass
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installation with a compiler that does not work."""
    folder = tmp_path_factory.mktemp("uncompiled")
    project = folder / "project"
    copy_project(project, ("iproto_server", "queue_lua_compat", "spark", "pyspark_tarantool"))
    done = pip("install", "--target", folder / "installed", project, CC="false")
    assert done.returncode == 0, done.stderr
    return folder / "installed"


def python(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this Python with the packages of the installation, which hide those of the repository."""
    return run("env", "-C", installed.parent, sys.executable, *arguments, PYTHONPATH=str(installed))


def command(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command `iproto-server` of the installation."""
    return python(installed, "-m", "iproto_server", *arguments)


def test_there_are_no_compiled_modules(installed: Path) -> None:
    assert list(installed.rglob("*.so")) == []
    assert (installed / "iproto_server/native/_native.pyi").exists()


def test_the_client_works(installed: Path, start_server: StartServer) -> None:
    server = start_server([QUEUE_APPLICATION])
    done = python(installed, "-c", CLIENT, server.address)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{installed}/iproto_server/client/__init__.py {{'to': 'ann'}}",
        "{'to': 'bob'}",
        "",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve",),
        ("serve", QUEUE_APPLICATION, "--listen", "127.0.0.1:0"),
        ("cat", "00000000000000000000.snap"),
        ("check", "."),
        ("backlog", "."),
        ("restore", "there", "here"),
        ("status", "127.0.0.1:1"),
        ("backup", "127.0.0.1:1", "there"),
    ],
    ids=" ".join,
)
def test_commands_end_with_a_sentence_that_says_what_is_missing(
    installed: Path, arguments: tuple[str, ...]
) -> None:
    done = command(installed, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"iproto-server: {MISSING}\n"


@pytest.mark.parametrize(
    "arguments", [("--help",), ("serve", "--help"), ("cat", "--help"), ("top", "--help")]
)
def test_commands_show_their_help(installed: Path, arguments: tuple[str, ...]) -> None:
    done = command(installed, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: iproto-server")


def test_the_command_shows_its_version(installed: Path) -> None:
    done = command(installed, "--version")
    assert (done.returncode, done.stdout) == (0, f"iproto-server {PROGRAM_VERSION}\n")


def test_the_container_ends_with_that_sentence(installed: Path) -> None:
    environment = {"TARANTOOL_USER_NAME": "jobs", "TARANTOOL_USER_PASSWORD": "secret"}
    words = ("-m", "iproto_server.container", QUEUE_APPLICATION)
    done = run(
        *("env", "-C", installed.parent, sys.executable, *words), PYTHONPATH=str(installed), **environment
    )
    assert done.returncode == 1
    assert done.stderr == f"iproto-server: {MISSING}\n"


def test_the_plugin_says_so_where_a_test_asks_for_a_server(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_plugin.py").write_text(PLUGIN)
    options = ("-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path))
    done = python(installed, "-m", "pytest", *options)
    assert done.returncode == 1
    assert "1 passed, 1 error" in done.stdout
    assert f"iproto-server: {MISSING}" in done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "import iproto_server.box",
        "from iproto_server import Application",
        "import pyspark_tarantool.session",
        "from pyspark_tarantool.data_source import TarantoolDataSource as S; S({'path': '.'}).schema()",
    ],
)
def test_an_import_says_so(installed: Path, statement: str) -> None:
    done = python(installed, "-c", statement)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"iproto_server.compiled_module.NotCompiledError: {MISSING}"
