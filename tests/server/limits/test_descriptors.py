"""What becomes of files and clients when there are no descriptors left."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from iproto_server import descriptors
from iproto_server.descriptors import SPARE, SpareDescriptors, raise_descriptor_limit
from tests.iproto_client import PING, IprotoClient
from tests.running_server import RunningServer

LIMIT = 60
APPLICATION = "tests.server.limits.descriptors_application:app"


def _lower_limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Give few descriptors to the processes that are started in the block; this one may have more open."""
    with patch.object(subprocess, "Popen", partial(subprocess.Popen, preexec_fn=_lower_limit)):
        yield


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with few_descriptors():
        server = RunningServer(tmp_path, [APPLICATION])
    with server:
        # What the start itself has opened is closed by then.
        server.process.wait_for("ready to accept requests")
        yield server


class TestServer:
    def test_a_client_is_told_why_it_cannot_connect_and_the_log_says_so_once(
        self, server: RunningServer
    ) -> None:
        with IprotoClient.at(server.address) as client:
            assert client.call("use_up").data[0] > 0
            for _ in range(20):
                client.call("use_up")  # also what has become free in the meantime
                with IprotoClient.at(server.address) as refused:
                    error = (115, "Too many connections: Too many open files")
                    assert refused.receive().failure == error
                    assert refused.closed_by_server()
            client.call("give_back")
            with IprotoClient.at(server.address) as other:
                assert other.request(PING).ok
            [line] = [line for line in server.process.output.splitlines() if "cannot accept" in line]
            assert 'reason="Too many open files"' in line
            assert f"descriptor_limit={LIMIT}" in line

    def test_logs_and_snapshots_are_written_all_the_same(self, server: RunningServer, tmp_path: Path) -> None:
        with IprotoClient.at(server.address) as client:
            client.call("use_up")
            for number in range(10):
                assert client.call("write", number).ok
                assert client.call("box.snapshot").data == ["ok"]
            files = {path.suffix: path for path in sorted(tmp_path.iterdir())}
            assert files[".snap"].name == files[".xlog"].name.replace("xlog", "snap")
            assert "Too many open files" not in server.process.output
            client.call("give_back")

    def test_by_default_connections_leave_some_for_files(self, server: RunningServer) -> None:
        clients = [IprotoClient.at(server.address) for _ in range(LIMIT // 2)]
        with IprotoClient.at(server.address) as refused:
            assert refused.receive().failure == (
                115,
                f"Too many connections: max_connections is {LIMIT // 2}",
            )
        assert "cannot accept" not in server.process.output
        for client in clients:
            assert client.request(PING).ok
            client.close()

    def test_the_limit_is_raised_for_more_connections_where_the_system_allows_it(
        self, tmp_path: Path
    ) -> None:
        with few_descriptors():
            server = RunningServer(tmp_path, [APPLICATION], ["--max-connections", "100"])
        with server:
            clients = [IprotoClient.at(server.address) for _ in range(100)]
            for client in clients:
                assert client.request(PING).ok
                client.close()
            limits = Path(f"/proc/{server.process.pid}/limits").read_text()
            [line] = [line for line in limits.splitlines() if line.startswith("Max open files")]
            assert line.split()[3] == "164"

    def test_the_log_says_where_the_system_does_not(self, tmp_path: Path) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard == resource.RLIM_INFINITY:
            pytest.skip("this system has no limit")
        with RunningServer(tmp_path, [APPLICATION], ["--max-connections", str(hard)]) as server:
            expected = (
                f"max_connections of {hard} needs {hard + 64} descriptors, but the system allows {hard}"
            )
            assert expected in server.process.output


class TestSpareDescriptors:
    @pytest.fixture
    def spare(self) -> Iterator[SpareDescriptors]:
        spare = SpareDescriptors()
        spare.hold()
        yield spare
        spare.release()

    def test_one_is_given_away_for_a_file_that_cannot_be_opened_otherwise(
        self, spare: SpareDescriptors
    ) -> None:
        before = len(os.listdir("/proc/self/fd"))
        attempts: list[int] = []

        def open_file() -> str:
            attempts.append(len(os.listdir("/proc/self/fd")))
            if len(attempts) == 1:
                raise OSError(24, "Too many open files")
            return "file"

        assert spare.open(open_file) == "file"
        assert attempts == [before, before - 1]
        assert spare.refill()
        assert len(os.listdir("/proc/self/fd")) == before

    def test_when_they_are_all_given_away_there_are_none(self, spare: SpareDescriptors) -> None:
        attempts: list[int] = []

        def refuse() -> int:
            attempts.append(1)
            raise OSError(24, "Too many open files")

        def refuse_another() -> int:
            raise OSError(24, "Too many open files")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(descriptors, "_open_null", refuse_another)
            for _ in range(SPARE + 1):
                attempts.clear()
                with pytest.raises(OSError, match="Too many open files"):
                    spare.open(refuse)
            assert len(attempts) == 1
        assert spare.refill()

    def test_what_is_kept_for_others_stays(self, spare: SpareDescriptors) -> None:
        attempts = []

        def refuse() -> None:
            attempts.append(1)
            raise OSError(24, "Too many open files")

        for _ in range(3):
            with pytest.raises(OSError, match="Too many open files"):
                spare.open(refuse, keep=SPARE - 1)
        # The first takes one, which is back for the second.
        assert len(attempts) == 6

    def test_what_else_goes_wrong_costs_none(self, spare: SpareDescriptors, tmp_path: Path) -> None:
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(FileNotFoundError):
            spare.open(lambda: (tmp_path / "missing").open())
        assert len(os.listdir("/proc/self/fd")) == before

    def test_as_long_as_nobody_wants_any_none_are_held(self) -> None:
        before = len(os.listdir("/proc/self/fd"))
        spare = SpareDescriptors()
        assert spare.refill()
        spare.hold()
        spare.hold()
        spare.release()
        assert len(os.listdir("/proc/self/fd")) == before + SPARE
        spare.release()
        assert len(os.listdir("/proc/self/fd")) == before

    def test_it_says_when_it_cannot_get_them_back(
        self, spare: SpareDescriptors, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse() -> int:
            raise OSError(24, "Too many open files")

        with monkeypatch.context() as patched:
            patched.setattr(descriptors, "_open_null", refuse)
            with pytest.raises(OSError, match="Too many open files"):
                spare.open(refuse)
            assert not spare.refill()
        assert spare.refill()


def test_the_limit_of_descriptors_is_never_lowered() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    _lower_limit()
    try:
        assert raise_descriptor_limit(LIMIT - 10) == LIMIT
        assert raise_descriptor_limit(LIMIT + 10) == LIMIT + 10
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
