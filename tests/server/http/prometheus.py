"""A real Prometheus (Debian's) in a directory of the test's own, and what it has stored."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode
from urllib.request import urlopen

from iproto_server.testing.logged_process import LoggedProcess
from tests.programs import require_program

PACKAGE = "prometheus"
JOB = "queue"

_CONFIGURATION = """\
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [{rules}]
scrape_configs:
  - job_name: {job}
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""


def promtool() -> str:
    """The path of `promtool`; the test is skipped, or fails in CI, where there is none."""
    return require_program("promtool", PACKAGE)


class Prometheus:
    """Prometheus on a free loopback port, which scrapes a server of ours every second.

    Args:
        directory: Where its configuration and its data go.
        port: The port of our server's HTTP.
        rules: A file with alert rules.
    """

    def __init__(self, directory: Path, port: int, rules: Path) -> None:
        program = require_program("prometheus", PACKAGE)
        configuration = directory / "prometheus.yml"
        configuration.write_text(_CONFIGURATION.format(rules=rules, job=JOB, port=port))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._process = LoggedProcess(
            [
                program,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
            ],
            cwd=directory,
        )
        try:
            self._process.wait_for("Server is ready to receive web requests")
        except AssertionError:
            self._process.kill()
            raise

    def ask(self, path: str, **parameters: str) -> Any:
        """Ask its API, and return the data of the answer."""
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urlencode(parameters)}"
        with urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The present result of an expression: labels and values."""
        result = self.ask("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in result]

    def wait_for(self, expression: str) -> None:
        """Wait until an expression has a result, as comparisons have once they are true.

        Raises:
            AssertionError: It never had one.
        """
        deadline = time.monotonic() + 30
        while not self.query(expression):
            assert time.monotonic() < deadline, f"{expression} has no result\n{self._process.output}"
            time.sleep(0.1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.running:
            self._process.terminate()
