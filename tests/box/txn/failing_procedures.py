"""Procedures that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.native._native import Transaction


class Refusal(Exception):
    """The error that procedures of these tests raise."""


class FullDisk(MemoryJournal):
    """A journal that refuses rows while `error` is set.

    Attributes:
        error: what `append` raises.
        taken: how many rows each transaction had.
    """

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.taken: list[int] = []

    def append(self, transaction: Transaction, /) -> bool:
        """Accept the rows, or raise."""
        if self.error is not None:
            raise self.error
        self.taken.append(len(transaction))
        return super().append(transaction)


def run(box: Box, function: Callable[..., Any], *arguments: object) -> Any:
    return box.run(box.session.background, function, *arguments)


def fails(box: Box, *steps: Callable[[], object]) -> None:
    """Run a procedure that performs these steps and then raises."""

    def procedure() -> None:
        for step in steps:
            step()
        raise Refusal

    with pytest.raises(Refusal):
        run(box, procedure)
    assert not box.is_in_txn()
