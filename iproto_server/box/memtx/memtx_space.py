"""Every change that can be made to the rows of a space in memory.

This is the inner side of a space, where rows and keys are msgpack bytes: requests from the wire come straight
here. `space.py` puts the face on it that procedures see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from iproto_server.box.index.index import Index, Move, change_entries
from iproto_server.box.index.index_def import INDEX_ID_MAX
from iproto_server.box.memtx.indexed_space import IndexedSpace
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.box.stack import more_stack
from iproto_server.box.tuple.tuple import NIL, Tuple
from iproto_server.box.txn.statement import new_statement
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.box.txn.trigger import Trigger, TriggerList
from iproto_server.box.update import Operations, apply_update, apply_upsert
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin_methods
from iproto_server.native._native import ensure_stack

SystemHook = Callable[[list[Any] | None, list[Any] | None, str], Callable[[], None] | None]
"""The effect of a change of a system space's row: (old fields, new fields, operation) -> undo."""


@twin_methods("insert", "replace", "update", "upsert", "delete", "_change")
class MemtxSpace(IndexedSpace):
    """One space: its definition, its rows, its triggers.

    Parameters:
        space_id, name, owner: as for the definition.
        transactions: the transaction manager every change is reported to.

    Attributes:
        on_replace, before_replace: the triggers.
        system_hook: what a change of a row brings about, in a system space with consequences.
        bsize: bytes of all rows together.
    """

    __slots__ = ("before_replace", "bsize", "on_replace", "system_hook")

    def __init__(self, space_id: int, name: str, owner: int, transactions: TransactionManager) -> None:
        super().__init__(space_id, name, owner, transactions)
        self.bsize = 0
        self.on_replace = TriggerList()
        self.before_replace = TriggerList()
        self.system_hook: SystemHook | None = None

    def row(self, values: list[Any]) -> Tuple:
        """A row of these values, to be stored."""
        return Tuple(codec.pack(values), self.format)

    def insert(self, row: Tuple) -> Tuple:
        """Store a new row and answer it.

        Raises:
            BoxError: the row does not fit the format, or a unique index has its key (TUPLE_FOUND).
        """
        return self._store(row, "INSERT")

    def replace(self, row: Tuple) -> Tuple:
        """Store a row in the place of the one with the same primary key, if there is one, and answer it."""
        return self._store(row, "REPLACE")

    def delete(self, index_id: int, key: list[Any]) -> Tuple | None:
        """Remove the row with a whole key of a unique index and answer it, or None where there is none."""
        encoded, old = self._stored(index_id, key)
        if old is None:
            return None
        if self.before_replace:
            return self._replace_through_triggers(encoded, old, None, "DELETE") or old
        self._change(encoded, old, None, "DELETE", self.secondaries)
        return old

    def update(self, index_id: int, key: list[Any], operations: Operations) -> Tuple | None:
        """Change the row with a whole key of a unique index; answer the new row, None where there is none.

        Raises:
            BoxError: an operation does not fit, the result does not fit the format, or the primary key would
                change.
        """
        encoded, old = self._stored(index_id, key)
        if old is None:
            return None
        new = Tuple(apply_update(operations, old.raw, self.doubles), self.format)
        touched = self.secondaries
        assignment = operations.assignment
        if assignment is not None and assignment[0] < len(old):
            # The commonest update of all: what is known of the old row need not be found out again.
            number, value = assignment
            new.assume(old, number, codec.unpack(value))
            touched = self.secondaries_by_field.get(number, ())
        self.format.check(new.fields)
        if assignment is None or assignment[0] in self.primary_fields:
            self._check_same_key(encoded, new)
        if self.before_replace:
            return self._replace_through_triggers(encoded, old, new, "UPDATE")
        self._change(encoded, old, new, "UPDATE", touched)
        return new

    def upsert(self, row: Tuple, operations: Operations) -> None:
        """Store the row, or apply the operations to the row that has its primary key.

        Raises:
            BoxError: as `insert` and `update`, except what Tarantool's upsert swallows (missing fields, a
                changed primary key).
        """
        if self._transactions.is_read_only:
            self._check_writable()
        if self._transactions.nesting:
            self._transactions.check_nesting()
        self.format.check(row.fields)
        primary = self.primary_index()
        encoded = primary.key_of(row.fields, b"")
        old = self._row(primary.get(encoded))
        if old is not None:
            row = Tuple(apply_upsert(operations, old.raw, self.doubles), self.format)
            self.format.check(row.fields)
            if primary.key_of(row.fields, b"") != encoded:
                self._note_read(encoded)
                return
        else:
            # They are not applied, but what is wrong with them is told.
            operations.check()
        if self.before_replace:
            self._replace_through_triggers(encoded, old, row, "UPSERT")
        else:
            self._change(encoded, old, row, "UPSERT", self.secondaries)

    def _check_writable(self) -> None:
        """Raise BoxError READONLY, unless the rows are this instance's own business."""
        if not self.is_temporary and not self.is_local:
            raise BoxError(ErrorCode.READONLY)

    def truncate(self) -> Callable[[], None]:
        """Throw every row away without looking at one, and answer what brings them back."""
        before = (self.indexes, self.bsize)
        copies: dict[int, Index] = {}
        for number, index in self.indexes.items():
            copies[number] = index.empty_copy(copies.get(0))
        self.set_indexes(copies)
        self.bsize = 0

        def undo() -> None:
            self.set_indexes(before[0])
            self.bsize = before[1]

        return undo

    def _stored(self, index_id: int, key: list[Any]) -> tuple[bytes, Tuple | None]:
        """The row with a whole key of a unique index that is to be changed, after its encoded primary key."""
        if self._transactions.is_read_only:
            self._check_writable()
        if self._transactions.nesting:
            self._transactions.check_nesting()
        # Where there is no primary index there is no other one either: the one that was asked for is named.
        encoded = self._locate(index_id, key)
        return (b"", None) if encoded is None else (encoded, self._row(self.primary_index().get(encoded)))

    def _check_same_key(self, encoded: bytes, new: Tuple) -> None:
        primary = self.primary_index()
        key = primary.key_of(new.fields, b"")
        if key != encoded:
            if primary.get(key) is not None:
                raise self._duplicate(primary)
            raise BoxError(ErrorCode.CANT_UPDATE_PRIMARY_KEY, primary.name, self.name)

    def _store(self, row: Tuple, operation: str) -> Tuple:
        if self._transactions.is_read_only:
            self._check_writable()
        if self._transactions.nesting:
            self._transactions.check_nesting()
        if self.attached is not None:
            row = self.attached.fill(row)
        fields = row.fields
        self.format.check(fields)
        primary = self.primary_index()
        encoded = primary.key_of(fields, b"")
        raw = primary.get(encoded)
        old = None if raw is None else Tuple(raw, self.format)
        if self.before_replace:
            return self._replace_through_triggers(encoded, old, row, operation) or row
        if old is not None and operation == "INSERT":
            self._note_read(encoded)
            raise self._duplicate(primary)
        self._change(encoded, old, row, operation, self.secondaries)
        return row

    def _note_read(self, key: bytes) -> None:
        """Something rests on what is there by a primary key, though nothing comes to be changed by it."""
        if self._transactions.interactive is not None:
            self._transactions.interactive.read_key(self, 0, key)

    def _duplicate(self, index: Index) -> BoxError:
        return BoxError(ErrorCode.TUPLE_FOUND, index.name, self.name)

    def _replace_through_triggers(
        self, encoded: bytes, old: Tuple | None, new: Tuple | None, operation: str
    ) -> Tuple | None:
        """Let the `before_replace` triggers decide what is stored, store it, and answer it.

        Where that fails, what the triggers have changed themselves is undone, too.
        """
        transactions = self._transactions
        if transactions.statements is None:
            transactions.begin()
            try:
                chosen = self._replace_through_triggers(encoded, old, new, operation)
            except BaseException:
                transactions.rollback()
                raise
            transactions.commit()
            return chosen
        ensure_stack()
        savepoint = transactions.savepoint()
        try:
            chosen = self._choose(old, new)
            if chosen is not old:
                self._store_chosen(encoded, chosen, new, operation)
        except BaseException:
            transactions.rollback_to_savepoint(savepoint)
            raise
        return chosen

    def _choose(self, old: Tuple | None, new: Tuple | None) -> Tuple | None:
        """The row that the `before_replace` triggers let pass."""
        transactions = self._transactions
        chosen = new
        transactions.nesting += 1
        try:
            for trigger in self.before_replace.functions:
                result = trigger(old, chosen)
                if result is None or result is chosen:
                    continue
                if result is NIL:
                    chosen = None
                elif isinstance(result, Tuple):
                    chosen = result
                elif isinstance(result, list | tuple):
                    chosen = Tuple(codec.pack(list(result)), self.format)
                else:
                    raise BoxError(ErrorCode.BEFORE_REPLACE_RET, type(result).__name__)
        finally:
            transactions.nesting -= 1
        return chosen

    def _store_chosen(self, encoded: bytes, chosen: Tuple | None, new: Tuple | None, operation: str) -> None:
        """Store what `before_replace` triggers have chosen."""
        primary = self.primary_index()
        if chosen is not None:
            self.format.check(chosen.fields)
            if primary.key_of(chosen.fields, b"") != encoded:
                raise BoxError(ErrorCode.CANT_UPDATE_PRIMARY_KEY, primary.name, self.name)
        # A trigger may have changed the row itself.
        old = self._row(primary.get(encoded))
        if chosen is not None and old is not None and operation == "INSERT":
            if chosen is new:
                raise self._duplicate(primary)
            operation = "REPLACE"  # a row of the trigger's own choice takes the old one's place
        if chosen is not None or old is not None:
            self._change(encoded, old, chosen, operation, self.secondaries)

    def _change(
        self,
        key: bytes,
        old: Tuple | None,
        new: Tuple | None,
        operation: str,
        secondaries: tuple[Index, ...],
    ) -> None:
        """Change one row, report it, and run the triggers: all of it or nothing.

        Parameters:
            key: its encoded primary key.
            old: the row that is there, None for none.
            new: the row that is to be there, None for none.
            operation: the request's name.
            secondaries: the secondary indexes whose keys may change.
        """
        transactions = self._transactions
        statements = transactions.statements
        if new is not None and budget.limit is not None:
            indexes = (*secondaries, *self.multikeys) if old is not None else self.indexes.values()
            budget.check(self, 0 if old is None else len(old.raw), len(new.raw), indexes)
        if transactions.interactive is not None:
            transactions.interactive.change(self, key, new, operation)
        if statements is None:
            transactions.begin()
            try:
                self._change(key, old, new, operation, secondaries)
            except BaseException:
                transactions.rollback()
                raise
            transactions.commit()
            return
        ensure_stack()
        primary = self.primary
        assert primary is not None
        old_raw = None if old is None else old.raw
        new_raw = None if new is None else new.raw
        refusing = change_entries(
            primary,
            secondaries,
            key,
            None if old is None else old.fields,
            None if new is None else new.fields,
            new_raw,
            partial(self._multikey_moves, key, old, new) if self.multikeys else None,
        )
        if refusing is not None:
            # Of several indexes that refuse the row the first one is named.
            raise self._multikey_duplicate(key, old, new, refusing.id) or self._duplicate(refusing)
        if new_raw is not None:
            self.bsize += len(new_raw)
        if old_raw is not None:
            self.bsize -= len(old_raw)
        undo = None if self.system_hook is None else self._take_effect(key, old, new, operation)
        statements.append(new_statement((self, key, old_raw, new_raw, primary, undo)))
        if self.on_replace.functions:
            self._run_triggers(old, new)

    def _multikey_duplicate(
        self, key: bytes, old: Tuple | None, new: Tuple | None, below: int
    ) -> BoxError | None:
        """Why a multikey index in front of index number `below` refuses a change, if one does."""
        try:
            for _ in self._multikey_moves(key, old, new, below):
                pass
        except BoxError as error:
            return error
        return None

    def _multikey_moves(
        self, key: bytes, old: Tuple | None, new: Tuple | None, below: int = INDEX_ID_MAX + 1
    ) -> Iterator[Move]:
        """The changes of the multikey indexes for a change of a row: each entry that goes or comes.

        Raises:
            BoxError: TUPLE_FOUND (3).
        """
        for index in self.multikeys:
            if index.id >= below:
                return
            old_keys = [] if old is None else index.all_keys_of(old.fields, key)
            new_keys = [] if new is None else index.all_keys_of(new.fields, key)
            kept = set(old_keys).intersection(new_keys)
            for each in new_keys:
                if each in kept:
                    continue
                if index.unique and index.get(each) is not None:
                    raise self._duplicate(index)
                yield index, None, each
            for each in old_keys:
                if each not in kept:
                    yield index, each, None

    def _take_effect(
        self, key: bytes, old: Tuple | None, new: Tuple | None, operation: str
    ) -> Callable[[], None] | None:
        """Let the row of a system space take effect; refuse the row where the effect is refused.

        Returns: what takes the effect back.
        """
        assert self.system_hook is not None
        with more_stack:
            try:
                return self.system_hook(
                    None if old is None else old.fields, None if new is None else new.fields, operation
                )
            except BaseException:
                self.put_back(key, None if old is None else old.raw, None if new is None else new.raw)
                raise

    def _run_triggers(self, old: Tuple | None, new: Tuple | None) -> None:
        """Run the `on_replace` triggers. When one raises, undo the statement and tell those before it."""
        functions = self.on_replace.functions
        transactions = self._transactions
        savepoint = transactions.savepoint()
        number = 0
        transactions.nesting += 1
        try:
            for number, trigger in enumerate(functions):  # noqa: B007  # the number is used when one raises
                trigger(old, new)
        except BaseException:
            transactions.take_back(savepoint, functions[:number])
            raise
        finally:
            transactions.nesting -= 1

    def undone(self, old: bytes | None, new: bytes | None, ran: tuple[Trigger, ...] | None = None) -> None:
        """A change that is rolled back: tell the triggers that were told of the change.

        Parameters:
            old, new: the rows of the change.
            ran: those triggers; None: all there are.
        """
        told = self.on_replace.functions if ran is None else ran
        if told:
            self.on_replace.undo(told, self._row(old), self._row(new))

    def put_back(self, key: bytes, old: bytes | None, new: bytes | None) -> None:
        """Undo a change of one row: `new` is there now, `old` was there before."""
        primary = self.primary
        assert primary is not None
        has_more = len(self.indexes) > 1
        new_fields = codec.unpack(new) if has_more and new is not None else None
        old_fields = codec.unpack(old) if has_more and old is not None else None
        self.bsize += (0 if old is None else len(old)) - (0 if new is None else len(new))
        secondaries = self.secondaries
        if not self.multikeys and not change_entries(
            primary, secondaries, key, new_fields, old_fields, old, None
        ):
            return
        moves: list[Move] = []
        for index in (*secondaries, *self.multikeys):
            was = [] if old_fields is None else index.all_keys_of(old_fields, key)
            now = [] if new_fields is None else index.all_keys_of(new_fields, key)
            if was != now or (old is not None and not all(index.keeps(each, old) for each in was)):
                moves += ((index, each, None) for each in now)
                moves += ((index, None, each) for each in was)
        for index, gone, _ in moves:
            if gone is not None:
                index.remove(gone)
        if old is None:
            primary.remove(key)
        elif new is None:
            primary.insert(key, old)
        else:
            primary.set(key, old)
        for index, _, back in moves:
            if back is not None:
                index.insert(back, key)
