"""Full replay of a space in an in-memory database, for the rare changes that cannot be folded key by key.

These are changes through a secondary index, which old logs contain, and changes of spaces whose primary key
or field names are altered later. One task then keeps all rows of the space in memory.
"""

from __future__ import annotations

from iproto_server.box.api.box import Box
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.system_space_ids import INDEX, SPACE, SYSTEM_ID_MAX
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.box.memtx.row_applier import UNFIT, in_words
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import Block, Change, RowType, decode_rows
from pyspark_tarantool.source.decode.log_span import counting
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.byte_ranges import read_blocks, whole_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.schema.space_rows import format_rows, index_row, space_flags
from pyspark_tarantool.source.state.state_files import StateFiles

_FLAGS, _FORMAT = 5, 6
_OPTIONS = ("temporary", "group_id")
"""The options of a space that decide where its rows are."""


def replay(
    state: StateFiles, damage: DamageHandler, log_damage: DamageHandler, *, is_lenient: bool
) -> list[bytes]:
    """Load a space and its definition from a snapshot and logs.

    Parameters:
        state: The files.
        damage: Handles damage in the snapshot.
        log_damage: Handles damage in the logs.
        is_lenient: Whether to skip changes that do not fit their rows.

    Returns:
        The rows of the space.

    Raises:
        SourceError: If a change does not fit its row.
        XlogError: At damage that is not to be skipped.
        OSError: If a file cannot be read.
    """
    replaying = _Replay(state, is_lenient)
    if state.snapshot is None:
        replaying.load_bootstrap()
    else:
        replaying.load(state.snapshot, damage)
    return replaying.rows(log_damage)


class _Replay:
    def __init__(self, state: StateFiles, is_lenient: bool) -> None:
        self._state = state
        self._is_lenient = is_lenient
        self._box = Box()
        self._loader = Loader(self._box.catalog, self._report)

    def _report(self, reason: str, advice: str | None = None) -> None:
        """Handle a change that cannot be applied; changes of other spaces do not matter."""
        if not self._is_lenient and f"'{self._state.space.name}'" in reason:
            raise SourceError(reason)

    def load_bootstrap(self) -> None:
        """Start with an empty database, as before the first row of the logs."""
        for space in Box().catalog:
            if not isinstance(space, SysviewSpace):
                self._loader.load(space.id, list(space.rows()))

    def load(self, snapshot: DataFile, damage: DamageHandler) -> None:
        """Start with a snapshot."""
        for block in read_blocks(whole_file(snapshot), damage):
            for space_id, raw in _tuples(block, snapshot.uri, damage):
                if self._concerns(space_id):
                    self._loader.load(space_id, [_readable(space_id, raw)])

    def rows(self, damage: DamageHandler) -> list[bytes]:
        """Apply the logs, and return the rows."""
        state = self._state
        with self._loader as loader:
            loader.end_snapshot()
            for span in state.spans:
                low, high = counting(state.start, span.end, state.until)
                for _, changes in span.changes(damage):
                    for change in changes:
                        if low[change[2]] < change[1] <= high[change[2]] and self._concerns(change[3]):
                            self._make(change)
            return list(self._box.catalog.space(state.space.id).rows())

    def _concerns(self, space_id: int | None) -> bool:
        return space_id is not None and (space_id <= SYSTEM_ID_MAX or space_id == self._state.space.id)

    def _make(self, change: Change) -> None:
        _, lsn, member, space_id, raw, *_ = change
        try:
            self._change(change)
        except UNFIT as error:
            about = self._loader.about(space_id, raw)
            self._report(f"row {lsn} of the member {member}, {about}: {in_words(error)}")

    def _change(self, change: Change) -> None:
        kind, _, _, space_id, raw, key_raw, operations_raw, index_id, index_base = change
        space = self._loader.changes(space_id or 0)
        if raw is not None:
            raw = _readable(space_id or 0, raw)
        if kind == RowType.REPLACE and raw is not None:
            space.replace(raw)
        elif kind == RowType.INSERT and raw is not None:
            space.insert(raw)
        elif kind == RowType.DELETE and key_raw is not None:
            space.delete(key_raw, index_id)
        elif kind == RowType.UPDATE and key_raw is not None and operations_raw is not None:
            space.update(key_raw, operations_raw, index_id, index_base)
        elif kind == RowType.UPSERT and raw is not None and operations_raw is not None:
            space.upsert(raw, operations_raw, index_base)


def _readable(space_id: int, raw: bytes) -> bytes:
    """A row without what only matters to a server: a definition that it refuses can still be read."""
    if space_id not in (SPACE, INDEX):
        return raw
    row = codec.unpack(raw)
    if space_id == INDEX:
        return codec.pack(index_row(row))
    if len(row) <= _FORMAT or not isinstance(row[_FORMAT], list):
        return raw
    flags = {name: value for name, value in space_flags(row[_FLAGS]).items() if name in _OPTIONS}
    return codec.pack([*row[:_FLAGS], flags, list(format_rows(row[0], row[_FORMAT])), *row[_FORMAT + 1 :]])


def _tuples(block: Block, name: str, damage: DamageHandler) -> list[tuple[int, bytes]]:
    try:
        rows = decode_rows(block.payload)
    except ValueError as error:
        damage.add(XlogError(name, block.start, str(error)), block.end)
        return []
    return [
        (row.space_id, row.tuple_raw)
        for row in rows
        if row.space_id is not None and row.tuple_raw is not None
    ]
