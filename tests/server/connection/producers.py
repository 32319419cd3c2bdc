"""Producers that send many tasks at a time, and close without reading anything, not even the greeting.

    python -m tests.server.connection.producers [PRODUCERS [TASKS]]

starts a server, lets so many producers put so many tasks each, over TCP, a unix socket and TLS, and prints
how many of them are stored.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Self

from tests.config.certificates import Certificates
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE, IprotoClient, frame
from tests.running_server import RunningServer

THREADS = 8


class Producers:
    """A server with a tube, and producers. Use as a context manager.

    Parameters:
        directory: the server's.
        kind: "tcp", "unix" or "tls".
    """

    def __init__(self, directory: Path, kind: str) -> None:
        self._path = str(directory / "producers")
        options: list[str] = []
        self._certificates = Certificates(directory) if kind == "tls" else None
        if self._certificates is not None:
            options = ["--listen", self._certificates.listen(f"unix:{self._path}")]
        elif kind == "unix":
            options = ["--listen", f"unix:{self._path}"]
        self._is_tcp = kind == "tcp"
        self._server = RunningServer(directory, ["queue_lua_compat.tubes:app"], options)

    def __enter__(self) -> Self:
        self._accepted = 1
        self._client = IprotoClient.at(self._server.address)
        assert self._client.call("queue.create_tube", "t", "fifo").ok
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()
        self._server.stop()

    def run(self, producers: int, tasks: int) -> int:
        """Let producers put tasks.

        Parameters:
            producers: how many of them.
            tasks: how many tasks each puts.

        Returns: the number of stored tasks when all producers' connections have ended.
        """
        requests = b"".join(
            frame(CALL, {FUNCTION_NAME: "queue.tube.t:put", TUPLE: [number]}, sync=number)
            for number in range(tasks)
        )
        left = iter(range(producers))
        threads = [threading.Thread(target=self._produce, args=(left, requests)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._accepted += producers
        while self._connections() != (1, self._accepted):
            """The last ones have not been accepted yet, or their sessions have not ended."""
        stored: int = self._client.call("box.space.t:len").data[0]
        return stored

    def _connections(self) -> tuple[int, int]:
        connections = self._client.call("box.stat.net").data[0]["CONNECTIONS"]
        return connections["current"], connections["total"]

    def _produce(self, left: object, requests: bytes) -> None:
        for _ in left:  # type: ignore[attr-defined]
            if self._is_tcp:
                produced = socket.create_connection((self._server.host, self._server.port))
            else:
                produced = socket.socket(socket.AF_UNIX)
                produced.connect(self._path)
            if self._certificates is not None:
                produced = self._certificates.context().wrap_socket(produced)
            produced.sendall(requests)
            produced.close()


def main() -> None:
    """Print a line for each kind of transport."""
    producers, tasks = (int(given) for given in (*sys.argv[1:], "1000", "50")[:2])
    for kind in ("tcp", "unix", "tls"):
        with tempfile.TemporaryDirectory() as directory, Producers(Path(directory), kind) as running:
            stored = running.run(producers, tasks)
        print(f"{kind}: {producers} producers, {producers * tasks} tasks sent, {stored} stored")


if __name__ == "__main__":
    main()
