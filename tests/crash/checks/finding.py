"""Findings of the crash test."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of findings."""

    LOST = "lost"
    """Rows differ from the result of the acknowledged requests."""

    HALF = "half"
    """A transaction is there in part."""

    STRANGE = "strange"
    """Rows that no client wrote."""

    INDEX = "index"
    """An index differs from the primary one."""

    COUNTER = "counter"
    """A counter differs from the data."""

    ROLLBACK = "rollback"
    """A transaction that was not committed is there."""

    ISOLATION = "isolation"
    """A reader has seen a part of a transaction, or an older state than before."""

    TASK = "task"
    """A task is lost, done twice, or has two owners."""

    FILES = "files"
    """Logs and snapshots are inconsistent."""

    ANSWER = "answer"
    """A wrong answer."""

    SERVER = "server"
    """The server does not start, ended by itself, or reports an internal error."""


class Finding(NamedTuple):
    """One problem.

    Parameters:
        kind: Its kind.
        text: A description in one line.
    """

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"
