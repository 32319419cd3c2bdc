"""The box: what procedures, triggers and the server see of the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from iproto_server.box.api import events
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.space_schema import SpaceSchema
from iproto_server.box.api.instance.cfg import Configuration, boolean, wrong_value
from iproto_server.box.api.instance.info import Info
from iproto_server.box.api.instance.slab import Memory, Runtime, Slab
from iproto_server.box.api.instance.stat import Statistics
from iproto_server.box.api.schema import Schema
from iproto_server.box.api.sequences import Sequences
from iproto_server.box.api.space import Spaces
from iproto_server.box.api.waiter import Waiter
from iproto_server.box.api.watcher import LocalWatcher
from iproto_server.box.clock import Clock
from iproto_server.box.stack import ensure_stack
from iproto_server.box.txn.journal import Journal
from iproto_server.box.txn.statement import Savepoint
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin_methods

Result = TypeVar("Result")


@twin_methods("on_commit", "on_rollback")
class Box(BoxCore):
    """The database in memory: spaces, schema, sessions, transactions.

    Everything happens in one thread. A stretch of code that does not wait is one transaction: all of what it
    changed is kept, or, when it raises, none of it.

    Parameters:
        journal: where committed rows go; None: they are only numbered.
        clock: the time; None: a clock that stands still, for tests.
        version: the version announced to clients.
        instance_uuid: this instance's identity; None: a new one.

    Attributes:
        space: the spaces.
        sequence: the sequences.
        schema: DDL.
        info, stat, slab, runtime: what is going on.
        cfg: the options; whoever has more than the box itself sets it.
        memory: what is known of the memory in use.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        clock: Clock | None = None,
        version: str = "0.0.0",
        instance_uuid: UUID | None = None,
    ) -> None:
        super().__init__(journal, clock, version, instance_uuid)
        self.space = Spaces(self, SpaceSchema(self))
        self.sequence = Sequences(self)
        self.schema = Schema(self, self.space)
        self._savepoints: list[Savepoint] = []
        self._kept: dict[str, Any] = {}
        self.catalog.on_schema_change = self._announce_schema
        self.stat = Statistics()
        self.memory = Memory(self.catalog)
        self.info = Info(self, self.memory)
        self.slab = Slab(self.memory)
        self.runtime = Runtime(self.memory)
        self.cfg = Configuration(lambda: {"read_only": self.is_read_only}, self._configure)

    # -- transactions --

    def begin(self) -> None:
        """Start a transaction. Inside a procedure one is running: raises BoxError ACTIVE_TRANSACTION."""
        self.transactions.begin()

    def commit(self) -> None:
        """End the transaction and keep what it changed.

        Raises:
            BoxError: COMMIT_IN_SUB_STMT (122), in a trigger of a space: a change is going on.
        """
        if self.transactions.nesting:
            raise BoxError(ErrorCode.COMMIT_IN_SUB_STMT)
        self.transactions.commit()

    def rollback(self) -> None:
        """End the transaction and undo what it changed; inside a procedure, go on with an empty one.

        Raises:
            BoxError: ROLLBACK_IN_SUB_STMT (123), in a trigger of a space, as for `commit`.
        """
        if self.transactions.nesting:
            raise BoxError(ErrorCode.ROLLBACK_IN_SUB_STMT)
        ensure_stack()
        if self.transactions.statements is not None:
            self.transactions.rollback()
            self.transactions.begin()

    def savepoint(self) -> Savepoint:
        """This moment of the running transaction, for `rollback_to_savepoint`.

        Source: Tarantool reference, "box.savepoint()".

        Raises:
            BoxError: NO_TRANSACTION (114).
        """
        if self.transactions.statements is None:
            raise BoxError(ErrorCode.NO_TRANSACTION)
        savepoint = self.transactions.savepoint()
        if self._savepoints and self._savepoints[0].statements is not savepoint.statements:
            self._savepoints.clear()
        self._savepoints.append(savepoint)
        return savepoint

    def rollback_to_savepoint(self, savepoint: Savepoint) -> None:
        """Undo what the running transaction has changed since, and forget the savepoints since.

        Raises:
            BoxError: NO_TRANSACTION (114); NO_SUCH_SAVEPOINT (61), it was forgotten, or is another
                transaction's, or was made outside of the trigger of a space that is running, or inside of one
                that has run.
        """
        if self.transactions.statements is None:
            raise BoxError(ErrorCode.NO_TRANSACTION)
        ensure_stack()
        # From the end: those that are passed are forgotten, so they are passed once.
        behind = next(
            (count for count, each in enumerate(reversed(self._savepoints)) if each is savepoint), None
        )
        if (
            behind is None
            or savepoint.statements is not self.transactions.statements
            or savepoint.nesting != self.transactions.nesting
        ):
            raise BoxError(ErrorCode.NO_SUCH_SAVEPOINT)
        del self._savepoints[len(self._savepoints) - behind :]
        self.transactions.rollback_to_savepoint(savepoint)

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call `callback`, outside of any transaction, when the running one has committed."""
        self.transactions.on_commit(callback)

    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the running transaction has been undone."""
        self.transactions.on_rollback(callback)

    # -- events --

    def broadcast(self, key: str, value: object = None) -> None:
        """Give a key another value, of which everybody who watches it is told, clients included.

        They are told when the running transaction has ended and what it has changed is in the log. As in
        Tarantool, the value stays when the transaction is undone.

        Parameters:
            key: its name.
            value: anything that clients could be answered; None takes the value away.

        Raises:
            BoxError: the key is no text or begins with "box.", or the value cannot be packed.
        """
        self.events.broadcast(key, value)

    def watch(self, key: str, callback: Callable[[str, object], object]) -> LocalWatcher:
        """Call a function with the key and its value (None where it has none) soon, and whenever it changes.

        Parameters:
            key: its name.
            callback: a plain or an async function; see `LocalWatcher` for when and as whom it runs.

        Returns: what has `unregister()`, which ends that.

        Raises:
            BoxError: the key is no text, or the callback no function.
        """
        return LocalWatcher(self, key, callback)

    def watch_once(self, key: str) -> Any:
        """The value of a key, None where it has none. Raises BoxError when the key is no text."""
        if not isinstance(key, str):
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Usage: box.watch_once(key)")
        return events.unpacked(self.events.value(key))

    def _announce_schema(self, version: int) -> None:
        self.events.announce(events.SCHEMA, {"version": version})

    # -- reloading --

    def keep(self, name: str, factory: Callable[[], Result]) -> Result:
        """What lives on while the code of the applications is loaded anew: the same object until the stop.

        An object of a class that is loaded anew, too, stays one of the old class, and keeps its code in
        memory: better keep dicts, lists, and what `iproto_server` has, a `WaitQueue` say.

        Parameters:
            name: what it is called, unlike anything that another application keeps.
            factory: makes it the first time. Where that is undone with the running transaction, the next time
                is the first one again.

        Returns: the object.
        """
        if name not in self._kept:
            self._kept[name] = factory()
            self.on_rollback(lambda: self._kept.pop(name, None))
        kept: Result = self._kept[name]
        return kept

    # -- about the server --

    def set_read_only(self, is_read_only: bool) -> None:
        """Refuse changes from now on, whoever makes them, or do so no more."""
        if self.is_read_only != is_read_only:
            self.transactions.is_read_only = is_read_only
            self.announce()

    def _configure(self, options: Mapping[str, Any]) -> None:
        """Change the options of a box without a server."""
        for name in options:
            if name != "read_only":
                raise wrong_value(name, "unexpected option")
        if "read_only" in options:
            self.set_read_only(boolean("read_only", options["read_only"]))

    def announce(self) -> None:
        """Tell those who watch the server's own keys who it is and what it does.

        Source: Tarantool reference, "System events".
        """
        identity = {"id": self.replica_id, "instance_uuid": self.uuid, "replicaset_uuid": self.cluster_uuid}
        self.events.announce(events.ID, identity)
        is_ro = self.is_read_only
        status = {"is_ro": is_ro, "is_ro_cfg": is_ro, "status": "running"}
        self.events.announce(events.STATUS, status)
        # There is no leader to elect: it follows nobody, in the first term there is.
        election = {"term": 1, "role": "follower", "is_ro": is_ro, "leader": 0}
        self.events.announce(events.ELECTION, election)
        self._announce_schema(self.catalog.schema_version)

    def snapshot(self) -> Waiter:
        """Write all rows to a snapshot, as they are when the running transaction has ended.

        A plain procedure returns the result of this, an async one awaits it.

        Returns: what has the result "ok" when the snapshot is safe on the disk. Its error is a BoxError:
            CHECKPOINT_IN_PROGRESS when another one is being written, SYSTEM when it cannot be written.

        Raises:
            BoxError: UNSUPPORTED, there are no files, or an interactive transaction is running, in which
                nobody can wait for it.
        """
        if self.transactions.interactive is not None:
            raise BoxError(ErrorCode.UNSUPPORTED, "An interactive transaction", "calls that wait")
        return self.take_snapshot()

    def __repr__(self) -> str:
        return f"<box {self.uuid}>"
