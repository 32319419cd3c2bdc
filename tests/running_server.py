"""Our server as a user runs it: a process started from the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from iproto_server.testing.serving import serve

QUEUE_APPLICATION = "queue_lua_compat.tutorial:app"


class RunningServer:
    """An `iproto-server serve` process.

    Args:
        work_dir: Its `--work-dir`.
        applications: The `MODULE:APP` arguments.
        options: More of the command line.
        listen: Its `--listen`; port 0 lets the system choose.
        environment: Environment variables beside the test's own.
    """

    def __init__(
        self,
        work_dir: Path,
        applications: Sequence[str] = (),
        options: Sequence[str] = (),
        *,
        listen: str = "127.0.0.1:0",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        serving = serve([*applications, "--listen", listen, *options], work_dir, environment)
        self.process = serving.process
        self.host = serving.host
        self.port = serving.port
        self.address = serving.address

    def stop(self) -> None:
        """End it with SIGTERM, which it must obey with exit status 0.

        Raises:
            AssertionError: If it ends in any other way.
        """
        status = self.process.terminate() if self.process.running else self.process.wait()
        assert status == 0, f"{self.process.command} ended with {status}; it wrote:\n{self.process.output}"

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
