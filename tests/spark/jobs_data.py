"""Directories that jobs are tried on, and jobs run as from the command line."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import NamedTuple

import tarantool

from pyspark_tarantool.jobs.command_line import JobCommand
from tests.running_server import QUEUE_APPLICATION, RunningServer


class Outcome(NamedTuple):
    """What a job did.

    Attributes:
        status: The exit status.
        output: What it wrote to stdout.
        errors: The lines that it wrote to stderr.
    """

    status: int
    output: str
    errors: list[str]


def run(job: JobCommand, *arguments: object) -> Outcome:
    """Run a job in this process, in the session that there is."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = job.run([str(argument) for argument in arguments])
    return Outcome(status, output.getvalue(), errors.getvalue().splitlines())


def tutorial_directory(directory: Path) -> Path:
    """The files of a server whose queue has four ready tasks and a delayed one. Another was acknowledged
    after it had come back twice. Data is hostile."""
    with RunningServer(directory, [QUEUE_APPLICATION]) as server:
        client = tarantool.Connection(server.host, server.port)
        for _ in range(2):
            client.call("queue.put", "first")
        for _ in range(2):
            task = client.call("queue.take")[0]
            client.call("queue.release", task["id"])
        client.call("queue.ack", client.call("queue.take")[0]["id"])
        for text in ("<script>alert(1)</script>", 'a "quoted", long\nline'):
            client.call("queue.put", text)
        client.call("queue.put", "later", {"delay": 86400})
        client.call("queue.put", "last")
        client.close()
    return directory


def damaged(directory: Path) -> None:
    """Damage the middle of the newest log of a directory."""
    log = max(directory.glob("*.xlog"))
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 0xFF
    log.write_bytes(content)
