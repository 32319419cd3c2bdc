"""A source with a snapshot and logs, and refused backups of it."""

from __future__ import annotations

from tests.command_line import run

SNAPSHOT, FIRST, SECOND = (
    "00000000000000000004.snap",
    "00000000000000000002.xlog",
    "00000000000000000009.xlog",
)


def refused(*arguments: object, status: int = 1) -> str:
    """Run a command that prints nothing but the one line that says why."""
    outcome = run(*arguments)
    assert (outcome.status, outcome.output) == (status, "")
    (line,) = outcome.errors
    return line
