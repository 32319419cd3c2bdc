"""What is wrong."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a finding is about."""

    LOST = "lost"
    """Rows are not what the acknowledged requests made them."""

    HALF = "half"
    """A part of a transaction is there, and another part is not."""

    STRANGE = "strange"
    """There is something that nobody has written."""

    INDEX = "index"
    """An index does not agree with the primary one."""

    COUNTER = "counter"
    """A counter does not agree with the data."""

    ROLLBACK = "rollback"
    """A transaction that was not committed is there."""

    ISOLATION = "isolation"
    """Somebody has seen a part of a transaction, or less than there was before."""

    TASK = "task"
    """A task is lost, done twice or in two hands."""

    FILES = "files"
    """Logs and snapshots do not fit together."""

    ANSWER = "answer"
    """A request was answered wrongly."""

    SERVER = "server"
    """The server does not start, ended by itself, or reports an error of its own."""


class Finding(NamedTuple):
    """One thing that is wrong.

    Args:
        kind: What it is about.
        text: What exactly, in one line.
    """

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"
