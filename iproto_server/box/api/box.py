"""The box: the interface of procedures, triggers and the server to the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from uuid import UUID

from iproto_server.box.api import events
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.space_schema import SpaceSchema
from iproto_server.box.api.instance.backup import Backup
from iproto_server.box.api.instance.cfg import Configuration, boolean, wrong_value
from iproto_server.box.api.instance.info import Info
from iproto_server.box.api.instance.metrics import Metrics
from iproto_server.box.api.instance.slab import Memory, Runtime, Slab
from iproto_server.box.api.instance.stat import Statistics
from iproto_server.box.api.schema import Schema
from iproto_server.box.api.sequences import Sequences
from iproto_server.box.api.slices import SLICE, Steps, in_one_slice, in_slices
from iproto_server.box.api.space import Spaces
from iproto_server.box.api.waiter import Waiter
from iproto_server.box.api.watcher import LocalWatcher
from iproto_server.box.clock import Clock
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.box.txn.journal import Journal
from iproto_server.box.txn.statement import Savepoint
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import ensure_stack

Result = TypeVar("Result")


class Box(BoxCore):
    """The database in memory: spaces, schema, sessions, transactions.

    Everything runs in one thread. Code that does not wait is one transaction: all of its changes are kept or,
    if it raises, none of them.

    Parameters:
        journal: receives committed rows; None: rows are only numbered.
        clock: time and timers; None: a `ManualClock`, for tests.
        version: the version announced to clients.
        instance_uuid: this instance's identity; None: a new one.

    Attributes:
        space: the spaces.
        sequence: the sequences.
        schema: DDL.
        backup: keeps files while they are copied.
        info, stat, slab, runtime: state and statistics of the instance.
        cfg: the options; the server replaces it by one that has all of its options.
        memory: the memory in use.
        metrics: counters, gauges and histograms of applications.
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
        self.backup = Backup(self)
        self.stat = Statistics()
        self.memory = Memory(self.catalog)
        self.info = Info(self, self.memory)
        self.metrics = Metrics()
        self.slab = Slab(self.memory)
        self.runtime = Runtime(self.memory)
        self.cfg = Configuration(lambda: {"read_only": self.is_read_only}, self._configure)

    # -- transactions --

    def begin(self) -> None:
        """Start a transaction. Raises BoxError ACTIVE_TRANSACTION if one runs, as inside a procedure."""
        self.transactions.begin()

    def commit(self) -> None:
        """End the transaction and keep its changes.

        Raises:
            BoxError: COMMIT_IN_SUB_STMT (122) in a trigger of a space, during a change.
        """
        if self.transactions.nesting:
            raise BoxError(ErrorCode.COMMIT_IN_SUB_STMT)
        self.transactions.commit()

    def rollback(self) -> None:
        """End the transaction and undo its changes. A procedure continues in an empty transaction.

        Raises:
            BoxError: ROLLBACK_IN_SUB_STMT (123) in a trigger of a space, during a change.
        """
        if self.transactions.nesting:
            raise BoxError(ErrorCode.ROLLBACK_IN_SUB_STMT)
        ensure_stack()
        if self.transactions.statements is not None:
            self.transactions.rollback()
            self.transactions.begin()

    def savepoint(self) -> Savepoint:
        """Set a savepoint in the running transaction, for `rollback_to_savepoint`.

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
        """Undo the running transaction's changes since the savepoint, and forget later savepoints.

        Raises:
            BoxError: NO_TRANSACTION (114); NO_SUCH_SAVEPOINT (61) if it was forgotten, belongs to another
                transaction, or was set outside of the running trigger of a space or inside of one that has
                returned.
        """
        if self.transactions.statements is None:
            raise BoxError(ErrorCode.NO_TRANSACTION)
        ensure_stack()
        # Searched from the end: later savepoints are forgotten, so each is passed once.
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

    def beyond_memory_limit(self) -> AbstractContextManager[None]:
        """A `with` block whose changes succeed even if they exceed `memtx_memory`; it must not await.

        It is for what has to be stored so that memory can be given back: a dead letter, in the place of the
        task that it was.
        """
        return budget.exempt()

    # -- events --

    def broadcast(self, key: str, value: object = None) -> None:
        """Set the value of an event key and notify its watchers, clients included.

        They are notified when the running transaction has ended and its changes are in the log. As in
        Tarantool, the value stays if the transaction is undone.

        Parameters:
            key: its name.
            value: any value that can be packed; None removes the value.

        Raises:
            BoxError: the key is not a string or begins with "box.", or the value cannot be packed.
        """
        self.events.broadcast(key, value)

    def watch(self, key: str, callback: Callable[[str, object], object]) -> LocalWatcher:
        """Call a function with the key and its value (or None) soon, and whenever the value changes.

        Parameters:
            key: its name.
            callback: a plain or an async function; `LocalWatcher` says when and as which user it runs.

        Returns: the watcher; its `unregister()` ends the calls.

        Raises:
            BoxError: the key is not a string, or the callback is not callable.
        """
        return LocalWatcher(self, key, callback)

    def watch_once(self, key: str) -> Any:
        """The value of a key, or None. Raises BoxError if the key is not a string."""
        if not isinstance(key, str):
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Usage: box.watch_once(key)")
        return events.unpacked(self.events.value(key))

    def _announce_schema(self, version: int) -> None:
        self.events.announce(events.SCHEMA, {"version": version})

    # -- reloading --

    def keep(self, name: str, factory: Callable[[], Result]) -> Result:
        """An object that survives reloads of application code, until the server stops.

        An object of a reloaded class stays an instance of the old class and keeps old code in memory, so keep
        dicts, lists and objects of `iproto_server`, such as a `WaitQueue`.

        Parameters:
            name: its name, unique among all applications.
            factory: makes it at the first call. If the running transaction is undone, the next call makes it
                again.

        Returns: the object.
        """
        if name not in self._kept:
            self._kept[name] = factory()
            self.on_rollback(lambda: self._kept.pop(name, None))
        kept: Result = self._kept[name]
        return kept

    # -- about the server --

    def set_read_only(self, is_read_only: bool) -> None:
        """Refuse all changes from now on, or allow them again."""
        if self.is_read_only != is_read_only:
            self.transactions.is_read_only = is_read_only
            self.announce()
            if not is_read_only:
                for function in self.when_writable:
                    function()

    def _configure(self, options: Mapping[str, Any]) -> None:
        """Change the options of a box without a server."""
        for name in options:
            if name != "read_only":
                raise wrong_value(name, "unexpected option")
        if "read_only" in options:
            self.set_read_only(boolean("read_only", options["read_only"]))

    def announce(self) -> None:
        """Broadcast the system events: identity, status and election.

        Source: Tarantool reference, "System events".
        """
        identity = {"id": self.replica_id, "instance_uuid": self.uuid, "replicaset_uuid": self.cluster_uuid}
        self.events.announce(events.ID, identity)
        is_ro = self.is_read_only
        status = {"is_ro": is_ro, "is_ro_cfg": is_ro, "status": "running"}
        self.events.announce(events.STATUS, status)
        # There are no elections: the instance is a follower without a leader in the first term.
        election = {"term": 1, "role": "follower", "is_ro": is_ro, "leader": 0}
        self.events.announce(events.ELECTION, election)
        self._announce_schema(self.catalog.schema_version)

    def snapshot(self) -> Waiter:
        """Write all rows, as of the end of the running transaction, to a snapshot.

        A plain procedure returns the result of this call, an async one awaits it.

        Returns: a waiter; its result is "ok" once the snapshot is safe on disk. Its error is a BoxError:
            CHECKPOINT_IN_PROGRESS if another one is being written, SYSTEM if it cannot be written.

        Raises:
            BoxError: UNSUPPORTED without files, or in an interactive transaction, where calls cannot wait.
        """
        if self.transactions.interactive is not None:
            raise BoxError(ErrorCode.UNSUPPORTED, "An interactive transaction", "calls that wait")
        return self.take_snapshot()

    def evaluate_lua(self, text: str, *arguments: object) -> list[Any]:
        """Run Lua code, which may not wait, within the running transaction and as the current session.

        Parameters:
            text: a chunk of Lua, with its arguments in `...`; its compiled form is kept.
            arguments: values that rows can have.

        Returns:
            The values that it returns.

        Raises:
            BoxError: there is no Lua, the code fails or waits, or it returns what rows cannot have.
        """
        if self.run_lua is None:
            raise BoxError.procedure("this server runs no Lua code")
        return self.run_lua(text, arguments)

    def in_slices(
        self, steps: Steps[Result], *, size: int = SLICE, for_answer_only: bool = False
    ) -> Result | Waiter:
        """Carry out a long call a slice at a time; other requests run in between. See `slices.in_slices`.

        Parameters:
            steps: a generator that yields after each step, such as the change of a row, and returns the
                result. Each slice is a transaction of its own.
            size: the maximum number of steps in a slice: as many as take a millisecond or two.
            for_answer_only: whether the work ends with the caller's session, because it changes nothing.

        Returns: the result, or a waiter, which the procedure must return.

        Raises:
            BoxError: UNSUPPORTED in an interactive transaction if there are more than 1,000 steps.
        """
        return in_slices(self, steps, size=size, for_answer_only=for_answer_only)

    def in_one_slice(self, steps: Steps[Result]) -> Result:
        """Carry out the steps of `in_slices` at once, as a part of the running transaction."""
        return in_one_slice(steps)

    def __repr__(self) -> str:
        return f"<box {self.uuid}>"
