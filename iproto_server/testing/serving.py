"""`iproto-server serve` in a process of its own, from its start to the moment when it accepts connections."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from iproto_server.testing.logged_process import LoggedProcess

LAST_LINES = 20
"""How much of the log an error shows."""

_LISTENING = re.compile(r'listening on (unix:(?P<path>.+?)|(?P<host>\S+):(?P<port>\d+))(?:, TLS)?(?:"|$)')

_READY = "ready to accept requests"

_ENVIRONMENT_PREFIX = "IPROTO_SERVER_"


class ServerFailed(AssertionError):
    """A server that did not start, or did not end as it should; the message has its log's last lines."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that accepts connections.

    Parameters:
        process: the process.
        address: its first address as `--listen` would take it, `127.0.0.1:3301` or `unix:/path`.
        host: the host to connect to; "unix" for a unix socket.
        port: the TCP port; 0 for a unix socket.
    """

    process: LoggedProcess
    address: str
    host: str
    port: int


def serve(words: Sequence[str], work_dir: Path, environment: Mapping[str, str] | None = None) -> Serving:
    """Start a server and wait until it listens, and until Lua files have run.

    It imports what the calling process can import, then what is in its work directory. `IPROTO_SERVER_…`
    variables of the calling process do not reach it.

    Parameters:
        words: what stands behind `iproto-server serve`, without `--work-dir`.
        work_dir: its work directory, which is there.
        environment: environment variables beside those of the calling process.

    Returns:
        The server.

    Raises:
        ServerFailed: it ended, or did not listen in time.
    """
    command = [sys.executable, "-m", "iproto_server", "serve", *words, "--work-dir", str(work_dir)]
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(_ENVIRONMENT_PREFIX)
    }
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    process = LoggedProcess(
        command,
        cwd=work_dir,
        env={**inherited, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **(environment or {})},
    )
    try:
        found = process.wait_for(_LISTENING.pattern)
        if any(word.endswith(".lua") for word in words):
            process.wait_for(_READY)  # the file, which has begun to listen, has ended
    except AssertionError:
        if process.ended:
            reason = f"did not start (exit status {process.wait()})"
        else:
            process.kill()
            reason = "did not listen in time"
        raise ServerFailed(failure(reason, process.output)) from None
    if found["path"]:
        return Serving(process, f"unix:{found['path']}", "unix", 0)
    host = "127.0.0.1" if found["host"] == "*" else found["host"].strip("[]")
    return Serving(
        process, f"{found['host']}:{found['port']}".replace("*:", "127.0.0.1:"), host, int(found["port"])
    )


def failure(reason: str, log: str) -> str:
    """The text of an error.

    Parameters:
        reason: what is wrong, in a few words.
        log: everything the server has written.

    Returns:
        The reason, and the last lines of the log.
    """
    lines = log.splitlines()[-LAST_LINES:]
    written = "\n".join(f"    {line}" for line in lines) if lines else "    (nothing)"
    return f"iproto-server {reason}; the last it wrote:\n{written}"
