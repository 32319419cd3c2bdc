"""The procedures `operator.backup_…`: a client reads the files of its own backup, and no others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from iproto_server import Box, ErrorCode
from iproto_server.server.backup_reader import BACKUPS_MAX, PIECE_MAX
from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType
from tests.iproto_client import IprotoClient
from tests.server.in_process import ServerInProcess
from tests.server.login import log_in

FIRST = "00000000000000000000.snap"


class Server:
    """A server that keeps one snapshot, and a client of it."""

    def __init__(self, server: ServerInProcess, directory: Path) -> None:
        self.server = server
        self.directory = directory
        self.client = server.connect()
        assert self.client.call("box.schema.space.create", "rows", {"id": 700}).ok
        assert self.client.call("box.space.rows:create_index", "pk").ok
        self._rows = 0

    def change(self) -> None:
        """Add a row."""
        self._rows += 1
        assert self.client.call("box.space.rows:insert", [self._rows]).ok

    def snapshot(self) -> None:
        """Change something, and take a snapshot, which removes old files."""
        self.change()
        assert self.client.call("box.snapshot").data == ["ok"]

    def files(self) -> dict[str, bytes]:
        """The files in the directory that are a snapshot or a log."""
        paths = [path for kind in FileType for path in list_files(self.directory, kind)]
        return {path.name: path.read_bytes() for path in paths}

    def open_files(self) -> list[str]:
        """The names of the snapshots that the process has open."""
        # Behind what the thread does.
        self.server.server._backups._executor.submit(lambda: None).result(30)
        return [name for name in open_files() if name.startswith(str(self.directory)) and ".snap" in name]

    def as_admin(self, function: Callable[[Box], None]) -> None:
        """Do something with the database as admin."""

        async def act() -> None:
            box = self.server.server.box
            box.run(box.session.background, function, box)

        self.server.run(act())


def open_files() -> list[str]:
    """The paths of the files that this process has open."""
    descriptors = Path("/proc/self/fd").iterdir()
    return [os.readlink(path).removesuffix(" (deleted)") for path in descriptors if path.is_symlink()]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with ServerInProcess(tmp_path, [], checkpoint_count=1) as running:
        yield Server(running, tmp_path)


def begun(client: IprotoClient, *options: object) -> dict[str, int]:
    """Begin a backup; return the sizes of its files."""
    [answer] = client.call("operator.backup_start", *options).data
    assert set(answer) == {"files"}
    return {file["name"]: file["size"] for file in answer["files"]}


def read(client: IprotoClient, name: str, size: int) -> bytes:
    """Read a file in small pieces."""
    data = b""
    while len(data) < size:
        [piece] = client.call("operator.backup_read", name, len(data), 100).data
        assert 0 < len(piece) <= 100
        data += piece
    return data


class TestStart:
    def test_the_files_are_the_newest_snapshot_and_the_logs_after_it(self, server: Server) -> None:
        server.snapshot()
        server.change()
        files = server.files()
        sizes = begun(server.client)
        assert sizes == {name: len(data) for name, data in files.items()}
        assert {name: read(server.client, name, size) for name, size in sizes.items()} == files

    def test_with_since_the_logs_alone(self, server: Server) -> None:
        server.snapshot()
        [newest] = [name for name in server.files() if name.endswith(".snap")]
        lsn = int(newest.partition(".")[0])
        logs = [name for name in server.files() if name.endswith(".xlog")]
        assert list(begun(server.client, {"since": {1: lsn}})) == logs
        # As a Lua client packs a map of members from 1 on.
        assert list(begun(server.client, {"since": [lsn]})) == logs

    def test_no_files_if_the_logs_do_not_reach_back(self, server: Server) -> None:
        server.snapshot()
        server.snapshot()
        assert begun(server.client, {"since": {1: 1}}) == {}

    def test_what_is_appended_later_does_not_count(self, server: Server) -> None:
        sizes = begun(server.client)
        server.change()
        for name, size in sizes.items():
            assert server.client.call("operator.backup_read", name, size, 100).data == [b""]
            assert server.client.call("operator.backup_read", name, size - 1, 100).data[0] != b""

    def test_files_that_the_server_removes_can_be_read(self, server: Server) -> None:
        files, sizes = server.files(), begun(server.client)
        for _ in range(3):
            server.snapshot()
        assert set(server.files()) & set(files) == set()
        assert {name: read(server.client, name, size) for name, size in sizes.items()} == files

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            (5, "options must be a map"),
            ({"back": 1}, "there is no option 'back'; the options are since"),
            ({"since": 5}, "since must be a map of LSNs by member"),
            ({"since": {"a": 1}}, "a member of since must be a whole number from 0 to 31"),
            ({"since": {32: 1}}, "a member of since must be a whole number from 0 to 31"),
            ({"since": {1: -1}}, "an LSN must be a whole number from 0 to 9223372036854775807"),
            ({"since": {1: True}}, "an LSN must be a whole number"),
            ({"since": {1: 1.5}}, "an LSN must be a whole number"),
        ],
    )
    def test_wrong_options(self, server: Server, options: object, reason: str) -> None:
        code, text = server.client.call("operator.backup_start", options).failure
        assert code == ErrorCode.PROC_LUA
        assert text.startswith(reason)

    def test_a_new_one_ends_the_one_before(self, server: Server) -> None:
        old = list(begun(server.client))
        server.snapshot()
        new = list(begun(server.client))
        assert set(old) & set(new) == set()
        assert not server.client.call("operator.backup_read", old[0], 0, 1).ok
        assert server.client.call("operator.backup_read", new[0], 0, 1).ok
        assert server.open_files() == [str(server.directory / new[0])]

    def test_their_number_is_limited(self, server: Server) -> None:
        clients = [server.server.connect() for _ in range(BACKUPS_MAX)]
        for client in clients:
            begun(client)
        assert server.client.call("operator.backup_start").failure == (
            ErrorCode.PROC_LUA,
            "4 backups are being read already: try again later",
        )
        begun(clients[0])
        assert clients[1].call("operator.backup_stop").ok
        begun(server.client)

    def test_a_damaged_directory(self, server: Server) -> None:
        for path in server.directory.glob("*.xlog"):
            path.write_bytes(b"XLOG\n0.13\nVersion: 1\n\n")
        code, text = server.client.call("operator.backup_start").failure
        assert code == ErrorCode.PROC_LUA
        assert ".xlog: " in text


class TestRead:
    @pytest.mark.parametrize(
        "name",
        [
            *(
                "secret",
                "../secret",
                "./00000000000000000000.snap",
                "00000000000000000000.snap/",
                "/etc/passwd",
            ),
            *("../../../../../../../../etc/passwd", "", ".", "..", "00000000000000000000.snap\0", "*.snap"),
            *("00000000000000000001.snap", "00000000000000000000.SNAP", "00000000000000000000"),
            *(None, 0, True, 1.5, b"00000000000000000000.snap", [FIRST], {"name": FIRST}),
        ],
    )
    def test_only_files_of_the_backup_can_be_read(self, server: Server, name: object) -> None:
        (server.directory / "secret").write_text("secret")
        assert FIRST in begun(server.client)
        answer = server.client.call("operator.backup_read", name, 0, 100)
        assert answer.failure == (ErrorCode.PROC_LUA, f"the backup has no file {name!r}")

    def test_not_a_path_that_the_server_would_accept(self, server: Server) -> None:
        begun(server.client)
        for path in (server.directory / FIRST, Path(os.path.relpath(server.directory / FIRST))):
            assert not server.client.call("operator.backup_read", str(path), 0, 100).ok

    def test_not_an_older_snapshot(self, server: Server) -> None:
        assert server.client.call("box.cfg", {"checkpoint_count": 5}).ok
        server.snapshot()
        assert (server.directory / FIRST).exists()
        assert FIRST not in begun(server.client)
        assert not server.client.call("operator.backup_read", FIRST, 0, 100).ok

    def test_not_the_files_of_another_connection(self, server: Server) -> None:
        begun(server.client)
        other = server.server.connect()
        assert other.call("operator.backup_read", FIRST, 0, 100).failure == (
            ErrorCode.PROC_LUA,
            "this connection has no backup: call operator.backup_start first",
        )

    @pytest.mark.parametrize(
        ("offset", "size", "reason"),
        [
            (-1, 1, "offset must be a whole number from 0 to 9223372036854775807"),
            (1.5, 1, "offset must be a whole number"),
            (True, 1, "offset must be a whole number"),
            ("0", 1, "offset must be a whole number"),
            (2**63, 1, "offset must be a whole number"),
            (0, 0, f"size must be a whole number from 1 to {PIECE_MAX}"),
            (0, PIECE_MAX + 1, "size must be a whole number"),
            (0, -1, "size must be a whole number"),
            (0, None, "size must be a whole number"),
        ],
    )
    def test_a_wrong_part(self, server: Server, offset: object, size: object, reason: str) -> None:
        begun(server.client)
        code, text = server.client.call("operator.backup_read", FIRST, offset, size).failure
        assert code == ErrorCode.PROC_LUA
        assert text.startswith(reason)

    @pytest.mark.parametrize("offset", [10**6, 2**63 - 1])
    def test_nothing_is_behind_the_end(self, server: Server, offset: int) -> None:
        begun(server.client)
        assert server.client.call("operator.backup_read", FIRST, offset, 1).data == [b""]

    def test_wrong_numbers_of_arguments(self, server: Server) -> None:
        for name, arguments in (
            ("backup_read", (1, 2, 3, 4)),
            ("backup_stop", (1,)),
            ("backup_start", ({}, 2)),
        ):
            code, text = server.client.call(f"operator.{name}", *arguments).failure
            assert code == ErrorCode.PROC_LUA
            assert "too many positional arguments" in text

    def test_a_disk_that_cannot_be_read(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(descriptor: int, size: int, offset: int) -> bytes:
            raise OSError(5, "Input/output error")

        begun(server.client)
        monkeypatch.setattr("iproto_server.server.backup_reader.os.pread", failing)
        assert server.client.call("operator.backup_read", FIRST, 0, 100).failure == (
            ErrorCode.SYSTEM,
            "cannot read the files of the backup: Input/output error",
        )


class TestEnd:
    def test_it_ends_when_it_is_stopped(self, server: Server) -> None:
        begun(server.client)
        assert len(server.open_files()) == 1
        for _ in range(2):
            assert server.client.call("operator.backup_stop").data == []
        assert server.open_files() == []
        assert not server.client.call("operator.backup_read", FIRST, 0, 100).ok

    def test_it_ends_with_the_connection(self, server: Server) -> None:
        client = server.server.connect()
        begun(client)
        client.close()

        def sessions() -> Any:
            return server.client.call("operator.sessions").data[0]

        while len(sessions()) > 1:
            pass
        assert server.open_files() == []

    def test_it_ends_with_the_server(self, tmp_path: Path) -> None:
        with ServerInProcess(tmp_path, []) as running:
            server = Server(running, tmp_path)
            begun(server.client)
        assert [path for path in open_files() if path.startswith(str(tmp_path))] == []


class TestRights:
    @pytest.fixture
    def ann(self, server: Server) -> IprotoClient:
        server.as_admin(lambda box: box.schema.user.create("ann", password="secret"))
        client = server.server.connect()
        assert log_in(client, "ann", "secret").ok
        return client

    @pytest.mark.parametrize("name", ["backup_start", "backup_read", "backup_stop"])
    @pytest.mark.parametrize("rights", ["execute", "read,write,execute", "read,write,execute,create"])
    def test_a_user_needs_all_rights(self, server: Server, ann: IprotoClient, name: str, rights: str) -> None:
        server.as_admin(lambda box: box.schema.user.grant("ann", rights, "universe"))
        code, text = ann.call(f"operator.{name}").failure
        assert code == ErrorCode.ACCESS_DENIED
        assert text.endswith("access to universe '' is denied for user 'ann'")

    def test_without_rights_not_even_the_call_is_allowed(self, ann: IprotoClient) -> None:
        code, text = ann.call("operator.backup_start").failure
        assert code == ErrorCode.ACCESS_DENIED
        assert text.startswith("Execute access to function 'operator.backup_start'")

    def test_the_role_super_has_them(self, server: Server, ann: IprotoClient) -> None:
        server.as_admin(lambda box: box.schema.user.grant("ann", "super"))
        assert FIRST in begun(ann)

    def test_an_admin_may_grant_the_procedures_alone(self, server: Server, ann: IprotoClient) -> None:
        def grant(box: Box) -> None:
            for name in ("operator.backup_start", "operator.backup_read"):
                box.schema.func.create(name)
                box.schema.user.grant("ann", "execute", "function", name)

        server.as_admin(grant)
        sizes = begun(ann)
        assert read(ann, FIRST, sizes[FIRST]) == server.files()[FIRST]
        assert ann.call("operator.status").error_code == ErrorCode.ACCESS_DENIED
