"""Group commit: one write to the log and one to each client for all that happened in a loop iteration.

No response leaves before the rows that it rests on are in the log. Where the log is waited for (`wal_mode`
fsync), the loop goes on meanwhile; what it does then is the next batch, which is written when this one is
through.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from functools import partial
from typing import Final, NamedTuple, Protocol

from iproto_server.box.txn.statement import Transaction
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.errors import BoxError
from iproto_server.native._native import LogRows, Output, OutputBatch, send_outputs
from iproto_server.server.connection.busy_poll import BusyPoll
from iproto_server.storage.wal import WalMode, WriteAheadLog

_FSYNC: Final = WalMode.FSYNC  # an attribute of an enumeration's class is found slowly


class OutgoingConnection(Protocol):
    """A connection with responses to send; `Connection` implements it."""

    @property
    def has_logged_output(self) -> bool:
        """Whether a response rests on rows that are not in the log yet."""

    def send_output(self) -> None:
        """Send all responses."""

    def refuse_logged(self, error: BoxError) -> None:
        """Replace the responses that rest on unwritten rows by an error."""

    def take_output(self) -> Output:
        """Hand over all responses, to be given to `send` when their rows are in the log."""

    def send(self, output: Output, error: BoxError | None = None) -> None:
        """Send what `take_output` has handed over, with an error instead of what rests on unwritten rows."""


class _Writing(NamedTuple):
    """A batch that is being written: what is undone, unsent or told should that fail."""

    transactions: list[Transaction]
    held: list[tuple[OutgoingConnection, Output]]
    listeners: list[asyncio.Future[None]]


class Batch(OutputBatch):
    """The connections with responses to send, held until the rows behind them are in the log.

    Parameters:
        transactions: whose committed transactions are written.
        log: the log; None where there is none, and nothing has to be written.
        executor: where the log is written while the loop goes on, one write at a time; needed for `fsync`.
        busy_poll: looks for the next requests after each batch; None: nothing does.
    """

    __slots__ = (
        "_busy_poll",
        "_executor",
        "_held",
        "_listeners",
        "_log",
        "_loop",
        "_transactions",
        "_writing",
    )

    def __init__(
        self,
        transactions: TransactionManager,
        log: WriteAheadLog | None = None,
        executor: Executor | None = None,
        busy_poll: BusyPoll | None = None,
    ) -> None:
        self._transactions = transactions
        self._busy_poll = busy_poll
        self._log = log
        self._executor = executor
        self._held: list[tuple[OutgoingConnection, Output]] = []
        self._listeners: list[asyncio.Future[None]] = []
        self._writing: _Writing | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        transactions.write_soon = self._schedule

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            # Every socket that is readable is served before this runs, so they share one write.
            if self._loop is None:
                self._loop = asyncio.get_running_loop()  # a system call, in Python 3.11
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write the log, then send; or, where the log is waited for, begin to."""
        self._is_scheduled = False
        connections = self._take_connections()
        transactions = self._transactions
        if transactions.is_write_due:
            transactions.is_write_due = False
            transactions.has_logged = False
            assert self._log is not None
            if self._log.mode is _FSYNC:
                for connection in connections:
                    if connection.has_logged_output:
                        self._held.append((connection, connection.take_output()))
                    else:
                        connection.send_output()  # whoever changed nothing does not wait for the disk
                self._begin_write()
            else:
                self._write(self._log, connections)
        else:
            send_outputs(connections)
        if self._busy_poll is not None:
            self._busy_poll.worked()

    def written(self) -> asyncio.Future[None]:
        """A future that ends when all committed transactions are written, or with BoxError WAL_IO if not."""
        future = asyncio.get_running_loop().create_future()
        if self._transactions.unwritten:
            self._listeners.append(future)
        elif self._writing is not None:
            self._writing.listeners.append(future)
        else:
            future.set_result(None)
        return future

    async def drain(self) -> None:
        """Write and send everything."""
        self.flush()
        while self._writing is not None or self._transactions.unwritten:
            # Undone transactions have been answered; there is nobody here who could do more about them.
            await asyncio.gather(self.written(), return_exceptions=True)

    # -- at once --

    def _write(self, log: WriteAheadLog, connections: list[OutgoingConnection]) -> None:
        """Write what was committed, then send; where that fails, undo it and send the error."""
        transactions = self._transactions.take_unwritten()
        listeners, self._listeners = self._listeners, []
        error: BoxError | None = None
        try:
            log.write()
        except BoxError as failure:
            error = failure
            _refuse(connections, error)
            self._transactions.undo(transactions)
        else:
            send_outputs(connections)
        _settle(listeners, error)

    # -- beside the loop --

    def _begin_write(self) -> None:
        """Begin to write what was committed, unless a write is going on, behind which its turn comes."""
        if self._writing is not None:
            return
        assert self._log is not None
        assert self._executor is not None
        transactions = self._transactions.take_unwritten()
        held, self._held = self._held, []
        listeners, self._listeners = self._listeners, []
        self._writing = _Writing(transactions, held, listeners)
        self._transactions.is_writing = True
        job = self._log.take()
        if job is None:
            self._written(self._writing)
            return
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._executor, self._log.perform, job)
        done.add_done_callback(partial(self._performed, self._log, job))

    def _performed(self, log: WriteAheadLog, job: LogRows, done: asyncio.Future[None]) -> None:
        writing = self._writing
        assert writing is not None
        failure = done.exception()
        if failure is None:
            log.complete(job)
            self._written(writing)
            return
        error = log.fail(failure)
        # What was committed since may rest on what is undone.
        since = self._transactions.take_unwritten()
        held, self._held = [*writing.held, *self._held], []
        listeners, self._listeners = [*writing.listeners, *self._listeners], []
        self._writing = None
        connections = self._take_connections()
        self._transactions.is_writing = False
        self._transactions.is_write_due = False
        self._transactions.has_logged = False
        for connection, output in held:
            connection.send(output, error)
        _refuse(connections, error)
        self._transactions.undo([*writing.transactions, *since])
        _settle(listeners, error)
        self._go_on()

    def _written(self, writing: _Writing) -> None:
        self._writing = None
        self._transactions.is_writing = False
        _settle(writing.listeners, None)
        for connection, output in writing.held:
            connection.send(output)
        self._go_on()

    def _go_on(self) -> None:
        """Write what was committed while the last write was going on."""
        if self._transactions.is_write_due:
            # With the answers of this iteration: those of one write must not wait for the next one, too.
            self.flush()
        elif self._held or self._transactions.unwritten:
            self._begin_write()


def _refuse(connections: list[OutgoingConnection], error: BoxError) -> None:
    """Send the error to those who have changed something, and to all others their answers.

    That comes before anything is undone: what is answered because of the undoing rests on other rows.
    """
    for connection in connections:
        connection.refuse_logged(error)
        connection.send_output()


def _settle(listeners: list[asyncio.Future[None]], error: BoxError | None) -> None:
    for listener in listeners:
        if listener.done():
            continue
        if error is None:
            listener.set_result(None)
        else:
            listener.set_exception(error)
