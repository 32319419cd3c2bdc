"""Replay of log rows on a database that is being loaded."""

from __future__ import annotations

from typing import Any, Final

from iproto_server.box.catalog.foreign.versions import Version
from iproto_server.box.catalog.loader import Loader, Report
from iproto_server.box.catalog.system_space_ids import SYSTEM_ID_MAX
from iproto_server.box.memtx.row_applier import UNFIT, SpaceChanges, in_words
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import replay_rows
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
        loader: takes the changes.
        vclock: the clock of the rows loaded so far; updated with each row.
        report: receives rows that cannot be applied; it raises, or returns to skip them.

    Attributes:
        rows: number of rows read.
        skipped: number of rows that lie after the beginning of the next log.
    """

    def __init__(self, loader: Loader, vclock: VClock, report: Report) -> None:
        self._loader = loader
        self._vclock = vclock
        self._report = report
        self._spaces: dict[int | None, SpaceChanges] = {}
        self._member = 0
        self.rows = 0
        self.skipped = 0

    def begin_file(self, version: Version) -> None:
        """Take note of the program that has written the next log; its version."""
        self._loader.begin_file(version)

    def take(self, payload: bytes, end: VClock | None) -> tuple[int, bool]:
        """Apply the first rows of a block of whole transactions, up to one that `apply` must take.

        Parameters:
            payload: the packed rows, uncompressed.
            end: as for `apply`.

        Returns:
            The number of rows applied, and whether these are all.
        """
        member = self._member
        lsn = self._vclock.get(member, 0)
        last = _LSN_MAX if end is None else end.get(member, 0)
        count, are_all = replay_rows(payload, member, lsn + 1, last, self._target_of)
        if count:
            self._vclock[member] = lsn + count
            self.rows += count
        return count, are_all

    def _target_of(self, space_id: int) -> tuple[object, dict[str, int]] | None:
        """The tree and the names of the fields of a user's space, for `replay_rows`."""
        if space_id <= SYSTEM_ID_MAX:
            return None
        space = self._spaces.get(space_id)
        if space is None:
            try:
                space = self._spaces[space_id] = self._loader.changes(space_id)
            except BoxError:
                return None
        return None if space.rows_tree is None else (space.rows_tree, space.space.format.names)

    def apply(self, changes: list[Change], end: VClock | None) -> None:
        """Apply whole transactions.

        Parameters:
            changes: the changes of their rows.
            end: the clock of the next log. Rows beyond it are the rest of a failed write that was never
                acknowledged; the next log reuses their LSNs.
        """
        vclock = self._vclock
        spaces = self._spaces
        self.rows += len(changes)
        raw: Any
        key_raw: Any
        operations_raw: Any
        for kind, lsn, member, space_id, raw, key_raw, operations_raw, index_id, index_base in changes:
            last = vclock.get(member, 0)
            if lsn <= last:
                continue
            if end is not None and lsn > end.get(member, 0):
                self.skipped += 1
                continue
            if lsn != last + 1:
                self._report(f"rows are missing between {last} and {lsn} of the member {member}")
            vclock[member] = lsn
            self._member = member
            try:
                space = spaces.get(space_id) or self._changes(kind, space_id)
                if space is None:
                    continue
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
        else:
            self._spaces[space_id] = changes
        return changes


def _missing_field(kind: int, raw: bytes | None, key_raw: bytes | None) -> BoxError | None:
    """The error of a change that lacks its tuple or its key; None if it has what it needs."""
    if kind in _WITH_TUPLE and raw is None:
        return BoxError(ErrorCode.MISSING_REQUEST_FIELD, "tuple")
    if kind in (_UPDATE, _DELETE) and key_raw is None:
        return BoxError(ErrorCode.MISSING_REQUEST_FIELD, "key")
    return None
