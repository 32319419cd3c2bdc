"""Transactions: ordered lists of changes that are logged as a whole or undone as a whole.

One thread owns the box, so at most one transaction runs at a time and needs no isolation; undo walks back
through its statements. Interactive transactions, which span several requests, alternate (`interactive.py`).

The rows of a committed transaction are written at the end of the event loop's iteration. Its statements are
kept until then: if the write fails, all unwritten transactions are undone, the newest first.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import Final, NoReturn, Protocol

from iproto_server.box.stack import more_stack
from iproto_server.box.txn.journal import Journal
from iproto_server.errors import BoxError
from iproto_server.native._native import TransactionEngine

logger = logging.getLogger("iproto_server.transaction")

EXIT_UNDOABLE: Final = 70
"""The exit status of a process that cannot undo a transaction: `EX_SOFTWARE` of sysexits.h."""


class TransactionManager(TransactionEngine):
    """The running transaction with its callbacks, and committed transactions that are not written yet.

    The engine commits and undoes; this class has what needs Python.

    Parameters:
        journal: receives the rows of committed transactions.
    """

    __slots__ = ()

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.write_soon = lambda: None

    def _refuse(self, code: int) -> NoReturn:
        """Raise an error of the engine."""
        raise BoxError(code)

    def _enter_undo(self) -> None:
        """Give the code that undoes statements more stack."""
        more_stack.__enter__()

    def _leave_undo(self) -> None:
        more_stack.__exit__()

    def _call_all(self, callbacks: list[Callable[[], object]]) -> None:
        call_all(callbacks)

    def _end_process(self) -> NoReturn:
        _end_process()


class TransactionScope(Protocol):
    """An object in which transactions run, such as a `Box`."""

    @property
    def transactions(self) -> TransactionManager:
        """The transaction manager."""

    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` if the running transaction is undone."""


def _end_process() -> NoReturn:
    """End the process: a transaction cannot be undone, so rows in memory differ from the log.

    A restart recovers from the log. Tarantool panics in this case, too.
    """
    logger.critical(
        "cannot undo a transaction; the rows in memory are wrong, the process ends", exc_info=True
    )
    logging.shutdown()
    os._exit(EXIT_UNDOABLE)


def call_all(callbacks: Iterable[Callable[[], object]]) -> None:
    """Run callbacks; an error in one is logged and does not stop the others."""
    for callback in callbacks:
        try:
            callback()
        except BaseException:
            logger.exception("transaction callback failed")
