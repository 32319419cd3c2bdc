"""What the service manager hears."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from iproto_server.testing.logged_process import LoggedProcess
from tests.server.process.notify_socket import NotifySocket, start_service

EXTENSION = "EXTEND_TIMEOUT_USEC"
APPLICATION = """\
import os, subprocess, sys
from iproto_server import Application

app = Application("service")
SHOW = "import os; print(*sorted(os.environ))"

@app.procedure("variables")
def variables(box):
    child = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)
    return [sorted(os.environ), child.stdout.split()]

@app.setup
def setup(box):
    rows = box.schema.create_space("rows", if_not_exists=True)
    rows.create_index("primary", if_not_exists=True)
"""


class Service:
    """Starts a server of the application in `directory/service.py`, as systemd does."""

    def __init__(self, directory: Path, notified: NotifySocket, running: ExitStack) -> None:
        self.directory = directory
        self.notified = notified
        self._running = running
        self.write(APPLICATION)

    def write(self, text: str) -> None:
        (self.directory / "service.py").write_text(text)

    def start(self, *options: str, listen: str = "127.0.0.1:0", **environment: str) -> LoggedProcess:
        process = start_service(
            ["service:app", "--listen", listen, "--work-dir", "data", *options],
            directory=self.directory,
            environment={"NOTIFY_SOCKET": self.notified.path, **environment},
        )

        def end() -> None:
            if process.running:
                process.kill()

        self._running.callback(end)
        return process
