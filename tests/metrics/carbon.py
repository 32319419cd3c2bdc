"""A real carbon-cache (Debian's graphite-carbon) in a directory of the test's own, and what it has stored."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from iproto_server.testing.logged_process import LoggedProcess
from tests.programs import require_program

PACKAGE = "graphite-carbon"

_CONFIGURATION = """\
[cache]
STORAGE_DIR = {directory}
LOCAL_DATA_DIR = {directory}/whisper
CONF_DIR = {directory}
LOG_DIR = {directory}
PID_DIR = {directory}
USER =
MAX_UPDATES_PER_SECOND = inf
MAX_CREATES_PER_MINUTE = inf
LINE_RECEIVER_INTERFACE = 127.0.0.1
LINE_RECEIVER_PORT = {tcp_port}
ENABLE_UDP_LISTENER = True
UDP_RECEIVER_INTERFACE = 127.0.0.1
UDP_RECEIVER_PORT = {udp_port}
PICKLE_RECEIVER_INTERFACE = 127.0.0.1
PICKLE_RECEIVER_PORT = 0
CACHE_QUERY_INTERFACE = 127.0.0.1
CACHE_QUERY_PORT = 0
CARBON_METRIC_INTERVAL = 0
WHISPER_AUTOFLUSH = True
WHISPER_FALLOCATE_CREATE = False
ENABLE_TAGS = False
"""

_SCHEMAS = """\
[everything]
pattern = .*
retentions = 1s:1h
"""


class Carbon:
    """carbon-cache on free loopback ports, keeping every second for an hour.

    Parameters:
        directory: where its configuration and its whisper files go.
    """

    def __init__(self, directory: Path) -> None:
        self._program = require_program("carbon-cache", PACKAGE)
        self._fetch = require_program("whisper-fetch", PACKAGE)
        self._directory = directory
        self.tcp_port = _free_port(socket.SOCK_STREAM)
        self.udp_port = _free_port(socket.SOCK_DGRAM)
        configuration = _CONFIGURATION.format(
            directory=directory, tcp_port=self.tcp_port, udp_port=self.udp_port
        )
        (directory / "carbon.conf").write_text(configuration)
        (directory / "storage-schemas.conf").write_text(_SCHEMAS)
        self.start()

    def start(self) -> None:
        """Start it, or start it again on the same ports; both receivers are open afterwards."""
        command = [self._program, f"--config={self._directory / 'carbon.conf'}", "--debug", "start"]
        self._process = LoggedProcess(command, cwd=self._directory)
        try:
            self._process.wait_for(f"CarbonReceiverFactory starting on {self.tcp_port}")
            self._process.wait_for(f"MetricDatagramReceiver starting on {self.udp_port}")
        except AssertionError:
            self._process.kill()
            raise

    def stop(self) -> None:
        """End it; it writes what it holds first."""
        self._process.terminate()

    def points(self, metric: str) -> dict[int, float]:
        """Read a metric's whisper file.

        Parameters:
            metric: its full name with dots.

        Returns:
            The stored values by their second, since the epoch.
        """
        path = self._directory / "whisper" / f"{metric.replace('.', '/')}.wsp"
        if not path.exists():
            return {}
        since = int(time.time()) - 3500
        command = [self._fetch, "--json", f"--from={since}", str(path)]
        fetched = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=30).stdout)
        seconds = range(fetched["start"], fetched["end"], fetched["step"])
        return {
            second: value
            for second, value in zip(seconds, fetched["values"], strict=True)
            if value is not None
        }

    def wait_for_point(self, metric: str, value: float) -> None:
        """Wait until the newest stored value of a metric is this one.

        Raises:
            AssertionError: it did not become so.
        """
        deadline = time.monotonic() + 20
        while True:
            points = self.points(metric)
            if points and points[max(points)] == value:
                return
            assert time.monotonic() < deadline, (
                f"{metric} never became {value}: {points}\n{self._process.output}"
            )
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.running:
            self.stop()


def _free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
