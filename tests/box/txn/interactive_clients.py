"""Clients with interactive transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from iproto_server import Box
from iproto_server.box.txn.interactive_transaction import InteractiveTransaction
from iproto_server.errors import ErrorCode

CONFLICT = (ErrorCode.TRANSACTION_CONFLICT, "Transaction has been aborted by conflict")


class Client:
    """A client with an interactive transaction."""

    def __init__(self, box: Box, timeout: float = 0, isolation: int = 0) -> None:
        self.box = box
        self.transaction: InteractiveTransaction | None = box.interactive.begin(timeout, isolation)

    def do(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a function as a request of the transaction."""
        assert self.transaction is not None
        self.box.interactive.resume(self.transaction)
        try:
            return function(*arguments, **options)
        finally:
            self.transaction = self.box.interactive.suspend()

    def commit(self) -> None:
        assert self.transaction is not None
        self.box.interactive.commit(self.transaction)

    def roll_back(self) -> None:
        assert self.transaction is not None
        self.box.interactive.roll_back(self.transaction)


def others(box: Box, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Run a function in a transaction of its own."""
    return box.run(box.session.background, function, *arguments, **options)


class UnwrittenJournal:
    """A journal whose rows are not written yet."""

    vclock: ClassVar[dict[int, int]] = {}

    def append(self, statements: object) -> bool:
        return True

    def position(self) -> int:
        return 0
