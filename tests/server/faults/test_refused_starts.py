"""A start that is refused leaves nothing where nothing was, and leaves alone what was there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.command_line import run_process
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient

REFUSALS = """\
from iproto_server import Application, BoxError

space = lambda box: box.schema.create_space("s", if_not_exists=True).create_index("pk", if_not_exists=True)

crash = Application("crash")
crash.setup(space)
crash.setup(lambda box: 1 // 0)

no_user = Application("no_user")
no_user.setup(space)
no_user.setup(lambda box: box.schema.user.grant("nobody", "read", "universe"))

leave = Application("leave")
leave.setup(space)
@leave.setup
def leave_setup(box):
    raise SystemExit(3)

fine = Application("fine")
fine.setup(space)

twice = Application("twice")
fine.procedure("same")(lambda box: None)
twice.procedure("same")(lambda box: None)

notes = Application("notes")
@notes.setup
def write_a_file(box):
    open("new/notes.txt", "w").write("mine")
    raise BoxError.procedure("no")
"""

LOCAL = ("--listen", "127.0.0.1:0")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "refusals.py").write_text(REFUSALS)
    return tmp_path


@pytest.fixture
def taken() -> Iterator[str]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def everything(directory: Path) -> dict[str, bytes | None]:
    """All files and directories in a directory, and what is in the files."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
        if "__pycache__" not in path.parts
    }


def refused(home: Path, *words: str, status: int = 1) -> str:
    done = run_process("serve", *words, directory=home)
    assert done.returncode == status, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("iproto-server: "), done.stderr
    return last


REASONS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "a setup that fails": (("refusals:crash", *LOCAL), 1, "ZeroDivisionError"),
    "a user that does not exist": (("refusals:no_user", *LOCAL), 1, "User 'nobody' is not found"),
    "access that nobody configured": (("refusals:fine", "--listen", "0.0.0.0:0"), 2, "--allow-guest"),
    "two procedures of one name": (("refusals:fine", "refusals:twice", *LOCAL), 2, "both define"),
    "an application that is not there": (("refusals:nothing", *LOCAL), 1, "nothing"),
    "a certificate that is not there": (
        ("--listen", "127.0.0.1:0?transport=ssl&ssl_key_file=no.key&ssl_cert_file=no.crt"),
        2,
        "no.key",
    ),
    "a path that is no socket": (("refusals:fine", "--listen", "unix:/dev/null"), 1, "in use"),
}


SOME = ("a setup that fails", "access that nobody configured", "a path that is no socket")
"""One behind the setups, one in them, and one when it is nearly ready."""


class TestRefusals:
    @pytest.mark.parametrize("reason", REASONS)
    def test_leave_no_directory_where_none_was(self, home: Path, reason: str) -> None:
        words, status, text = REASONS[reason]
        before = everything(home)
        assert text in refused(home, *words, "--work-dir", "some/new", status=status)
        assert everything(home) == before

    @pytest.mark.parametrize("reason", SOME)
    def test_leave_an_empty_directory_empty(self, home: Path, reason: str) -> None:
        words, status, _ = REASONS[reason]
        (home / "new").mkdir()
        before = everything(home)
        refused(home, *words, "--work-dir", "new", status=status)
        assert everything(home) == before

    @pytest.mark.parametrize("reason", SOME)
    def test_take_away_logs_and_snapshots_in_directories_of_their_own(self, home: Path, reason: str) -> None:
        words, status, _ = REASONS[reason]
        before = everything(home)
        refused(home, *words, "--work-dir", "w", "--wal-dir", "a/b", "--memtx-dir", "c", status=status)
        assert everything(home) == before

    @pytest.mark.parametrize("reason", SOME)
    def test_keep_a_database_that_was_there(self, home: Path, reason: str, start_server: StartServer) -> None:
        words, status, _ = REASONS[reason]
        (home / "new").mkdir()
        start_server(["tests.server.process.signals_application:app"], work_dir=home / "new").stop()
        before = everything(home / "new")
        refused(home, *words, "--work-dir", "new", status=status)
        after = everything(home / "new")
        assert {name: after[name] for name in before} == before
        server = start_server(["tests.server.process.signals_application:app"], work_dir=home / "new")
        with IprotoClient.at(server.address) as client:
            assert client.call("put", 1).ok


@pytest.mark.parametrize("mode", ["none", "write", "fsync"])
def test_a_port_in_use_leaves_no_directory_where_none_was(home: Path, taken: str, mode: str) -> None:
    before = everything(home)
    words = ("refusals:fine", "--listen", taken, "--work-dir", "new", "--wal-mode", mode)
    assert "Address already in use" in refused(home, *words)
    assert everything(home) == before


def test_a_port_in_use_behind_one_that_is_free(home: Path, taken: str) -> None:
    """The first socket is removed as well."""
    before = everything(home)
    words = ("--listen", "unix:first", "--listen", taken, "--work-dir", "new")
    assert "Address already in use" in refused(home, "refusals:fine", *words)
    assert everything(home) == before


def test_a_directory_that_cannot_be_made(home: Path) -> None:
    """The one that was made before it is removed."""
    before = everything(home)
    words = ("--work-dir", "new", "--memtx-dir", str(home / "refusals.py" / "snapshots"))
    assert "Not a directory" in refused(home, "refusals:fine", *LOCAL, *words)
    assert everything(home) == before


def test_a_setup_that_ends_the_process_leaves_nothing_either(home: Path) -> None:
    before = everything(home)
    run_process("serve", "refusals:leave", *LOCAL, "--work-dir", "new", directory=home)
    assert everything(home) == before


def test_what_a_setup_has_written_stays(home: Path) -> None:
    before = everything(home)
    refused(home, "refusals:notes", *LOCAL, "--work-dir", "new")
    assert everything(home) == {**before, "new": None, "new/notes.txt": b"mine"}


def test_a_directory_that_another_server_uses_is_left_to_it(home: Path, start_server: StartServer) -> None:
    (home / "new").mkdir()
    server = start_server(["tests.server.process.signals_application:app"], work_dir=home / "new")
    before = everything(home / "new")
    assert "works with this directory" in refused(home, *LOCAL, "--work-dir", "new", "--memtx-dir", "more")
    assert everything(home / "new") == before
    with IprotoClient.at(server.address) as client:
        assert client.call("put", 1).ok


def test_an_unfinished_first_snapshot_is_taken_away(home: Path) -> None:
    """A file that is as large as it may be, as on a full disk."""
    before = everything(home)
    (home / "small.py").write_text(
        "import resource, signal\n"
        "from iproto_server import Application\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "app = Application('small')\n"
    )
    assert "File too large" in refused(home, "small:app", *LOCAL, "--work-dir", "new")
    (home / "small.py").unlink()
    assert everything(home) == before
