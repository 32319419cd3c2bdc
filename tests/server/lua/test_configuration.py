"""What `box.cfg` of a Lua file does, and what the command line changes."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tarantool

from tests.running_server import RunningServer

pytestmark = pytest.mark.process

GUEST = "box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})\n"


def serve_to_the_end(folder: Path, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Serve a file that ends the process."""
    (folder / "init.lua").write_text(script)
    command = [sys.executable, "-m", "iproto_server", "serve", "init.lua", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_a_relative_work_dir(tmp_path: Path) -> None:
    """Files are there, and it is the current directory, as in Tarantool."""
    script = "box.cfg{work_dir = 'data'} print(require('fio').cwd()) os.exit(0)"
    done = serve_to_the_end(tmp_path, script.replace("box.cfg", "require('fio').mkdir('data') box.cfg"))
    assert done.stdout == f"{tmp_path}/data\n"
    assert list((tmp_path / "data").glob("*.snap"))


def test_modules_beside_the_file(tmp_path: Path) -> None:
    """`require` finds them, wherever the server is started."""
    application = tmp_path / "application"
    (application / "part").mkdir(parents=True)
    (application / "init.lua").write_text(
        "print(require('helper'), require('part'), require('part.one')) os.exit(0)"
    )
    (application / "helper.lua").write_text("return 'helper'")
    (application / "part" / "init.lua").write_text("return 'part'")
    (application / "part" / "one.lua").write_text("return 'one'")
    command = [sys.executable, "-m", "iproto_server", "serve", "application/init.lua"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "helper\tpart\tone\n", done.stderr


def test_an_address_in_use(tmp_path: Path) -> None:
    """It is an error that Lua code may handle; nothing is left of the new database."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serve_to_the_end(
            tmp_path, f"print(pcall(box.cfg, {{listen = '127.0.0.1:{port}'}})) os.exit(0)"
        )
    assert "Address already in use" in done.stdout
    assert done.stdout.startswith("false")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("box.cfg{nope = 1}", "Incorrect value for option 'nope': unexpected option"),
        ("box.cfg{listen = 'nowhere:port'}", "Incorrect value for option 'listen'"),
        ("box.cfg{memtx_memory = 'much'}", "Incorrect value for option 'memtx_memory'"),
        ("box.cfg{wal_mode = 'never'}", "Incorrect value for option 'wal_mode'"),
        ("box.cfg{work_dir = 'init.lua'}", "init.lua"),
        ("local x = 5 +", "unexpected symbol"),
        ("error('on purpose')", "init.lua:1: on purpose"),
        ("error({})", "table: 0x"),
        ("box.space.nothing:select()", "Please call box.cfg{} first"),
        ("require('nothing')", "module 'nothing' not found"),
    ],
)
def test_an_error_of_the_file(tmp_path: Path, script: str, message: str) -> None:
    """It is said, and ends the process with the exit status 1."""
    done = serve_to_the_end(tmp_path, script)
    assert done.returncode == 1, done.stderr
    assert message in done.stderr


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "iproto_server", "serve", "missing.lua"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "missing.lua" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_line_comes_first(tmp_path: Path) -> None:
    (tmp_path / "init.lua").write_text(f"box.cfg{{listen = 1, wal_mode = 'none'}}\n{GUEST}")
    with RunningServer(tmp_path, [str(tmp_path / "init.lua")], ["--wal-mode", "fsync"]) as server:
        client = tarantool.connect(server.host, server.port)
        assert list(client.eval("return box.cfg.wal_mode")) == ["fsync"]
        client.close()


def test_a_python_application_beside_it(tmp_path: Path) -> None:
    """Both have one box."""
    (tmp_path / "init.lua").write_text(
        f"box.cfg{{}}\n{GUEST}function count() return box.space.queue:len() end"
    )
    applications = [str(tmp_path / "init.lua"), "queue_lua_compat.tutorial:app"]
    with RunningServer(tmp_path, applications) as server:
        client = tarantool.connect(server.host, server.port)
        client.call("queue.put", "data")
        assert list(client.call("count")) == [1]
        client.close()


def test_rows_of_a_file_that_ends_the_process(tmp_path: Path) -> None:
    """They are in the log, and functions of `box.ctl.on_shutdown` have run."""
    script = """
    box.cfg{}
    local s = box.schema.space.create('t', {if_not_exists = true})
    s:create_index('pk', {if_not_exists = true})
    box.ctl.on_shutdown(function() require('fiber').sleep(0.01) print('hook', s:len()) end)
    print(s:len())
    s:insert{s:len() + 1}
    os.exit(s:len())
    """
    first, second = serve_to_the_end(tmp_path, script), serve_to_the_end(tmp_path, script)
    assert (first.stdout, first.returncode) == ("0\nhook\t1\n", 1)
    assert (second.stdout, second.returncode) == ("1\nhook\t2\n", 2)


def test_a_signal_runs_the_hooks(tmp_path: Path) -> None:
    script = "box.cfg{} box.ctl.on_shutdown(function() require('fio').open('hook', 'O_CREAT'):close() end)"
    (tmp_path / "init.lua").write_text(script)
    with RunningServer(tmp_path, [str(tmp_path / "init.lua")]):
        pass
    assert (tmp_path / "hook").exists()
