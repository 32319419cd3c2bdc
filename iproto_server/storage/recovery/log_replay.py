"""Replay of log rows on a database that is being loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from iproto_server.box.catalog.foreign.versions import Version
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.loading.space_load import Report
from iproto_server.box.catalog.system_space_ids import SYSTEM_ID_MAX
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.row_applier import UNFIT, SpaceChanges, in_words
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import BlockRows, LogReplayer, Tree
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Change, RowType

_INSERT, _REPLACE, _UPDATE, _DELETE, _UPSERT, _ROLLBACK = map(
    int,
    (
        RowType.INSERT,
        RowType.REPLACE,
        RowType.UPDATE,
        RowType.DELETE,
        RowType.UPSERT,
        RowType.ROLLBACK,
    ),
)
_ABOUT_NO_ROW: Final = frozenset(
    map(int, (RowType.NOP, RowType.RAFT, RowType.PROMOTE, RowType.DEMOTE, RowType.CONFIRM))
)
_WITH_TUPLE: Final = frozenset({_INSERT, _REPLACE, _UPSERT})
_WITH_OPERATIONS: Final = {_UPDATE: "tuple", _UPSERT: "operations"}
"""Changes with operations, and Tarantool's name of the field that has them."""
_CHANGES: Final = _WITH_TUPLE | {_UPDATE, _DELETE}
_LSN_MAX: Final = 2**63 - 1


class LogReplay:
    """Applies the rows of logs, each once, in LSN order.

    Parameters:
        loader: Takes the changes.
        vclock: The clock of the rows loaded so far; updated with each row.
        report: Receives rows that cannot be applied; it raises, or returns to skip them.

    Attributes:
        rows: Number of rows read.
        skipped: Number of rows that lie after the beginning of the next log.
    """

    def __init__(self, loader: Loader, vclock: VClock, report: Report) -> None:
        self._loader = loader
        self._vclock = vclock
        self._report = report
        self._spaces: dict[int | None, SpaceChanges] = {}
        self._replayer = LogReplayer(self._target_of)
        # The member whose row was applied last.
        self._member = 0
        self.rows = 0
        self.skipped = 0

    def begin_file(self, version: Version) -> None:
        """Take note of the program that has written the next log; its version."""
        self._loader.begin_file(version)

    def apply(self, changes: Sequence[Change], end: VClock | None) -> None:
        """Apply whole transactions.

        Parameters:
            changes: The changes of their rows; `BlockRows` are the fastest.
            end: The clock of the next log. Rows beyond it are the rest of a failed write that was never
                acknowledged; the next log reuses their LSNs.
        """
        self.rows += len(changes)
        if not isinstance(changes, BlockRows):
            for change in changes:
                self._apply(change, end)
            return
        position = 0
        while (position := self._apply_plain(changes, position, end)) < len(changes):
            self._apply(changes[position], end)
            position += 1

    def _apply_plain(self, rows: BlockRows, position: int, end: VClock | None) -> int:
        """Apply rows of one member; return the position of the first row that `_apply` must take."""
        member = self._member
        lsn = self._vclock.get(member, 0)
        last = _LSN_MAX if end is None else end.get(member, 0)
        after = self._replayer.apply(rows, position, member, lsn + 1, last)
        if after > position:
            self._vclock[member] = lsn + after - position
        return after

    def _target_of(self, space_id: int) -> tuple[Tree, MemtxSpace] | None:
        """The tree of the rows of a user's space, and the space, for the replayer."""
        if space_id <= SYSTEM_ID_MAX:
            return None
        space = self._spaces.get(space_id)
        if space is None:
            try:
                space = self._spaces[space_id] = self._loader.changes(space_id)
            except BoxError:
                return None
        return None if space.rows_tree is None else (space.rows_tree, space.space)

    def _apply(self, change: Change, end: VClock | None) -> None:
        """Apply a row of any kind, unless it is applied already or beyond the beginning of the next log."""
        kind, lsn, member, space_id, raw, key_raw, *_ = change
        last = self._vclock.get(member, 0)
        if lsn <= last:
            return
        if end is not None and lsn > end.get(member, 0):
            self.skipped += 1
            return
        if lsn != last + 1:
            self._report(f"rows are missing between {last} and {lsn} of the member {member}")
        self._vclock[member] = lsn
        self._member = member
        try:
            space = self._spaces.get(space_id) or self._changes(kind, space_id)
            if space is not None:
                _make(space, change)
        except UNFIT as error:
            about, advice = self._loader.about(space_id, raw), self._loader.advice(error)
            known = error if isinstance(error, BoxError) else _missing_field(kind, raw, key_raw)
            reason = in_words(known or error)
            self._report(f"row {lsn} of member {member}, {about}: {reason}", advice)

    def _changes(self, kind: int, space_id: int | None) -> SpaceChanges | None:
        """Return the object that takes the changes of a space; None for a row about no space."""
        if kind in _ABOUT_NO_ROW:
            return None
        if kind == _ROLLBACK:
            raise BoxError(
                ErrorCode.UNSUPPORTED, "This server", "synchronous transactions that were rolled back"
            )
        if space_id is None and kind in _CHANGES:
            raise BoxError(ErrorCode.MISSING_REQUEST_FIELD, "space id")
        if space_id is None:
            raise BoxError(ErrorCode.UNKNOWN_REQUEST_TYPE, kind)
        changes = self._loader.changes(space_id)
        if space_id <= SYSTEM_ID_MAX:
            # The change may affect other spaces, so all are looked up again.
            self._spaces.clear()
            self._replayer.forget()
        else:
            self._spaces[space_id] = changes
        return changes


def _make(space: SpaceChanges, change: Change) -> None:
    """Make a change. Raises one of `UNFIT`."""
    # A missing tuple or key is one of `UNFIT`, too.
    parts: tuple[Any, ...] = change
    kind, _, _, _, raw, key_raw, operations_raw, index_id, index_base = parts
    if kind == _REPLACE:
        space.replace(raw)
    elif kind == _INSERT:
        space.insert(raw)
    elif kind == _DELETE:
        space.delete(key_raw, index_id)
    elif operations_raw is None and kind in _WITH_OPERATIONS:
        raise BoxError(ErrorCode.MISSING_REQUEST_FIELD, _WITH_OPERATIONS[kind])
    elif kind == _UPDATE:
        space.update(key_raw, operations_raw, index_id, index_base)
    elif kind == _UPSERT:
        space.upsert(raw, operations_raw, index_base)
    else:
        raise BoxError(ErrorCode.UNKNOWN_REQUEST_TYPE, kind)


def _missing_field(kind: int, raw: bytes | None, key_raw: bytes | None) -> BoxError | None:
    """The error of a change that lacks its tuple or its key; None if it has what it needs."""
    if kind in _WITH_TUPLE and raw is None:
        return BoxError(ErrorCode.MISSING_REQUEST_FIELD, "tuple")
    if kind in (_UPDATE, _DELETE) and key_raw is None:
        return BoxError(ErrorCode.MISSING_REQUEST_FIELD, "key")
    return None
