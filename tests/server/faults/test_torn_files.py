"""A server with files that a crash, or worse, has left: it says what it cuts, or why it does not start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iproto_server.text.counting import counted
from tests.command_line import refused
from tests.conftest import StartServer
from tests.iproto_client import REPLACE, SPACE_ID, TUPLE, IprotoClient
from tests.running_server import RunningServer
from tests.storage.sample_database import (
    COMPRESSED,
    PLAIN,
    SEVERAL,
    Rows,
    SampleDatabase,
    after,
    sample_database,
)

SPACE = 512


@pytest.fixture
def killed(tmp_path: Path) -> SampleDatabase:
    """The files of a server that was killed."""
    return sample_database(tmp_path, [PLAIN, SEVERAL, COMPRESSED], is_ended=False)


@pytest.fixture
def ended(tmp_path: Path) -> SampleDatabase:
    """The files of a server that has stopped."""
    return sample_database(tmp_path, [PLAIN, COMPRESSED, SEVERAL], is_ended=True)


def rows(client: IprotoClient) -> Rows:
    return dict(client.everything(SPACE).data)


class TestCut:
    @pytest.mark.parametrize(
        ("block", "bytes_left"), [(1, 1), (2, 18), (2, 19), (2, 60), (3, 3), (3, -1)], ids=str
    )
    def test_it_starts_says_so_and_goes_on(
        self, killed: SampleDatabase, start_server: StartServer, block: int, bytes_left: int
    ) -> None:
        end = killed.ends[block]
        size = end + bytes_left if bytes_left > 0 else killed.ends[block + 1] + bytes_left
        killed.restore(killed.data[:size])
        server = RunningServer(killed.directory)
        try:
            with IprotoClient.at(server.address) as client:
                assert rows(client) == killed.rows(block)
                assert client.request(REPLACE, {SPACE_ID: SPACE, TUPLE: [900, "new"]}).ok
        finally:
            server.kill()
        said = [
            line for line in server.process.lines if str(killed.log) in line and "skipped the last" in line
        ]
        assert len(said) == 1
        assert f"at offset {end}: skipped the last {counted(size - end, 'byte')}" in said[0]
        again = start_server(work_dir=killed.directory)
        with IprotoClient.at(again.address) as client:
            assert rows(client) == after(killed.rows(block), [(900, "new")])
        assert "skipped the last" not in again.process.output


class TestDamaged:
    @pytest.mark.parametrize(
        ("place", "offset"),
        [
            (lambda database: database.ends[1] + 4, 1),
            (lambda database: database.ends[2] + 40, 2),
            (lambda database: database.ends[3] + 25, 3),
            (lambda database: database.ends[3] + 4, 3),
        ],
        ids=["a size", "rows", "the last rows", "the last size"],
    )
    def test_it_does_not_start_changes_nothing_and_says_where(
        self,
        ended: SampleDatabase,
        start_server: StartServer,
        place: Callable[[SampleDatabase], int],
        offset: int,
    ) -> None:
        data = bytearray(ended.data)
        data[place(ended)] ^= 0x11
        ended.restore(bytes(data))
        words = refused(ended.directory)
        assert words.startswith(f"{ended.log}: ")
        assert f"at offset {ended.ends[offset]}" in words
        assert ended.unchanged(bytes(data))
        server = start_server([], ["--force-recovery"], work_dir=ended.directory)
        with IprotoClient.at(server.address) as client:
            assert rows(client) == ended.rows(without=offset)
        said = f"{ended.log}: "
        assert any(said in line and f"offset {ended.ends[offset]}" in line for line in server.process.lines)

    def test_a_log_is_missing(self, ended: SampleDatabase) -> None:
        sorted(ended.directory.glob("*.xlog"))[-2].unlink()
        assert "missing" in refused(ended.directory)

    def test_the_snapshot_is_damaged(self, ended: SampleDatabase) -> None:
        path = max(ended.directory.glob("*.snap"))
        data = bytearray(ended.files[path])
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        words = refused(ended.directory)
        assert words.startswith(f"{path}: ")
        assert "at offset" in words
        assert path.read_bytes() == data

    def test_the_snapshot_is_not_complete(self, ended: SampleDatabase) -> None:
        path = max(ended.directory.glob("*.snap"))
        path.write_bytes(ended.files[path][:-1])
        assert refused(ended.directory).startswith(f"{path}: the snapshot is incomplete")
