"""The state of a box, and the transactions that run in it: what all facades in this package work on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar
from uuid import UUID, uuid4

from iproto_server.box.access.access_control import AccessControl
from iproto_server.box.access.session import Session, SessionFacade
from iproto_server.box.api.events import Events
from iproto_server.box.api.waiter import Waiter
from iproto_server.box.catalog.bootstrap import bootstrap
from iproto_server.box.catalog.catalog import Catalog
from iproto_server.box.clock import Clock, ManualClock
from iproto_server.box.stack import ensure_stack
from iproto_server.box.txn.interactive import InteractiveTransactions
from iproto_server.box.txn.journal import Journal, MemoryJournal
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.errors import BoxError, ErrorCode

Result = TypeVar("Result")


class PausableWatcher(Protocol):
    """A watcher that code of an application has set; see `LocalWatcher`."""

    def pause(self) -> None:
        """Call the function no more, unless `resume` is called."""

    def resume(self) -> None:
        """Call the function again after a `pause`, with the value there is first of all."""


class BoxCore(ABC):
    """What the facades of a box share: the database, the caller, and the running transaction.

    Parameters:
        journal: where committed rows go; None: they are only numbered.
        clock: the time; None: a clock that stands still, for tests.
        version: the version announced to clients.
        instance_uuid: this instance's identity; None: a new one.

    Attributes:
        uuid, replica_id: this instance's identity, and its number in `_cluster`.
        session: the caller.
        clock: wall-clock time and timers.
        interactive: the transactions that clients have begun in streams.
        events: keys with values, and who watches them.
        kept_snapshots: answers the clocks of the snapshots there are, the oldest first, and
        is_taking_snapshot: whether one is being written; whoever keeps files sets them.
        take_snapshot: what `snapshot` does; whoever keeps files sets it.
        run_coroutine: runs a coroutine as a session, and answers what is done when it is; whoever has an
            event loop sets it.
        generation: how often the applications' code has been loaded: 1 after the start, one more with each
            reload.
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
        self.run_coroutine: Callable[[Session, Coroutine[Any, Any, object]], Waiter] = _no_event_loop
        self.events = Events(self.transactions)
        self.generation = 1
        self.local_watchers: dict[PausableWatcher, None] = {}
        self.kept_snapshots: Callable[[], list[Mapping[int, int]]] = list
        self.is_taking_snapshot: Callable[[], bool] = lambda: False

    # -- transactions --

    def run(self, session: Session, function: Callable[..., Result], *args: object) -> Result:
        """Call a function as a session and as one transaction: what it raises undoes what it changed.

        Parameters:
            session: on whose behalf.
            function: what to call.
            args: its arguments.

        Returns: what it returns.
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

    def run_inside(self, session: Session, function: Callable[..., Result], *args: object) -> Result:
        """Call a function as a session and as a part of the running interactive transaction.

        What it raises undoes what it changed; the transaction goes on.

        Raises:
            BoxError: UNSUPPORTED, it wants to wait: what it waits for others cannot see, or bring about.
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
        """A block that is done wholly or not at all: within the running transaction, or as one of its own.

        What the block raises undoes what the block changed, and goes on to the caller.

        Raises:
            RuntimeError: the transaction in which the block began is not the one in which it ends, because
                the block has awaited something, or has committed.
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
        """Call a function so that it is done wholly or not at all."""
        with self.in_transaction():
            return function(*args)

    def is_in_txn(self) -> bool:
        """Whether a transaction is running."""
        return self.transactions.statements is not None

    @abstractmethod
    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call `callback`, outside of any transaction, when the running one has committed."""

    @abstractmethod
    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the running transaction has been undone."""

    # -- about the server --

    @property
    def cluster_uuid(self) -> UUID:
        """The replica set's identity, which `_schema` has."""
        return self.catalog.replica_set.uuid

    @cluster_uuid.setter
    def cluster_uuid(self, uuid: UUID) -> None:
        self.catalog.replica_set.uuid = uuid

    @property
    def is_read_only(self) -> bool:
        """Whether changes are refused, except those of temporary and local spaces."""
        return self.transactions.is_read_only


def _no_event_loop(session: Session, coroutine: Coroutine[Any, Any, object]) -> Waiter:
    coroutine.close()
    raise BoxError(ErrorCode.UNSUPPORTED, "A box without an event loop", "async functions")


def _no_snapshot() -> Waiter:
    raise BoxError(ErrorCode.UNSUPPORTED, "A box without files", "snapshots")
