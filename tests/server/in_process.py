"""Our server in a thread of the test's own process, so that the test can put faults under it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

from iproto_server.app import Application
from iproto_server.config.address import Address
from iproto_server.config.config import Config
from iproto_server.importer import ImportAnew
from iproto_server.server.server import Server
from iproto_server.storage.storage import Storage
from queue_lua_compat.tutorial import TutorialQueue
from tests.iproto_client import IprotoClient
from tests.server.faults.faulty_disk import FaultyDisk


class ServerInProcess:
    """A server whose log is on a disk that the test rules. Use as a context manager.

    Parameters:
        work_dir: its directory.
        applications: what it serves.
        loop: what it runs in; None for a loop of asyncio's own.
        import_anew: what imports the applications for a reload; None for nothing.
        options: more of its configuration.

    Attributes:
        disk: what its log is on.
        server: the server, to be looked at only through `run`.
    """

    def __init__(
        self,
        work_dir: Path,
        applications: Sequence[Application],
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        import_anew: ImportAnew | None = None,
        **options: Any,
    ) -> None:
        self.disk = FaultyDisk()
        options.setdefault("listen", (Address("127.0.0.1", 0),))
        config = Config(work_dir=work_dir, **options)
        storage = partial(Storage, open_file=self.disk.open, sync_file=self.disk.sync)
        self.server = Server(config, applications, storage, import_anew)
        self._loop = loop or asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._clients: list[IprotoClient] = []
        self._is_stopped = False

    @property
    def failures(self) -> int:
        """How often its log could not be written."""
        return self.server.storage.log.failures

    def connect(self) -> IprotoClient:
        """A new client, closed at the end."""
        client = IprotoClient.at(self.server.box.listen[0])
        self._clients.append(client)
        return client

    def run(self, coroutine: Any) -> Any:
        """Await something in the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def stop(self) -> None:
        """Stop the server before the end; a second call does nothing."""
        if not self._is_stopped:
            self._is_stopped = True
            self.run(self.server.stop())

    def __enter__(self) -> Self:
        self.server.open(self._loop)
        self._thread.start()
        self.run(self.server.start())
        return self

    def __exit__(self, *error: object) -> None:
        for client in self._clients:
            client.close()
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Start(Protocol):
    """Starts a server with more of its configuration."""

    def __call__(self, **options: Any) -> ServerInProcess: ...


@contextmanager
def queue_servers(work_dir: Path, application: Application) -> Iterator[Start]:
    """Something that starts servers of the tutorial's queue and an application, which stop at the end.

    Parameters:
        work_dir: their directory.
        application: what they serve beside the queue.
    """
    with ExitStack() as running:

        def start(**options: Any) -> ServerInProcess:
            queue = Application("queue")
            TutorialQueue(queue)
            return running.enter_context(ServerInProcess(work_dir, [queue, application], **options))

        yield start
