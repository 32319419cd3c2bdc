"""Our server as a user runs it: a process started from the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.logged_process import LoggedProcess
from tests.programs import REPOSITORY

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
        command = [sys.executable, "-m", "iproto_server", "serve", *applications]
        command += ["--listen", listen, "--work-dir", str(work_dir), *options]
        # an application of a test's own is imported from its work directory, the packages from the repository
        path = os.pathsep.join([str(work_dir), str(REPOSITORY)])
        self.process = LoggedProcess(
            command, cwd=work_dir, env={**os.environ, "PYTHONPATH": path, **(environment or {})}
        )
        try:
            ready = self.process.wait_for(r"listening.*?(\d+\.\d+\.\d+\.\d+|unix):([1-9]\d*|/[^\s\"']+)")
        except AssertionError:
            self.process.kill()
            raise
        self.host = ready[1]
        self.port = int(ready[2]) if ready[2].isdigit() else 0
        self.address = f"{ready[1]}:{ready[2]}"

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
