"""Folds the changes of the logs into the final state of each key of a space.

The driver folds them once for all tasks if the result is small (`folded_logs`). Otherwise, every task reads
all logs and keeps the state of each changed key (`key_states`), but only its own rows: tasks share rows, not
keys. Without a snapshot, a task needs no keys of other tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from iproto_server.box.memtx.row_applier import UNFIT, in_words
from iproto_server.codec import msgpack as codec
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Change, RowType
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.log_span import ContinuityCheck, PerMember, by_member
from pyspark_tarantool.source.decode.packed import Buffer, Cells
from pyspark_tarantool.source.decode.packed_keys import Cut, PackedKeys, share_of, shares_of
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from pyspark_tarantool.source.state.changed_keys import (
    KeyColumns,
    Numbers,
    find_numbers,
    keys_of,
    numbers_of,
)
from pyspark_tarantool.source.state.key_states import (
    OTHER_TASK,
    KeyStates,
    LoggedOperations,
    quick_operations,
    record,
)
from pyspark_tarantool.source.state.row_operations import RowOperations, has_names

logger = logging.getLogger("pyspark_tarantool.source")

_INSERT, _REPLACE, _UPDATE, _DELETE, _UPSERT = map(
    int, (RowType.INSERT, RowType.REPLACE, RowType.UPDATE, RowType.DELETE, RowType.UPSERT)
)


class NeedsFullReplay(Exception):
    """A change can only be applied by a full replay."""


class LogFolder:
    """Folds the changes of a space.

    Parameters:
        space: The space.
        task: The number of this task, from 0.
        tasks: The number of tasks.
        has_snapshot: Whether a snapshot may have further rows.
        is_renamed: Whether the logs rename fields.
        is_lenient: Whether to skip changes that do not fit their rows, because damage is skipped.

    Attributes:
        states: The state of each changed key.
    """

    def __init__(
        self,
        space: SpaceDefinition,
        task: int = 0,
        tasks: int = 1,
        *,
        has_snapshot: bool = True,
        is_renamed: bool = False,
        is_lenient: bool = False,
    ) -> None:
        self._space = space
        self._keys = PackedKeys(space.primary)
        self._operations = RowOperations(space, self._keys)
        self._task, self._tasks = task, tasks
        self._has_snapshot = has_snapshot
        self._is_renamed = is_renamed
        self._is_lenient = is_lenient
        self._has_operations = self._has_upserts = False
        self._changed_numbers: Numbers | None = None
        self.states = KeyStates()

    def apply_changes(self, changes: Iterable[Change], low: PerMember, high: PerMember) -> None:
        """Apply changes of logs, in order.

        Parameters:
            changes: Of any spaces.
            low: By member, the LSN before the first row that counts.
            high: By member, the LSN of the last row that counts.

        Raises:
            NeedsFullReplay: If one can only be applied by a full replay.
            SourceError: If one does not fit its row.
        """
        space_id, task, tasks, has_snapshot = self._space.id, self._task, self._tasks, self._has_snapshot
        states = self.states
        key_of_row, key_of_key = self._keys.of_row, self._keys.of_key
        for change in changes:
            if change[3] != space_id or not low[change[2]] < change[1] <= high[change[2]]:
                continue
            kind, lsn, member, _, raw, key_raw, _, index_id, _ = change
            try:
                if kind in (_REPLACE, _INSERT):
                    key = key_of_row(raw)  # type: ignore[arg-type]  # they have a tuple
                    if tasks == 1 or share_of(key) % tasks == task:
                        states[key] = raw
                    elif has_snapshot:
                        states[key] = OTHER_TASK
                    continue
                if index_id:
                    raise NeedsFullReplay
                if kind == _DELETE:
                    key = key_of_key(key_raw)  # type: ignore[arg-type]  # it has a key
                    if has_snapshot:
                        states[key] = None
                    else:
                        states.pop(key, None)
                elif kind in (_UPDATE, _UPSERT):
                    self._operate(change)
            except UNFIT as error:
                self._refuse(lsn, member, error)

    def apply_rows(self, rows: LogRows, low: PerMember, high: PerMember) -> None:
        """Apply plain rows of many blocks: a fast version of `apply_changes`.

        Parameters:
            rows: Plain rows, with the first item of each key or tuple.
            low: By member, the LSN before the first row that counts.
            high: By member, the LSN of the last row that counts.

        Raises:
            NeedsFullReplay: If one can only be applied by a full replay.
            SourceError: If one does not fit its row.
        """
        rows = rows.take(rows.space_id == self._space.id)
        rows = rows.take(rows.within(low, high))
        if rows.values is None or not self._keys.are_cut(rows.values):
            self.apply_changes(rows.changes(), low, high)
            return
        key_cells = rows.values.item(0)
        is_update, states = (rows.type == _UPDATE) | (rows.type == _UPSERT), self.states
        is_own = shares_of(key_cells) % self._tasks == self._task
        if not self._has_snapshot:
            wanted = is_own | is_update
            rows, key_cells = rows.take(wanted), key_cells.take(wanted)
            is_own, is_update = is_own[wanted], is_update[wanted]
        begin, updates = 0, rows.take(is_update).changes()
        for place in np.flatnonzero(is_update).tolist():
            some = slice(begin, place)
            record(states, key_cells.take(some), rows.tuple.take(some), is_own[some])
            self.apply_changes([next(updates)], low, high)
            begin = place + 1
        rest = slice(begin, None)
        record(states, key_cells.take(rest), rows.tuple.take(rest), is_own[rest])
        if not self._has_snapshot:
            for key in key_cells.take(rows.type == _DELETE).raws():
                if key is not None and states.get(key) is None:
                    states.pop(key, None)

    def apply_buffer(
        self,
        buffer: Buffer,
        low: PerMember,
        high: PerMember,
        continuity: ContinuityCheck | None = None,
        end: VClock | None = None,
    ) -> bool:
        """Apply packed rows of a log in compiled code, if all are plain.

        Parameters:
            buffer: The rows of whole blocks.
            low: By member, the LSN before the first row that counts.
            high: By member, the LSN of the last row that counts.
            continuity: Checks for missing rows; None disables the check.
            end: The clock of the next log; None if there is none.

        Returns:
            Whether the rows were applied; if not, nothing has changed.
        """
        if self._keys.cut is None:
            return False
        clock, most = (None, None) if continuity is None else continuity.limits(end)
        taken = self.states.fold(
            buffer.data,
            buffer.size,
            self._space.id,
            self._keys.cut,
            self._task,
            self._tasks,
            self._has_snapshot,
            self._has_snapshot and not self._is_lenient,
            by_member(low),
            by_member(high),
            clock,
            most,
            *self._operations.packed_doubles,
            None if self._is_renamed else self._operate_on,
        )
        if taken is None:
            return False
        member, reached, waiting = taken
        self._has_operations |= bool(waiting & 1)
        self._has_upserts |= bool(waiting & 2)
        if continuity is not None:
            continuity.advance(member, reached)
        return True

    def _operate_on(
        self,
        kind: int,
        lsn: int,
        member: int,
        raw: bytes | None,
        key_raw: bytes | None,
        operations_raw: bytes,
        index_base: int,
    ) -> None:
        """Apply an UPDATE or UPSERT for `KeyStates.fold`."""
        try:
            self._operate((kind, lsn, member, self._space.id, raw, key_raw, operations_raw, 0, index_base))
        except UNFIT as error:
            self._refuse(lsn, member, error)

    def _operate(self, change: Change) -> None:
        """Apply an UPDATE or UPSERT."""
        kind, lsn, member, _, raw, key_raw, operations_raw, _, index_base = change
        if operations_raw is None or (raw if kind == _UPSERT else key_raw) is None:
            raise ValueError("the row lacks a key, tuple or operations")
        if self._is_renamed and has_names(operations_raw):
            raise NeedsFullReplay  # in all tasks, whichever owns the key
        if kind == _UPSERT and raw is not None:
            key = self._keys.of_row(raw)
            self._has_upserts = True
        else:
            key, raw = self._keys.of_key(key_raw or b""), None
        is_own = share_of(key) % self._tasks == self._task
        if not is_own and not self._has_snapshot:
            return
        state = self.states.get(key, [] if self._has_snapshot else None)
        if not is_own and not isinstance(state, list):
            if raw is not None:
                self.states[key] = OTHER_TASK
            return
        if state is None and raw is None:
            return
        logged = LoggedOperations(lsn, member, raw, operations_raw, index_base)
        if isinstance(state, list):
            self._has_operations = True
            state.append(logged)
            self.states[key] = state
        elif not isinstance(state, bool):
            self.states[key] = self._operations.apply(state, logged)

    def rows(self) -> list[bytes]:
        """The complete rows of the logs that this task returns."""
        return self.states.rows()

    def waiting(self) -> dict[bytes, list[LoggedOperations]]:
        """The operations that wait for rows of the snapshot, by key."""
        if not self._has_operations:
            return {}
        return {key: state for key, state in self.states.items() if isinstance(state, list)}

    def set_changed_keys(self, columns: KeyColumns, waiting: dict[bytes, list[LoggedOperations]]) -> None:
        """Set the keys of the snapshot that another `LogFolder` has found changed.

        Parameters:
            columns: The keys.
            waiting: The operations that wait for rows of the snapshot, by key.
        """
        self._changed_numbers = numbers_of(columns) if self._keys.cut is Cut.NUMBERS else None
        if self._changed_numbers is None:
            self._set_changed(keys_of(columns))
        for key, operations in waiting.items():
            self.states[key] = operations
            self._has_upserts |= any(tuple_raw is not None for _, _, tuple_raw, _, _ in operations)
        self._has_operations = bool(waiting)

    def _set_changed(self, keys: list[bytes]) -> None:
        waiting = self.waiting()
        borders = np.cumsum([0, *map(len, keys)])
        cells = Cells(Buffer(*keys), borders[:-1], borders[1:])
        record(self.states, cells, cells.none(), np.zeros(len(keys), np.bool_))
        for key, operations in waiting.items():
            self.states[key] = operations

    def merge(self, tuples: Tuples) -> tuple[Tuples, list[bytes]]:
        """Merge rows of the snapshot with the changes.

        Parameters:
            tuples: The rows.

        Returns:
            The unchanged rows, and the updated ones; without deleted rows, and without those that are
            returned as rows of the logs.

        Raises:
            SourceError: If a change does not fit its row.
        """
        is_touched = self._touched(tuples)
        if not is_touched.any():
            return tuples, []
        changed = self._changed(tuples.take(is_touched)) if self._has_operations else []
        return tuples.take(~is_touched), changed

    def _changed(self, touched: Tuples) -> list[bytes]:
        """The rows with pending operations, after applying them."""
        changed: list[bytes] = []
        for key, raw in zip(self._keys_of(touched), touched.cells.raws(), strict=True):
            state = self.states.get(key)
            if isinstance(state, list):
                self.pending_upserts.pop(key, None)
                folded = self.apply_operations(raw, state)
                if folded is not None:
                    changed.append(folded)
        return changed

    def _touched(self, tuples: Tuples) -> npt.NDArray[np.bool_]:
        """Whether the rows of the snapshot have changed keys."""
        if self._changed_numbers is not None:
            found = find_numbers(self._changed_numbers, tuples.item(0))
            if found is not None:
                return found
            self._set_changed([codec.pack(number) for number in self._changed_numbers.tolist()])
            self._changed_numbers = None
        if not self.states:
            return np.zeros(len(tuples), np.bool_)
        if self._keys.are_cut(tuples):
            keys = tuples.item(0)
            touched = self.states.find_cells(keys.buffer.data, *keys.places)
            if touched is not None:
                return np.frombuffer(touched, np.bool_)
        return np.array([key in self.states for key in self._keys_of(tuples)], np.bool_)

    def _keys_of(self, tuples: Tuples) -> list[bytes]:
        try:
            return self._keys.of_rows(tuples)
        except UNFIT as error:
            raise SourceError(f"space '{self._space.name}': {in_words(error)}") from None

    def apply_operations(self, raw: bytes | None, operations: list[LoggedOperations]) -> bytes | None:
        """Apply operations to a row.

        Parameters:
            raw: The row; None if there is none.
            operations: The operations, in order.

        Raises:
            SourceError: If one does not fit its row.
        """
        made = (
            quick_operations(raw, operations, *self._operations.packed_doubles)
            if self._keys.cut is not None
            else None
        )
        if made is not None:
            return made
        for logged in operations:
            try:
                raw = self._operations.apply(raw, logged)
            except UNFIT as error:
                lsn, member, *_ = logged
                self._refuse(lsn, member, error)
        return raw

    @cached_property
    def pending_upserts(self) -> dict[bytes, list[LoggedOperations]]:
        """The operations of keys whose row exists even without one in the snapshot, due to an UPSERT.

        Keys found in the snapshot are removed. Access it only after all changes have been applied.
        """
        if not self._has_upserts:
            return {}
        return {
            key: state
            for key, state in self.states.items()
            if isinstance(state, list) and any(tuple_raw is not None for _, _, tuple_raw, _, _ in state)
        }

    def mark_existing(self, tuples: Tuples) -> None:
        """Remove keys found in the snapshot from the pending upserts.

        Parameters:
            tuples: The rows.
        """
        for key in self._keys_of(tuples):
            self.pending_upserts.pop(key, None)

    def inserted_rows(self) -> Iterator[bytes]:
        """The rows of keys that are not in the snapshot.

        Raises:
            SourceError: If a change does not fit its row.
        """
        for operations in self.pending_upserts.values():
            raw = self.apply_operations(None, operations)
            if raw is not None:
                yield raw

    def _refuse(self, lsn: int, member: int, error: BaseException) -> None:
        reason = f"row {lsn} of the member {member}, space '{self._space.name}': {in_words(error)}"
        if not self._is_lenient:
            raise SourceError(reason) from None
        logger.warning("skipped a change: %s", reason)
