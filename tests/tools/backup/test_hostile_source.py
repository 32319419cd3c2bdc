"""`iproto-server backup` of servers that answer wrongly, or whose connection is cut."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run
from tests.tools.backup.copied import refused
from tests.tools.backup.served import Source, answering


class Proxy:
    """Passes a connection on to a server, and cuts it after some bytes of the server."""

    def __init__(self, address: str, limit: int) -> None:
        host, _, port = address.rpartition(":")
        self._server = (host, int(port))
        self._limit = limit
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.passed = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        client, _ = self._listening.accept()
        with client, socket.create_connection(self._server) as server:
            sender = threading.Thread(target=self._pass_on, args=(client, server))
            sender.start()
            while self.passed < self._limit:
                data = server.recv(min(4096, self._limit - self.passed))
                if not data:
                    break
                client.sendall(data)
                self.passed += len(data)
            client.shutdown(socket.SHUT_RDWR)
            sender.join()

    @staticmethod
    def _pass_on(client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(4096):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            return  # cut

    def close(self) -> None:
        self._thread.join()
        self._listening.close()


class TestCutConnection:
    @pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.95])
    def test_nothing_is_left(self, source: Source, target: Path, part: float) -> None:
        source.add(5, padding="".join(map(str, range(30_000))))
        source.snapshot()
        source.add(5, padding="".join(map(str, range(30_000))))
        whole = Proxy(source.address, 10**9)
        assert run("backup", whole.address, target).errors == []
        whole.close()
        cut = Proxy(source.address, int(whole.passed * part))
        later = target.with_name("tuesday")
        line = refused("backup", cut.address, later)
        cut.close()
        assert re.match(f"(the connection to|cannot connect to) {cut.address}", line)
        assert [path.name for path in target.parent.iterdir()] == ["monday"]
        # The server has noticed, and the next one works.
        assert run("backup", source.address, later).errors == []


SNAPSHOT = "00000000000000000000.snap"


class TestHostileServer:
    """A server whose answers are wrong writes no files but those of a verified backup."""

    @pytest.mark.parametrize(
        ("files", "reason"),
        [
            (
                [{"name": "../../etc/cron.d/evil", "size": 1}],
                "'../../etc/cron.d/evil' is not the name of a snap",
            ),
            ([{"name": "/tmp/00000000000000000000.snap", "size": 1}], "is not the name of a snapshot or log"),
            ([{"name": f"{SNAPSHOT}\n", "size": 1}], "is not the name of a snapshot or log"),
            ([{"name": f"{SNAPSHOT}/x", "size": 1}], "is not the name of a snapshot or log"),
            ([{"name": b"00000000000000000000.snap", "size": 1}], "is not the name of a snapshot or log"),
            ([{"name": SNAPSHOT}], f"{SNAPSHOT} has no size"),
            ([{"name": SNAPSHOT, "size": -1}], f"{SNAPSHOT} has no size"),
            ([{"name": SNAPSHOT, "size": True}], f"{SNAPSHOT} has no size"),
            ([5], "None is not the name of a snapshot or log"),
            ([], "there is not one snapshot"),
            ([{"name": SNAPSHOT, "size": 1}] * 2, "there is not one snapshot"),
            (5, "it has no list of files"),
        ],
    )
    def test_wrong_files(
        self, source: Source, target: Path, monkeypatch: pytest.MonkeyPatch, files: object, reason: str
    ) -> None:
        answering(monkeypatch, lambda name, arguments: [{"files": files}])
        line = refused("backup", source.address, target)
        assert line.startswith(f"unexpected answer of {source.address}: ")
        assert reason in line
        assert list(target.parent.iterdir()) == []

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (["text"], "it has no bytes of a file"),
            ([], "it has no bytes of a file"),
            ([b"x" * 200], "it has no bytes of a file"),
            ([b""], "the file ends within the header"),
            ([b"x" * 100], "no header"),
        ],
    )
    def test_wrong_bytes(
        self, source: Source, target: Path, monkeypatch: pytest.MonkeyPatch, data: list[Any], reason: str
    ) -> None:
        def answer(name: str, arguments: tuple[Any, ...]) -> list[Any]:
            return [{"files": [{"name": SNAPSHOT, "size": 100}]}] if name.endswith("start") else data

        answering(monkeypatch, answer)
        outcome = run("backup", source.address, target)
        assert (outcome.status, outcome.output, len(outcome.errors)) == (1, "", 1)
        assert list(target.parent.iterdir()) == []

    def test_a_file_under_the_name_of_another(
        self, source: Source, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        source.add()
        source.snapshot()
        [snapshot] = source.directory.glob("*.snap")
        data = snapshot.read_bytes()

        def answer(name: str, arguments: tuple[Any, ...]) -> list[Any]:
            if name.endswith("start"):
                return [{"files": [{"name": SNAPSHOT, "size": len(data)}]}]
            _, offset, size = arguments
            return [data[offset : offset + size]]

        answering(monkeypatch, answer)
        assert "the name does not fit the clock" in refused("backup", source.address, target)
        assert list(target.parent.iterdir()) == []
