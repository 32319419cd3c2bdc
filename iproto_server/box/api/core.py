"""The state of a box and its transactions, the basis of all facades in this package."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID, uuid4

from iproto_server.box.access.access_control import AccessControl
from iproto_server.box.access.session import Session, SessionFacade
from iproto_server.box.api.events import Events
from iproto_server.box.api.waiter import Waiter
from iproto_server.box.catalog.bootstrap import bootstrap
from iproto_server.box.catalog.catalog import Catalog
from iproto_server.box.clock import Clock, ManualClock
from iproto_server.box.txn.interactive import InteractiveTransactions
from iproto_server.box.txn.journal import Journal, MemoryJournal
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import ensure_stack

Result = TypeVar("Result")


class PausableWatcher(Protocol):
    """A watcher set by application code; see `LocalWatcher`."""

    def pause(self) -> None:
        """Stop calling the function until `resume`."""

    def resume(self) -> None:
        """Call the function again after a `pause`, first with the present value."""


class BoxCore:
    """The common state of the facades: the database, the current session, and the running transaction.

    Parameters:
        journal: receives committed rows; None: rows are only numbered.
        clock: time and timers; None: a `ManualClock`, for tests.
        version: the version announced to clients.
        instance_uuid: this instance's identity; None: a new one.

    Attributes:
        on_commit: calls a function, outside of any transaction, once the running transaction has committed.
        on_rollback: calls a function if the running transaction is undone.
        uuid, replica_id: this instance's identity, and its number in `_cluster`.
        session: the current session.
        clock: wall-clock time and timers.
        interactive: the transactions that clients have begun in streams.
        events: event keys with their values and watchers.
        kept_snapshots: returns the vclocks of the kept snapshots, the oldest first; set by the server.
        is_taking_snapshot: tells whether a snapshot is being written; set by the server.
        take_snapshot: implements `snapshot`; set by the server.
        start_backup, stop_backup: implement `backup`; set by the server.
        pinned_snapshot: returns the signature of the snapshot that a backup keeps; set by the server.
        run_coroutine: runs a coroutine as a session and returns a waiter for its end; set by the server.
        when_written: calls a function when all that was committed before is in the log, or was undone because
            it cannot be written; set by the server.
        run_lua: implements `evaluate_lua`; None: there is no Lua; set by the server.
        generation: 1 after the start, plus one for each reload of application code.
        when_writable: called when changes are allowed again after the box was read-only.
        local_watchers: the watchers that this generation of the code has set.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        clock: Clock | None = None,
        version: str = "0.0.0",
        instance_uuid: UUID | None = None,
    ) -> None:
        self.clock: Clock = ManualClock() if clock is None else clock
        self.transactions = TransactionManager(MemoryJournal() if journal is None else journal)
        self.on_commit: Final = self.transactions.on_commit
        self.on_rollback: Final = self.transactions.on_rollback
        self.version = version
        self.uuid = uuid4() if instance_uuid is None else instance_uuid
        self.replica_id = 1
        self.interactive = InteractiveTransactions(self.transactions, self.clock)
        self.access = AccessControl()
        self.catalog = Catalog(self.transactions, self.access)
        bootstrap(self.catalog)
        self.session = SessionFacade(self.access)
        self.catalog.current_user = lambda: self.session.current.credentials
        self.listen: list[str] = []
        self.take_snapshot: Callable[[], Waiter] = _no_snapshot
        self.start_backup: Callable[[int], list[str]] = _no_backup
        self.stop_backup: Callable[[], None] = _nothing_to_stop
        self.pinned_snapshot: Callable[[], int | None] = lambda: None
        self.run_coroutine: Callable[[Session, Coroutine[Any, Any, object]], Waiter] = _no_event_loop
        self.when_written: Callable[[Callable[[], object]], object] = lambda callback: callback()
        self.events = Events(self.transactions)
        self.run_lua: Callable[[str, tuple[object, ...]], list[Any]] | None = None
        self.generation = 1
        self.when_writable: list[Callable[[], object]] = []
        self.local_watchers: dict[PausableWatcher, None] = {}
        self.kept_snapshots: Callable[[], list[Mapping[int, int]]] = list
        self.is_stopping = False
        self.is_taking_snapshot: Callable[[], bool] = lambda: False

    # -- transactions --

    def run(self, session: Session, function: Callable[..., Result], *args: object) -> Result:
        """Call a function as a session and as one transaction, which is undone if the function raises.

        Parameters:
            session: the session to act for.
            function: the function.
            args: its arguments.

        Returns: its result.
        """
        transactions = self.transactions
        facade = self.session
        transactions.begin()
        before = facade.current
        facade.current = session
        try:
            result = function(*args)
        except BaseException:
            transactions.rollback()
            raise
        else:
            transactions.commit()
        finally:
            facade.current = before
        return result

    def run_as(self, session: Session, function: Callable[..., Result], *args: object) -> Result:
        """Call a function as a session; each of its changes is a transaction of its own, if it begins none.

        Parameters:
            session: the session to act for.
            function: the function.
            args: its arguments.

        Returns: its result.
        """
        facade = self.session
        before, facade.current = facade.current, session
        try:
            return function(*args)
        finally:
            facade.current = before

    def run_inside(self, session: Session, function: Callable[..., Result], *args: object) -> Result:
        """Call a function as a session and as a part of the running interactive transaction.

        If it raises, its changes are undone, and the transaction continues.

        Raises:
            BoxError: UNSUPPORTED if it waits, because others could not see this transaction's changes.
        """
        ensure_stack()
        transactions = self.transactions
        facade = self.session
        savepoint = transactions.savepoint()
        before = facade.current
        facade.current = session
        try:
            result = function(*args)
            if isinstance(result, Waiter) and not result.is_done:
                raise BoxError(ErrorCode.UNSUPPORTED, "An interactive transaction", "calls that wait")
        except BaseException:
            if transactions.statements is savepoint.statements:
                transactions.rollback_to_savepoint(savepoint)
            raise
        finally:
            facade.current = before
        return result

    @contextmanager
    def in_transaction(self) -> Iterator[None]:
        """A block that takes effect as a whole: in the running transaction, or in one of its own.

        If the block raises, its changes are undone and the error propagates.

        Raises:
            RuntimeError: the block ends in another transaction than it began in, because it has awaited
                something or has committed.
        """
        transactions = self.transactions
        if transactions.statements is not None:
            ensure_stack()
            savepoint = transactions.savepoint()
            try:
                yield
            except BaseException:
                if transactions.statements is savepoint.statements:
                    transactions.rollback_to_savepoint(savepoint)
                raise
            if transactions.statements is not savepoint.statements:
                raise RuntimeError("a block in a transaction cannot outlive it: no await or commit inside")
            return
        transactions.begin()
        try:
            yield
        except BaseException:
            transactions.rollback()
            raise
        transactions.commit()

    def atomic(self, function: Callable[..., Result], *args: object) -> Result:
        """Call a function; if it raises, undo its changes."""
        with self.in_transaction():
            return function(*args)

    def is_in_txn(self) -> bool:
        """Whether a transaction is running."""
        return self.transactions.statements is not None

    # -- about the server --

    @property
    def cluster_uuid(self) -> UUID:
        """The replica set's identity, from `_schema`."""
        return self.catalog.replica_set.uuid

    @cluster_uuid.setter
    def cluster_uuid(self, uuid: UUID) -> None:
        self.catalog.replica_set.uuid = uuid

    @property
    def is_read_only(self) -> bool:
        """Whether changes are refused, except in temporary and local spaces."""
        return self.transactions.is_read_only


def _no_event_loop(session: Session, coroutine: Coroutine[Any, Any, object]) -> Waiter:
    coroutine.close()
    raise BoxError(ErrorCode.UNSUPPORTED, "A box without an event loop", "async functions")


def _no_snapshot() -> Waiter:
    raise BoxError(ErrorCode.UNSUPPORTED, "A box without files", "snapshots")


def _no_backup(back: int) -> list[str]:
    raise BoxError(ErrorCode.UNSUPPORTED, "A box without files", "backups")


def _nothing_to_stop() -> None:
    """Without files there is no backup."""
