"""The box: what procedures, triggers and the server see of the database."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID, uuid4

from iproto_server.box.access import AccessControl
from iproto_server.box.catalog import Catalog
from iproto_server.box.clock import Clock, ManualClock
from iproto_server.box.schema import Schema
from iproto_server.box.session import Session, SessionFacade
from iproto_server.box.space import Space
from iproto_server.box.transaction import Journal, MemoryJournal, TransactionManager
from iproto_server.box.waiting import Waiter
from iproto_server.errors import BoxError, ErrorCode

Result = TypeVar("Result")


class Spaces:
    """`box.space`: the spaces by name (`box.space.queue`, `box.space["queue"]`) or number
    (`box.space[512]`)."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._faces: dict[int, Space] = {}
        self._schema_version = 0

    def __getitem__(self, which: str | int) -> Space:
        catalog = self._box.catalog
        if catalog.schema_version != self._schema_version:
            # A face keeps its space, and all rows of it, alive: those of dropped spaces have to go.
            self._faces.clear()
            self._schema_version = catalog.schema_version
        core = catalog.space_by_name(which) if isinstance(which, str) else catalog.space(which)
        face = self._faces.get(core.id)
        if face is None or face.is_stale(core):
            face = self._faces[core.id] = Space(self._box, core)
        return face

    def __getattr__(self, name: str) -> Space:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._box.catalog.find(name) is not None

    def __iter__(self) -> Iterator[Space]:
        return (self[core.id] for core in self._box.catalog)


class Box:
    """The database in memory: spaces, schema, sessions, transactions.

    Everything happens in one thread. A stretch of code that does not wait is one transaction: all of what it
    changed is kept, or, when it raises, none of it.

    Parameters:
        journal: where committed rows go; None: they are only numbered.
        clock: the time; None: a clock that stands still, for tests.
        version: the version announced to clients.
        instance_uuid: this instance's identity; None: a new one.

    Attributes:
        uuid, replica_id: this instance's identity, and its number in `_cluster`.
        cluster_uuid: its replica set's identity.
        space: the spaces.
        schema: DDL.
        session: the caller.
        clock: wall-clock time and timers.
        take_snapshot: what `snapshot` does; whoever keeps files sets it.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        clock: Clock | None = None,
        version: str = "0.0.0",
        instance_uuid: UUID | None = None,
    ) -> None:
        self.transactions = TransactionManager(MemoryJournal() if journal is None else journal)
        self.clock: Clock = ManualClock() if clock is None else clock
        self.version = version
        self.uuid = uuid4() if instance_uuid is None else instance_uuid
        self.cluster_uuid = uuid4()
        self.replica_id = 1
        self.access = AccessControl()
        self.catalog = Catalog(self.transactions, self.access)
        self.session = SessionFacade(self.access)
        self.catalog.current_user = lambda: self.session.current.credentials
        self.space = Spaces(self)
        self.schema = Schema(self)
        self.listen: list[str] = []
        self.take_snapshot: Callable[[], Waiter] = _no_snapshot
        self._started = time.monotonic()

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

    def begin(self) -> None:
        """Start a transaction. Inside a procedure one is running: raises BoxError ACTIVE_TRANSACTION."""
        self.transactions.begin()

    def commit(self) -> None:
        """End the transaction and keep what it changed."""
        self.transactions.commit()

    def rollback(self) -> None:
        """End the transaction and undo what it changed; inside a procedure, go on with an empty one."""
        if self.transactions.statements is not None:
            self.transactions.rollback()
            self.transactions.begin()

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

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call `callback`, outside of any transaction, when the running one has committed."""
        self.transactions.on_commit(callback)

    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the running transaction has been undone."""
        self.transactions.on_rollback(callback)

    # -- about the server --

    def snapshot(self) -> Waiter:
        """Write all rows to a snapshot, as they are when the running transaction has ended.

        A plain procedure returns the result of this, an async one awaits it.

        Returns: what has the result "ok" when the snapshot is safe on the disk. Its error is a BoxError:
            CHECKPOINT_IN_PROGRESS when another one is being written, SYSTEM when it cannot be written.

        Raises:
            BoxError: UNSUPPORTED, there are no files.
        """
        return self.take_snapshot()

    def info(self) -> dict[str, Any]:
        """What `box.info()` tells: version, uuid, pid, uptime (seconds), lsn, status and so on."""
        vclock = dict(self.transactions.journal.vclock)
        lsn = vclock.get(self.replica_id, 0)
        identity = {"id": self.replica_id, "uuid": str(self.uuid), "lsn": lsn}
        return {
            "version": self.version,
            "id": self.replica_id,
            "ro": False,
            "uuid": str(self.uuid),
            "package": "iproto-server",
            "cluster": {"uuid": str(self.cluster_uuid)},
            "listen": self.listen[0] if self.listen else None,
            "replication": {self.replica_id: identity},
            "replication_anon": {"count": 0},
            "signature": sum(vclock.values()),
            "status": "running",
            "vclock": vclock,
            "uptime": int(time.monotonic() - self._started),
            "lsn": lsn,
            "pid": os.getpid(),
            "schema_version": self.catalog.schema_version,
        }

    def __repr__(self) -> str:
        return f"<box {self.uuid}>"


def _no_snapshot() -> Waiter:
    raise BoxError(ErrorCode.UNSUPPORTED, "A box without files", "snapshots")


__all__ = ["Box", "BoxError", "Spaces"]
