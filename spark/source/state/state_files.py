"""Selects the snapshot and the parts of logs that make up a state of a space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from iproto_server.box.catalog.system_space_ids import INDEX, SPACE, TRUNCATE
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import LogGapError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Row, RowType
from pyspark_tarantool.source.decode.cutoff import (
    Cutoff,
    LogRange,
    LsnCutoff,
    TimeCutoff,
    ambiguous,
    first_timestamp,
    rows_of_log,
    writers,
)
from pyspark_tarantool.source.decode.files_end import check_lsn, check_time
from pyspark_tarantool.source.decode.log_span import DEFINING, LogSpan, counting
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, DataFiles, LogPart
from pyspark_tarantool.source.options import Mode, ReadOptions
from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from pyspark_tarantool.source.schema.system_rows import read_system_rows
from pyspark_tarantool.source.state.confirmations import check_confirmed


class Truncation(NamedTuple):
    """The last row that truncated, dropped or re-created the space.

    Attributes:
        span: The index of the span that contains it.
        block: The offset of its block in the file.
        member: The member that wrote it.
        lsn: Its LSN.
    """

    span: int
    block: int
    member: int
    lsn: int


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The files that make up a state of a space. It can be pickled.

    Attributes:
        snapshot: The snapshot that it begins with; None for an empty database.
        spans: The following parts of logs.
        start: The clock of the beginning.
        until: The clock of the end; None for all rows.
        space: The space's definition in that state.
        truncation: The last truncation of the space; None if there was none.
        is_renamed: Whether the names of its fields may have changed in the logs.
        is_rekeyed: Whether its primary key may have changed in the logs while it had rows.
    """

    snapshot: DataFile | None
    spans: tuple[LogSpan, ...]
    start: VClock
    until: VClock | None
    space: SpaceDefinition
    truncation: Truncation | None
    is_renamed: bool
    is_rekeyed: bool

    @property
    def has_snapshot_rows(self) -> bool:
        """Whether rows of the snapshot may remain: nothing has removed all of them."""
        return self.snapshot is not None and self.truncation is None

    @classmethod
    def find(cls, options: ReadOptions, files: DataFiles) -> StateFiles:
        """Select the files of a state.

        Parameters:
            options: Of the query; the mode is current, at_lsn or at_time.
            files: The available files.

        Raises:
            SourceError: If the state or the space does not exist.
            LogGapError: If rows are missing, as far as the headers of the logs tell.
            XlogError: If the files that define the spaces cannot be read.
        """
        # Damage is reported by the tasks that read the rows.
        damage = DamageHandler(options.damaged)
        chosen = _choose(options, files, damage)
        state = chosen.of_space(options, damage)
        first = next((number for number, log in enumerate(files.logs) if chosen.has(log)), len(files.logs))
        check_confirmed(state.space, files.logs[first:], state.until, damage)
        return state


class FoundState(NamedTuple):
    """A state, and the files that it was selected from. It can be pickled.

    Attributes:
        files: The available files.
        state: The state.
    """

    files: DataFiles
    state: StateFiles

    @classmethod
    def find(cls, options: ReadOptions, known: FoundState | None = None) -> FoundState:
        """Find the state of a query.

        Logs only grow, and snapshots do not change: the state is the same while the files' sizes are.

        Parameters:
            options: Of the query; the mode is current, at_lsn or at_time.
            known: An earlier result for the same query.

        Raises:
            SourceError: If there are no files, or the state or the space does not exist.
            LogGapError: If rows are missing, as far as the headers of the logs tell.
            XlogError: If the files that define the spaces cannot be read.
        """
        files = DataFiles.find(options)
        if known is not None and known.files == files:
            return known
        return cls(files, StateFiles.find(options, files))


class _Chosen(NamedTuple):
    """The files of a state of the database; see `StateFiles`."""

    snapshot: DataFile | None
    spans: tuple[LogSpan, ...]
    start: VClock
    until: VClock | None

    def has(self, log: DataFile) -> bool:
        """Whether changes of a log belong to the state."""
        return any(span.file.uri == log.uri for span in self.spans)

    def of_space(self, options: ReadOptions, damage: DamageHandler) -> StateFiles:
        """Find the space's definition, and changes of the space as a whole."""
        if options.space is None:
            raise SourceError('the option "space" is missing: the name or the id of a space')
        system = read_system_rows(self.snapshot, (), damage)
        rows = list(self._defining_rows(damage))
        for _, row in rows:
            system.apply(row)
        space = system.definitions().space(options.space)
        space.check_stored()
        truncation: Truncation | None = None
        is_renamed = is_rekeyed = False
        for place, row in rows:
            key = _key_of(row)
            if key[:1] != [space.id]:
                continue
            if _empties(row, key):
                truncation = Truncation(*place, row.replica_id, row.lsn)
                is_rekeyed = False
                is_renamed = is_renamed and row.space_id == TRUNCATE
            elif row.type != RowType.INSERT:
                is_renamed = is_renamed or row.space_id == SPACE
                is_rekeyed = is_rekeyed or (row.space_id == INDEX and key[1] == 0)
        return StateFiles(*self, space, truncation, is_renamed, is_rekeyed)

    def _defining_rows(self, damage: DamageHandler) -> Iterator[tuple[tuple[int, int], Row]]:
        """The rows that define or truncate spaces, with the span's index and the block's offset."""
        block_filter = BlockFilter(DEFINING)
        for number, span in enumerate(self.spans):
            if not span.may_match(block_filter, damage):
                continue
            low, high = counting(self.start, span.end, self.until)
            for block, rows in span.rows(damage, block_filter):
                for row in rows:
                    if row.space_id in DEFINING and low[row.replica_id] < row.lsn <= high[row.replica_id]:
                        yield (number, block.start), row


def _key_of(row: Row) -> list[int]:
    """The primary key of a row of `_space`, `_truncate` or `_index`."""
    raw = row.key_raw if row.tuple_raw is None else row.tuple_raw
    fields: list[int] = codec.unpack(raw or b"\x90")
    return fields[: 2 if row.space_id == INDEX else 1]


def _empties(row: Row, key: Sequence[int]) -> bool:
    """Whether a row truncates or drops the space that it refers to."""
    if row.space_id == TRUNCATE:
        # An INSERT only creates the record of a space.
        return row.type in (RowType.REPLACE, RowType.UPSERT, RowType.UPDATE)
    return row.type == RowType.DELETE and (row.space_id == SPACE or (row.space_id == INDEX and key[1] == 0))


# -- selection --


class _Origin(NamedTuple):
    """A possible beginning of a state: a snapshot, or nothing if the logs go back to the beginning."""

    snapshot: DataFile | None

    @property
    def clock(self) -> VClock:
        return VClock() if self.snapshot is None else self.snapshot.header.vclock


def _choose(options: ReadOptions, files: DataFiles, damage: DamageHandler) -> _Chosen:
    origins = [_Origin(snapshot) for snapshot in reversed(files.snapshots)]
    if files.logs and VClock().covers(files.logs[0].header.vclock):
        origins.append(_Origin(None))
    if options.mode not in (Mode.AT_LSN, Mode.AT_TIME):
        origin = origins[0] if origins else _Origin(None)
        spans = tuple(map(LogSpan.whole, files.logs_after(origin.clock)))
        return _Chosen(origin.snapshot, spans, origin.clock, None)
    if options.time is not None:
        check_time("time", options.time, files.logs)
    gap: LogGapError | None = None
    for origin in origins:
        cutoff = _cutoff(options, files, origin, damage)
        if cutoff is None:
            continue
        try:
            parts = _logs_after(files, origin.clock, cutoff)
        except LogGapError as error:
            if not (isinstance(cutoff, LsnCutoff) and _is_just(cutoff, origin.clock)):
                gap = error
                break
            parts = []
        log_range = LogRange(origin.clock, parts, cutoff)
        if isinstance(cutoff, LsnCutoff):
            check_lsn("lsn", cutoff.target, files.snapshots, files.logs)
        return _Chosen(origin.snapshot, tuple(log_range.spans), origin.clock, log_range.until)
    raise SourceError(_not_there(options, files, origins, damage, gap))


def _cutoff(options: ReadOptions, files: DataFiles, origin: _Origin, damage: DamageHandler) -> Cutoff | None:
    """The cutoff of a query, relative to a snapshot; None if the snapshot is too new."""
    members = writers(files.logs, origin.clock, damage)
    if options.time is not None:
        if origin.snapshot is not None and not _is_until(origin.snapshot, options.time, files, damage):
            return None
        return TimeCutoff(options.time, damage, len(members) <= 1)
    if isinstance(options.lsn, VClock):
        of_clock = LsnCutoff(options.lsn, damage)
        return of_clock if of_clock.covers(origin.clock) else None
    if len(members) > 1:
        raise ambiguous(members)
    member, lsn = members[0], options.lsn or 0
    of_number = LsnCutoff(VClock({member: lsn}), damage, member)
    return of_number if of_number.covers(origin.clock) else None


def _logs_after(files: DataFiles, clock: VClock, cutoff: Cutoff) -> list[LogPart]:
    """The logs that may have rows that count, and the next one, whose clock ends them."""
    logs = list(files.logs)
    while len(logs) > 1 and cutoff.excludes_all_of(logs[-2]) and not clock.covers(logs[-1].header.vclock):
        logs.pop()
    return DataFiles((), tuple(logs)).logs_after(clock)


def _is_just(cutoff: LsnCutoff, clock: VClock) -> bool:
    """Whether a snapshot's clock reaches the cutoff, so that no logs are needed."""
    return all(clock.get(member, 0) >= lsn for member, lsn in cutoff.target.items())


def _is_until(snapshot: DataFile, time: float, files: DataFiles, damage: DamageHandler) -> bool:
    """Whether a snapshot contains no changes after a time.

    The timestamps of its rows are not sufficient: all snapshots of one run of Tarantool have that of the
    first one. If available, the surrounding logs decide.
    """
    stamp = first_timestamp(snapshot, damage)
    if stamp is not None and stamp > time:
        return False
    clock = snapshot.header.vclock
    before = [
        log for log in files.logs if clock.covers(log.header.vclock) and not log.header.vclock.covers(clock)
    ]
    behind = next((log for log in files.logs if log.header.vclock.same_as(clock)), None)
    first = None if behind is None else first_timestamp(behind, damage)
    if not before or (first is not None and first <= time):
        return True
    return all(
        row.timestamp <= time
        for row in rows_of_log(before[-1], damage)
        if row.lsn <= clock.get(row.replica_id, 0)
    )


def _not_there(
    options: ReadOptions,
    files: DataFiles,
    origins: Sequence[_Origin],
    damage: DamageHandler,
    gap: LogGapError | None,
) -> str:
    """The error message for an unavailable state, with the earliest available one."""
    wanted = f"LSN {options.lsn}" if options.time is None else _time_text(options.time)
    reason = f"there is no state of {wanted}" + ("" if gap is None else f" ({gap})")
    oldest: _Origin | None = None
    for origin in origins:
        try:
            files.logs_after(origin.clock)
        except LogGapError:
            break
        oldest = origin
    if oldest is None:
        return f"{reason}: there is no snapshot, and the logs begin with {files.logs[0].header.vclock}"
    since = str(oldest.clock)
    stamp = None if oldest.snapshot is None else first_timestamp(oldest.snapshot, damage)
    if options.time is not None and stamp is not None:
        since = _time_text(stamp)
    return f"{reason}: the earliest available state is {since}"


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
