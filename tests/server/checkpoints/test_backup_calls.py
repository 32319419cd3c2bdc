"""`box.backup`: a snapshot and its logs stay until they are copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server import Application, Box, BoxError, ErrorCode
from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType
from tests.conftest import StartTarantool
from tests.iproto_client import IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER
from tests.server.accounts import app as accounts
from tests.server.in_process import ServerInProcess
from tests.server.login import log_in
from tests.storage.databases import start

IN_PROGRESS = (int(ErrorCode.BACKUP_IN_PROGRESS), "Backup is already in progress")
NO_SNAPSHOT = (int(ErrorCode.MISSING_SNAPSHOT), "Can't find snapshot")


def application() -> Application:
    """An application whose procedures make backups."""
    app = Application("backups")

    @app.setup
    def create(box: Box) -> None:
        space = box.schema.create_space("rows", if_not_exists=True)
        space.create_index("primary", if_not_exists=True)

    @app.procedure("backups.start")
    def start_backup(box: Box, back: int = 0) -> list[str]:
        return box.backup.start(back)

    @app.procedure("backups.stop")
    def stop_backup(box: Box) -> None:
        box.backup.stop()

    return app


class Server:
    """A server that keeps one snapshot, and a client of it."""

    def __init__(self, server: ServerInProcess, directory: Path) -> None:
        self.server = server
        self.client = server.connect()
        self.directory = directory
        self._rows = 0

    def snapshot(self) -> None:
        """Change something, and take a snapshot, which removes old files."""
        self._rows += 1
        assert self.client.call("box.space.rows:insert", [self._rows]).ok
        assert self.client.call("box.snapshot").data == ["ok"]

    def files(self, kind: FileType = FileType.SNAPSHOT) -> list[str]:
        """The files there are."""
        return [str(path) for path in list_files(self.directory, kind)]

    def references(self) -> list[list[str]]:
        """What `box.info.gc` says of each snapshot."""
        (gc,) = self.client.call("box.info.gc").data
        return [checkpoint["references"] for checkpoint in gc["checkpoints"]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that keeps one snapshot."""
    with ServerInProcess(tmp_path, [application(), accounts], checkpoint_count=1) as running:
        yield Server(running, tmp_path)


class TestStart:
    def test_the_snapshot_and_its_logs_stay_until_the_end(self, server: Server, tmp_path: Path) -> None:
        server.snapshot()
        (kept,) = server.files()
        assert server.client.call("box.backup.start").data == [[kept]]
        for _ in range(3):
            server.snapshot()
        newest = server.files()[-1]
        assert server.files() == [kept, newest]
        assert len(server.files(FileType.LOG)) == 4
        assert server.references() == [["backup"], []]
        (tmp_path / "copy").mkdir()
        for name in (kept, *server.files(FileType.LOG)):
            copy = tmp_path / "copy" / Path(name).name
            copy.write_bytes(Path(name).read_bytes())
        box, _ = start(tmp_path / "copy")
        assert len(box.space.rows) == 4
        assert server.client.call("box.backup.stop").data == []
        # Answered after the files have been removed: the same thread does both.
        assert server.client.call("box.snapshot").data == ["ok"]
        assert server.files() == [newest]
        assert len(server.files(FileType.LOG)) == 1
        assert server.references() == [[]]

    def test_an_older_snapshot(self, server: Server) -> None:
        server.snapshot()
        (first,) = server.files()
        server.client.call("box.backup.start")
        server.snapshot()
        (_, second) = server.files()
        for back, files in ((0, [second]), (1, [first])):
            # The pin goes from one to the other without a snapshot being taken meanwhile.
            assert server.client.call("box.cfg", {"checkpoint_count": 2}).ok
            assert server.client.call("box.backup.stop").ok
            assert server.client.call("box.backup.start", back).data == [files]
        assert server.references() == [["backup"], []]

    def test_a_second_one_is_refused(self, server: Server) -> None:
        assert server.client.call("box.backup.start").ok
        for arguments in ((), (0,), (1,), (5,)):
            assert server.client.call("box.backup.start", *arguments).failure == IN_PROGRESS
        assert server.client.call("box.backup.stop").ok
        assert server.client.call("box.backup.start").ok

    @pytest.mark.parametrize("back", [1, 2**31, 2**63, 1e300])
    def test_one_that_is_not_there(self, server: Server, back: float) -> None:
        assert server.client.call("box.backup.start", back).failure == NO_SNAPSHOT
        # Nothing has begun.
        assert server.client.call("box.backup.start").ok

    @pytest.mark.parametrize("back", [None, "x", True, [], {}, -1, -(2**63), float("nan")])
    def test_wrong_arguments(self, server: Server, back: object) -> None:
        code, _ = server.client.call("box.backup.start", back).failure
        assert code == ErrorCode.PROC_LUA
        assert server.client.call("box.backup.start").ok

    def test_the_end_without_a_beginning_does_nothing(self, server: Server) -> None:
        for _ in range(2):
            answer = server.client.call("box.backup.stop")
            assert answer.ok
            assert answer.data == []

    def test_it_is_of_the_server_and_not_of_the_connection(self, server: Server) -> None:
        assert server.client.call("box.backup.start").ok
        other = server.server.connect()
        assert other.call("box.backup.start").failure == IN_PROGRESS
        assert other.call("box.backup.stop").ok
        assert server.client.call("box.backup.start").ok

    def test_it_ends_with_the_server(self, tmp_path: Path) -> None:
        for _ in range(2):
            with ServerInProcess(tmp_path, [application()], checkpoint_count=1) as running:
                server = Server(running, tmp_path)
                assert server.client.call("box.backup.start").ok

    def test_procedures_may_make_one(self, server: Server) -> None:
        assert server.client.call("backups.start").data == [server.files()]
        assert server.client.call("backups.start").failure == IN_PROGRESS
        assert server.client.call("backups.stop").ok
        assert server.client.call("backups.start", 7).failure == NO_SNAPSHOT

    def test_a_user_needs_the_right_to_call_it(self, server: Server) -> None:
        client = server.server.connect()
        assert server.client.call("box.schema.user.create", "bob", {"password": "secret"}).ok
        assert log_in(client, "bob", "secret").ok
        for name in ("box.backup.start", "box.backup.stop"):
            code, text = client.call(name).failure
            assert code == ErrorCode.ACCESS_DENIED
            assert text.startswith("Execute access to ")
        assert log_in(client, "alice", "secret").ok
        assert client.call("box.backup.start").ok

    def test_a_directory_that_cannot_be_read(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(directory: Path) -> list[Path]:
            raise OSError(5, "Input/output error", str(directory))

        monkeypatch.setattr("iproto_server.server.checkpoints.checkpointer.complete_snapshots", failing)
        code, text = server.client.call("box.backup.start").failure
        assert (code, text) == (ErrorCode.SYSTEM, "cannot read the snapshots: Input/output error")


def test_a_box_without_files_has_no_backups() -> None:
    box = Box()
    with pytest.raises(BoxError) as refused:
        box.backup.start()
    assert refused.value.code == ErrorCode.UNSUPPORTED
    box.backup.stop()


@pytest.mark.real_tarantool
def test_a_real_tarantool_answers_alike(server: Server, real_tarantool: StartTarantool) -> None:
    real = real_tarantool(GUEST_IS_SUPER)
    calls = [
        ("stop", ()),
        ("start", (1,)),
        ("start", (-1,)),
        ("start", ("x",)),
        ("start", (None,)),
        ("start", (True,)),
        ("start", ()),
        ("start", ()),
        ("start", (1,)),
        ("stop", ()),
        ("stop", ()),
        ("start", (0,)),
        ("stop", ()),
    ]
    with IprotoClient.at(real.address) as client:
        for name, arguments in calls:
            expected = client.call(f"box.backup.{name}", *arguments)
            found = server.client.call(f"box.backup.{name}", *arguments)
            if not expected.ok:
                assert found.failure == expected.failure
            elif name == "stop":
                assert found.data == expected.data
            else:
                ((path,),) = expected.data
                ((ours,),) = found.data
                assert Path(ours).name == Path(path).name
