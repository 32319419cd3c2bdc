"""The command line, run as a user runs it, but in this process."""

from __future__ import annotations

import contextlib
import io
from typing import NamedTuple

from iproto_server.cli import main


class Outcome(NamedTuple):
    """What a command did.

    Attributes:
        status: The exit status.
        output: What it wrote to stdout.
        errors: The lines that it wrote to stderr, without the program's name.
    """

    status: int
    output: str
    errors: list[str]


def run(*arguments: object) -> Outcome:
    """Run `iproto-server`; every line of its errors must begin with the program's name."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    errors = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = main([str(argument) for argument in arguments])
    output.flush()
    lines = errors.getvalue().splitlines()
    prefix = "iproto-server: "
    assert all(line.startswith(prefix) for line in lines), lines
    written = output.buffer.getvalue().decode("utf-8")
    return Outcome(status, written, [line.removeprefix(prefix) for line in lines])
