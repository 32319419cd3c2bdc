"""The clocks at which spaces were dropped whose ids are in use again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from iproto_server.storage.vclock import VClock
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.row_scanner import read_rows
from pyspark_tarantool.source.io.byte_ranges import group_blocks, read_blocks, whole_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.schema.incarnations import Drop, Incarnation


def incarnations_of(
    drops: Iterable[Drop], logs: Sequence[DataFile], damage: DamageHandler
) -> tuple[Incarnation, ...]:
    """Find the rows of dropped spaces.

    Each log with such a drop is read up to the last one.

    Parameters:
        drops: The rows that dropped them, in the order of the logs.
        logs: All logs, oldest first.
        damage: Handles damage.

    Raises:
        XlogError: At damage that is not to be skipped.
        OSError: If a file cannot be read.
    """
    by_log: dict[int, list[Drop]] = {}
    for drop in drops:
        place = max(
            (number for number, log in enumerate(logs) if log.header.vclock.get(drop.member, 0) < drop.lsn),
            default=0,
        )
        by_log.setdefault(place, []).append(drop)
    return tuple(
        Incarnation(drop.space_id, drop.name, drop.shape, dict(clock))
        for place, dropped in by_log.items()
        for drop, clock in zip(dropped, _clocks_at(dropped, logs[place], damage), strict=True)
    )


def _clocks_at(drops: Sequence[Drop], log: DataFile, damage: DamageHandler) -> list[VClock]:
    """The clocks at the rows of a log that dropped spaces."""
    clock, found = log.header.vclock.copy(), dict[int, VClock]()
    blocks = read_blocks(whole_file(log), damage)
    for some in group_blocks(blocks):
        for rows in read_rows(some, log.uri, damage):
            begin = 0
            for place, drop in enumerate(drops):
                at = np.flatnonzero((rows.replica_id == drop.member) & (rows.lsn == drop.lsn))
                if at.size and place not in found:
                    end = int(at[0]) + 1
                    _advance(clock, rows, begin, end)
                    begin, found[place] = end, clock.copy()
            _advance(clock, rows, begin, len(rows))
        if len(found) == len(drops):
            break
    # A drop in a place that cannot be read has the clock of the end.
    return [found.get(place, clock) for place in range(len(drops))]


def _advance(clock: VClock, rows: LogRows, begin: int, end: int) -> None:
    members, lsns = rows.replica_id[begin:end], rows.lsn[begin:end]
    for member in np.unique(members).tolist():
        clock[member] = max(clock.get(member, 0), int(lsns[members == member].max()))
