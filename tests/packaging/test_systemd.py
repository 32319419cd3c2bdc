"""The units of systemd, by systemd's own checks."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from iproto_server.config.config import load_config
from iproto_server.testing.logged_process import LoggedProcess
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY, missing, require_program
from tests.running_server import QUEUE_APPLICATION

UNITS = REPOSITORY / "packaging" / "systemd"
SERVICE = "iproto-server.service"
SOCKET = "iproto-server.socket"
PROGRAM = "/opt/iproto-server/bin/iproto-server"
MOST_EXPOSED = 15
"""Ten times the exposure that `systemd-analyze security` may find, from 0 to 100."""


TYPE = "\nType=notify-reload\n"
"""The type that systemd has since 253; `systemd-analyze verify` counts its warning about it as a failure."""


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A copy of the units as this systemd knows them, with a program that exists."""
    copy = tmp_path / "systemd"
    shutil.copytree(UNITS, copy)
    service = copy / SERVICE
    text = service.read_text()
    assert f"\nExecStart={PROGRAM} serve " in text
    assert TYPE in text
    if _version() < 253:
        text = text.replace(TYPE, "\n")
    else:
        shutil.rmtree(copy / f"{SERVICE}.d")
    service.write_text(text.replace(PROGRAM, sys.executable))
    return copy


def analyze(*arguments: str | Path, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [require_program("systemd-analyze", "systemd"), *map(str, arguments)],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{directory}:"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _version() -> int:
    done = analyze("--version", directory=UNITS)
    found = re.match(r"systemd (\d+)", done.stdout)
    assert found, done
    return int(found[1])


def verify(unit: Path) -> subprocess.CompletedProcess[str]:
    return analyze("verify", "--man=no", "--recursive-errors=no", unit, directory=unit.parent)


@pytest.mark.parametrize("name", [SERVICE, SOCKET])
def test_systemd_accepts_a_unit(units: Path, name: str) -> None:
    done = verify(units / name)
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_accepts_the_service_with_the_drop_in_for_older_ones(units: Path) -> None:
    shutil.copytree(UNITS / f"{SERVICE}.d", units / f"{SERVICE}.d", dirs_exist_ok=True)
    text = (units / SERVICE).read_text()
    (units / SERVICE).write_text(text.replace(TYPE, "\n"))
    done = verify(units / SERVICE)
    assert (done.returncode, done.stderr) == (0, "")
    assert settings_of(f"{SERVICE}.d/before-253.conf") == {
        "Type": "notify",
        "ExecReload": "/bin/kill -HUP $MAINPID",
    }


def test_a_mistake_would_be_noticed(units: Path) -> None:
    service = units / SERVICE
    service.write_text(service.read_text().replace("ProtectSystem=strict", "ProtectSystem=very"))
    done = verify(service)
    assert done.returncode != 0
    assert "protect system value, ignoring: very" in done.stderr


def test_the_service_is_confined(units: Path) -> None:
    done = analyze(
        *("security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager"),
        units / SERVICE,
        directory=units,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def settings_of(name: str) -> dict[str, str]:
    """The settings of a unit; the last one of a name."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / name)
    return {key: value for section in parser.sections() for key, value in parser[section].items()}


def test_the_units_fit_the_server() -> None:
    """What cannot be written by the service lies where the configuration says, and the stop has its time."""
    settings = settings_of(SERVICE)
    config = load_config(file=UNITS / "iproto-server.toml")
    assert settings["ExecStart"] == f"{PROGRAM} serve --config /etc/iproto-server/iproto-server.toml"
    assert settings["WorkingDirectory"] == f"%S/{settings['StateDirectory']}"
    assert config.work_dir == Path()
    assert config.all_local
    assert float(settings["TimeoutStopSec"]) > config.stop_timeout + 5
    assert settings_of(SOCKET)["ListenStream"] == str(config.listen[0])


MDWE = """\
import ctypes, os, sys
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit("no MDWE")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Denies memory that is writable and executable, as `MemoryDenyWriteExecute=` does, and executes Python."""

MAP_JIT = """
import mmap
from iproto_server import Application

app = Application("confined")

@app.procedure("map")
def map_executable_memory(box):
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
"""


def test_the_server_needs_no_memory_that_is_writable_and_executable(tmp_path: Path) -> None:
    assert settings_of(SERVICE)["MemoryDenyWriteExecute"] == "yes"
    (tmp_path / "confined.py").write_text(MAP_JIT)
    process = LoggedProcess(
        [
            *(sys.executable, "-c", MDWE, "-m", "iproto_server", "serve", QUEUE_APPLICATION, "confined:app"),
            *("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        try:
            address = process.wait_for(r"listening on (\S+)$")[1]
        except AssertionError:
            if "no MDWE" in process.output:
                missing("this kernel has no PR_SET_MDWE: Linux 6.3")
            raise
        process.wait_for("ready to accept requests")
        with IprotoClient.at(address) as client:
            denied = client.call("map")
            assert not denied.ok
            assert "Permission denied" in str(denied.error)
            assert client.call("queue.put", "task").ok
            process.signal(signal.SIGUSR1)
            process.wait_for("done, .* rows in")
        assert process.terminate() == 0
    finally:
        if process.running:
            process.kill()
