"""Reads the logs of a state, and folds their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Change
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.log_span import DEFINING, ContinuityCheck, PerMember, counting
from pyspark_tarantool.source.decode.packed import Buffer
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.state.log_folder import LogFolder, NeedsFullReplay
from pyspark_tarantool.source.state.state_files import StateFiles, Truncation


def fold_logs(
    state: StateFiles,
    folder: LogFolder,
    damage: DamageHandler,
    *,
    checks_rows: bool,
    on_progress: Callable[[], None] = lambda: None,
) -> bool:
    """Fold the changes of the logs.

    Parameters:
        state: The state to read.
        folder: Folds the changes.
        damage: Handles damage in the logs.
        checks_rows: Whether to check that no row is missing, which takes all rows of all spaces.
        on_progress: Called after each group of blocks.

    Returns:
        Whether the changes were folded; False if the state needs a full replay.

    Raises:
        XlogError: At damage that is not to be skipped.
        LogGapError: If rows are missing.
        SourceError: If a change does not fit its row.
        OSError: If a file cannot be read.
    """
    can_fold = not state.is_rekeyed
    for found, low, high in _changes(state, folder, damage, checks_rows, on_progress):
        if not can_fold:
            continue  # Read the remaining logs anyway, to check them.
        try:
            if isinstance(found, LogRows):
                folder.apply_rows(found, low, high)
            else:
                folder.apply_changes(found, low, high)
        except NeedsFullReplay:
            can_fold = False
        on_progress()
    return can_fold


def _changes(
    state: StateFiles,
    folder: LogFolder,
    damage: DamageHandler,
    checks_rows: bool,
    on_progress: Callable[[], None],
) -> Iterator[tuple[LogRows | list[Change], PerMember, PerMember]]:
    """The changes of the logs after the last truncation, with the LSN ranges that count.

    Changes that compiled code has folded are not yielded.
    """
    truncation = state.truncation
    continuity = ContinuityCheck(state.start, lambda: bool(damage.skipped)) if checks_rows else None
    block_filter = (
        None if checks_rows else BlockFilter({state.space.id, *(() if truncation is None else DEFINING)})
    )
    for number, span in enumerate(state.spans):
        low, high = counting(state.start, span.end, state.until)
        if continuity is not None:
            continuity.begin_log(span.file)
        elif truncation is not None and number <= truncation.span:
            if number < truncation.span:
                continue
            span = span._replace(start=truncation.block)
        if truncation is None or number > truncation.span:
            take = partial(folder.apply_buffer, low=low, high=high, continuity=continuity, end=span.end)
            is_usual = partial(_goes_on, continuity, span.end)
            for block, found in span.found(damage, block_filter, partial(_take, take, on_progress), is_usual):
                if continuity is not None and isinstance(found, list):
                    continuity.check(span, block, found)
                yield found, low, high
            continue
        for block, changes in span.changes(damage, block_filter):
            if continuity is not None:
                continuity.check(span, block, changes)
            if (number, block.start) > (truncation.span, truncation.block):
                yield changes, low, high
            elif (number, block.start) == (truncation.span, truncation.block):
                yield changes[_behind(truncation, changes) :], low, high
    if continuity is not None and state.spans and (end := state.spans[-1].end) is not None:
        continuity.check_reached(end, state.spans[-1].file.uri)


def _take(take: Callable[[Buffer], bool], on_progress: Callable[[], None], buffer: Buffer) -> bool:
    is_taken = take(buffer)
    on_progress()
    return is_taken


def _goes_on(continuity: ContinuityCheck | None, end: VClock | None, rows: LogRows) -> bool:
    return continuity is None or continuity.accepts(rows, end)


def _behind(truncation: Truncation, changes: list[Change]) -> int:
    """The index of the first change after the truncation."""
    place = (truncation.member, truncation.lsn)
    return next(
        (number for number, (_, lsn, member, *_) in enumerate(changes, 1) if (member, lsn) == place), 0
    )
