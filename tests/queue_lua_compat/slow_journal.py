"""A log whose writes may fail after their transactions have committed."""

from __future__ import annotations

from iproto_server import Box
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.native._native import Transaction


class SlowJournal(MemoryJournal):
    """A log whose writes are pending while it is slow."""

    is_slow = False

    def append(self, transaction: Transaction, /) -> bool:
        """Count the rows. Returns: whether their write is pending."""
        super().append(transaction)
        return self.is_slow

    def lose(self, box: Box) -> None:
        """Fail the writes of everything committed since the log became slow."""
        self.is_slow = False
        box.transactions.undo(box.transactions.take_unwritten())
