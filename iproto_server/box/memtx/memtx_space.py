"""A space in memory: its triggers, and what the engine leaves to Python when rows change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from iproto_server.box.index.index import Index
from iproto_server.box.memtx.indexed_space import IndexedSpace
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.box.stack import more_stack
from iproto_server.box.tuple.tuple import NIL, Tuple
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.box.txn.trigger import TriggerList
from iproto_server.box.update import Operations, apply_update, apply_upsert
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

SystemHook = Callable[[list[Any] | None, list[Any] | None, str], Callable[[], None] | None]
"""The effect of a change of a system space's row: (old fields, new fields, operation) -> undo."""


class MemtxSpace(IndexedSpace):
    """One space: its definition, its rows, its triggers.

    The engine changes rows (`insert`, `replace`, `update`, `upsert`, `delete`). It calls the methods of this
    class that begin with an underscore.

    Parameters:
        space_id, name, owner, transactions: as for the definition.

    Attributes:
        on_replace, before_replace: the triggers.
        system_hook: what a change of a row brings about, in a system space with consequences.
        bsize: bytes of all rows together.
    """

    __slots__ = ()

    def __init__(self, space_id: int, name: str, owner: int, transactions: TransactionManager) -> None:
        super().__init__(space_id, name, owner, transactions)
        self.on_replace = TriggerList()
        self.before_replace = TriggerList()

    def row(self, values: list[Any]) -> Tuple:
        """A row of these values, to be stored."""
        return Tuple(codec.pack(values), self.format)

    def truncate(self) -> Callable[[], None]:
        """Remove all rows without looking at one; return a function that brings them back."""
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

    # -- called by the engine --

    def _choose(self, old: Tuple | None, new: Tuple | None) -> Tuple | None:
        """Return the row that the `before_replace` triggers let pass."""
        chosen = new
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
        return chosen

    def _apply_update(self, operations: Operations, old: Tuple) -> Tuple:
        """Apply operations that the engine does not know to a row, as UPDATE does."""
        return Tuple(apply_update(operations, old.raw, self.doubles), self.format)

    def _apply_upsert(self, operations: Operations, old: Tuple) -> Tuple:
        """The same as UPSERT does."""
        return Tuple(apply_upsert(operations, old.raw, self.doubles), self.format)

    def _take_effect(self, old: Tuple | None, new: Tuple | None, operation: str) -> Callable[[], None] | None:
        """Let the row of a system space take effect.

        Returns: what reverts the effect.
        """
        assert self.system_hook is not None
        with more_stack:
            return self.system_hook(
                None if old is None else old.fields, None if new is None else new.fields, operation
            )

    def _refuse_memory(self, size: int) -> None:
        """Refuse a change beyond the memory limit, unless it is exempt.

        Parameters:
            size: bytes of the new row.

        Raises:
            BoxError: MEMORY_ISSUE (2).
        """
        budget.refuse(self, size)
