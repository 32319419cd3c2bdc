"""Disks as the system makes them full, and files that must not be read: a whole server, from outside.

While the disk is full, whoever changes something is refused and everybody else is served. Whatever was
acknowledged is there afterwards, also after `kill -9`, and whatever was refused is not.
"""

from __future__ import annotations

import errno
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import refused
from tests.iproto_client import (
    CALL,
    DELETE,
    FUNCTION_NAME,
    INSERT,
    KEY,
    PING,
    REPLACE,
    SPACE_ID,
    TUPLE,
    IprotoClient,
)
from tests.running_server import QUEUE_APPLICATION, RunningServer
from tests.server.conftest import APPLICATION
from tests.server.faults.faulty_disk import WAL_IO

DISK_SIZE = 1 << 20
LOG_SIZE = 20_000


class LimitedFiles:
    """A directory in which files of one process cannot grow, when that is asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def fill(self, server: RunningServer, *, leave: int = 37) -> None:
        """Let the newest log grow by some bytes at most: a write that is longer is cut short."""
        log = max(self.directory.glob("*.xlog"))
        self._limit(server, min(log.stat().st_size + leave, LOG_SIZE - 1000))

    def fill_wholly(self, server: RunningServer) -> None:
        """Let no file grow beyond its first bytes."""
        self._limit(server, 100)

    def free(self, server: RunningServer | None) -> None:
        """Let them grow again."""
        if server is not None:
            self._limit(server, resource.RLIM_INFINITY)

    @staticmethod
    def _limit(server: RunningServer, size: int) -> None:
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, hard))


class SmallDisk:
    """A file system of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ballast = directory / "ballast"

    def fill(self, server: RunningServer, *, leave: int = 0) -> None:
        """Leave no room but what is left of each file's last page."""
        self.fill_wholly(server)

    def fill_wholly(self, server: RunningServer) -> None:
        """Leave no room."""
        with self._ballast.open("ab", buffering=0) as file, pytest.raises(OSError) as full:
            while True:
                file.write(bytes(4096))
        assert full.value.errno == errno.ENOSPC

    def free(self, server: RunningServer | None) -> None:
        """Make room again."""
        self._ballast.unlink(missing_ok=True)


Disk = LimitedFiles | SmallDisk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk that can be filled: a small one if we may mount one, else files that cannot grow."""
    directory = tmp_path / "disk"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(directory)]
    is_mounted = (
        shutil.which("mount") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )
    if not is_mounted:
        yield LimitedFiles(directory)
        return
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@pytest.fixture
def limited(tmp_path: Path) -> LimitedFiles:
    return LimitedFiles(tmp_path)


class Load:
    """Clients that send many requests at once, and know what has to be there.

    Parameters:
        server: whom they send them to.
        clients: how many.

    Attributes:
        rows: the rows that there are.
        tasks: the data of the tasks that were put and not acknowledged.
        refused: how many requests were refused.
    """

    def __init__(self, server: RunningServer, clients: int = 4) -> None:
        self._clients = [IprotoClient.at(server.address) for _ in range(clients)]
        self._space = self._clients[0].space_id("log")
        self._number = 0
        self._taken: list[list[int]] = [[] for _ in self._clients]
        self._data: dict[int, str] = {}
        self.rows: dict[int, str] = {}
        self.tasks: set[str] = set()
        self.refused = 0

    def round(self) -> None:
        """Every client sends a series of requests, then all answers are looked at."""
        sent = [self._send(client, taken) for client, taken in zip(self._clients, self._taken, strict=True)]
        for client, taken, requests in zip(self._clients, self._taken, sent, strict=True):
            for _ in requests:
                answer = client.receive()
                what, key, text = requests[answer.sync]
                if not answer.ok:
                    assert answer.failure == WAL_IO
                    self.refused += 1
                    if what == "ack":
                        taken.append(key)
                    continue
                match what:
                    case "write":
                        self.rows[key] = text
                    case "delete":
                        self.rows.pop(key, None)
                    case "put":
                        self.tasks.add(text)
                    case "take" if answer.data:
                        [task] = answer.data
                        taken.append(task["id"])
                        self._data[task["id"]] = task["data"]
                    case "ack":
                        self.tasks.remove(self._data[key])

    def _send(self, client: IprotoClient, taken: list[int]) -> dict[int, tuple[str, int, str]]:
        requests: dict[int, tuple[str, int, str]] = {}
        acknowledged, taken[:] = taken[:], []
        for task_id in acknowledged:
            requests[self._call(client, "queue.ack", task_id)] = ("ack", task_id, "")
        for _ in range(10):
            self._number += 1
            number, text = self._number, f"text {self._number} " * (self._number % 9)
            new = client.send(INSERT, {SPACE_ID: self._space, TUPLE: [number, text]})
            requests[new] = ("write", number, text)
            changed = client.send(REPLACE, {SPACE_ID: self._space, TUPLE: [number - 1, text]})
            requests[changed] = ("write", number - 1, text)
            if number % 3 == 0:
                gone = client.send(DELETE, {SPACE_ID: self._space, KEY: [number]})
                requests[gone] = ("delete", number, "")
            requests[self._call(client, "queue.put", text + str(number))] = ("put", 0, text + str(number))
            if number % 2:
                requests[self._call(client, "queue.take")] = ("take", 0, "")
        # Nobody else's rows, so that the order is known.
        self._number += 1
        return requests

    @staticmethod
    def _call(client: IprotoClient, name: str, *arguments: object) -> int:
        return client.send(CALL, {FUNCTION_NAME: name, TUPLE: list(arguments)})

    def until_refused(self) -> None:
        """Go on until somebody is refused."""
        before = self.refused
        while self.refused == before:
            self.round()

    def check(self, client: IprotoClient) -> None:
        """What can be read is what has to be there."""
        assert client.request(PING).ok
        assert dict(client.everything(self._space).data) == self.rows
        tasks = client.everything(client.space_id("queue")).data
        assert {row[3] for row in tasks} == self.tasks
        assert len(tasks) == len(self.tasks)
        [stats] = client.call("queue.stats").data
        assert stats["total"] == len(tasks)
        for status, name in (("R", "ready"), ("T", "taken")):
            assert stats[name] == sum(row[1] == status for row in tasks)

    def close(self) -> None:
        for client in self._clients:
            client.close()


def serve(directory: Path, *options: str) -> RunningServer:
    return RunningServer(directory, [QUEUE_APPLICATION, APPLICATION], options)


@pytest.mark.parametrize("mode", ["write", "fsync"])
class TestFull:
    def test_under_load(self, disk: Disk, mode: str) -> None:
        server = serve(disk.directory, "--wal-mode", mode)
        load = Load(server)
        try:
            with IprotoClient.at(server.address) as reader:
                for _ in range(3):
                    load.round()
                    disk.fill(server)
                    load.until_refused()
                    load.check(reader)
                    disk.fill_wholly(server)
                    assert "failed to" in reader.call("box.snapshot").failure[1]
                    assert not list(disk.directory.glob("*.inprogress"))
                    load.round()
                    load.check(reader)
                    disk.free(server)
                    before = load.refused
                    load.round()
                    assert load.refused == before
                    load.check(reader)
                assert reader.call("box.snapshot").data == ["ok"]
                load.round()
                disk.fill(server)
                load.until_refused()
        finally:
            server.kill()
            load.close()
        disk.free(None)
        with serve(disk.directory, "--wal-mode", mode) as again, IprotoClient.at(again.address) as client:
            load.check(client)
            assert "skipped the last" not in again.process.output


class TestFilesThatCannotGrow:
    def test_a_write_that_is_cut_short_is_none(self, limited: LimitedFiles) -> None:
        kept = []
        server = serve(limited.directory)
        try:
            with IprotoClient.at(server.address) as client:
                space = client.space_id("log")
                for leave in (0, 1, 18, 19, 20, 60, 150):
                    kept.append([leave, "kept"])
                    assert client.request(INSERT, {SPACE_ID: space, TUPLE: kept[-1]}).ok
                    limited.fill(server, leave=leave)
                    log = max(limited.directory.glob("*.xlog"))
                    size = log.stat().st_size
                    long = {SPACE_ID: space, TUPLE: [1000 + leave, "x" * 200]}
                    assert client.request(INSERT, long).failure == WAL_IO
                    assert log.stat().st_size == size
                    assert client.everything(space).data == kept
                    limited.free(server)
                kept.append([200, "kept, too"])
                assert client.request(INSERT, {SPACE_ID: space, TUPLE: kept[-1]}).ok
        finally:
            server.kill()
        with serve(limited.directory) as again, IprotoClient.at(again.address) as client:
            assert client.everything(space).data == kept

    def test_in_the_middle_of_load(self, limited: LimitedFiles) -> None:
        server = serve(limited.directory, "--wal-max-size", str(LOG_SIZE))
        load = Load(server)
        try:
            for number in range(8):
                limited.fill(server, leave=number * 531)
                load.until_refused()
                limited.free(server)
                load.round()
            with IprotoClient.at(server.address) as client:
                load.check(client)
        finally:
            server.kill()
            load.close()
        with serve(limited.directory) as again, IprotoClient.at(again.address) as client:
            load.check(client)


# -- files that cannot be used --


def files(directory: Path) -> dict[str, bytes]:
    """Every file there is, and what is in it."""
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


@pytest.fixture
def used(tmp_path: Path) -> Iterator[Path]:
    """The directory of a server that has stopped."""
    directory = tmp_path / "used"
    directory.mkdir()
    with serve(directory) as server, IprotoClient.at(server.address) as client:
        assert client.call("queue.put", "task").ok
        assert client.call("box.snapshot").ok
        assert client.call("queue.put", "task").ok
    yield directory
    # What is not readable could not be removed.
    for path in (directory, *directory.iterdir()):
        path.chmod(0o755)


class TestUnreadable:
    def test_a_directory(self, used: Path) -> None:
        before = files(used)
        used.chmod(0)
        words = refused(used, permissions_count=True)
        used.chmod(0o755)
        assert words == f"Permission denied: {used}"
        assert files(used) == before

    @pytest.mark.parametrize("kind", ["snap", "xlog"])
    def test_a_file(self, used: Path, kind: str) -> None:
        before = files(used)
        path = max(used.glob(f"*.{kind}"))
        path.chmod(0)
        assert refused(used, permissions_count=True) == f"Permission denied: {path}"
        path.chmod(0o644)
        assert files(used) == before

    def test_a_directory_that_nothing_can_be_written_to(self, tmp_path: Path) -> None:
        directory = tmp_path / "empty"
        directory.mkdir()
        directory.chmod(0o555)
        words = refused(directory, permissions_count=True)
        assert words.startswith(f"Permission denied: {directory}/")
        assert files(directory) == {}


class TestPaths:
    def test_logs_in_a_file_of_that_name(self, tmp_path: Path) -> None:
        path = tmp_path / "logs"
        path.write_text("precious")
        words = refused(tmp_path, "--wal-dir", str(path), status=2)
        assert words == f'--wal-dir: "{path}" is not a directory'
        assert files(tmp_path) == {"logs": b"precious"}

    def test_a_directory_below_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_text("precious")
        assert refused(tmp_path, "--memtx-dir", str(path / "below")) == f"Not a directory: {path}"
        assert files(tmp_path) == {"file": b"precious"}

    def test_directories_that_are_not_there_are_made(self, tmp_path: Path) -> None:
        options = ["--wal-dir", "logs/deep", "--memtx-dir", str(tmp_path / "snapshots")]
        for number in range(2):
            with serve(tmp_path, *options) as server, IprotoClient.at(server.address) as client:
                assert client.call("queue.stats").data[0]["total"] == number
                assert client.call("queue.put", "task").ok
        assert list((tmp_path / "logs" / "deep").glob("*.xlog"))
        assert list((tmp_path / "snapshots").glob("*.snap"))
        assert not list(tmp_path.glob("*.xlog"))


class TestReadOnly:
    def test_a_database_there_is_served_and_refuses_changes(self, disk: Disk) -> None:
        if isinstance(disk, LimitedFiles):
            pytest.skip("nothing may be mounted here")
        with serve(disk.directory) as server, IprotoClient.at(server.address) as client:
            assert client.call("queue.put", "task").ok
        before = files(disk.directory)
        subprocess.run(["mount", "-o", "remount,ro", str(disk.directory)], check=True)
        with serve(disk.directory) as server, IprotoClient.at(server.address) as client:
            assert client.call("queue.put", "task").failure == WAL_IO
            assert client.call("queue.stats").data[0]["total"] == 1
            assert "Read-only file system" in client.call("box.snapshot").failure[1] + server.process.output
        assert files(disk.directory) == before

    def test_a_new_database_is_not_made(self, disk: Disk) -> None:
        if isinstance(disk, LimitedFiles):
            pytest.skip("nothing may be mounted here")
        subprocess.run(["mount", "-o", "remount,ro", str(disk.directory)], check=True)
        assert refused(disk.directory).startswith(f"Read-only file system: {disk.directory}/")
