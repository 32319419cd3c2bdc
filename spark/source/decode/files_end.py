"""The end of the files: positions behind it are in the future, and there is no answer about them yet."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from iproto_server.storage.errors import XlogError
from iproto_server.storage.vclock import VClock
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.row_scanner import read_rows
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.byte_ranges import group_blocks, read_blocks, whole_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.options import OnDamaged

_TAIL: Final = 256 * 1024
"""The size of the newest log's end that is read first."""


class _Unlogged(DamageHandler):
    """Skips damage, which the readers of the rows report."""

    def add(self, error: XlogError, end: int) -> None:
        """Remember a damaged place."""
        self.skipped.append((error, end))


def check_lsn(
    option: str, wanted: Mapping[int, int], snapshots: Sequence[DataFile], logs: Sequence[DataFile]
) -> None:
    """Check that the files reach an LSN.

    Parameters:
        option: The option that names it.
        wanted: The LSN of each member.
        snapshots: All snapshots, oldest first.
        logs: All logs, oldest first. Without files, nothing is checked.

    Raises:
        SourceError: If they end before it.
        OSError: If a file cannot be read.
    """
    reached = VClock()
    for file in (*snapshots[-1:], *logs):
        _merge(reached, file.header.vclock)
    if not (snapshots or logs) or reached.covers(VClock(wanted)):
        return
    damage = _Unlogged(OnDamaged.SKIP)
    for rows in _newest_rows(logs, damage):
        for member in rows.members():
            _merge(reached, {member: int(rows.lsn[rows.replica_id == member].max())})
        if reached.covers(VClock(wanted)):
            return
    if not damage.skipped:
        shown = ", ".join(f"{member}: {lsn}" for member, lsn in sorted(wanted.items()))
        raise SourceError(
            f'the option "{option}" is in the future: the files end with {reached}, before {{{shown}}}'
        )


def check_time(option: str, moment: float, logs: Sequence[DataFile]) -> None:
    """Check that a time has come, by the clock of this machine or by that of the server.

    Parameters:
        option: The option that names it.
        moment: In seconds since 1970.
        logs: All logs, oldest first.

    Raises:
        SourceError: If it is in the future.
        OSError: If a file cannot be read.
    """
    if moment <= time.time():
        return
    damage = _Unlogged(OnDamaged.SKIP)
    if any(bool((rows.timestamp >= moment).any()) for rows in _newest_rows(logs, damage)):
        return
    shown = datetime.fromtimestamp(moment, UTC).isoformat() if moment < 2**37 else f"{moment:.0f}"
    raise SourceError(f'the option "{option}" is {shown}, in the future: choose a time that has passed')


def _newest_rows(logs: Sequence[DataFile], damage: DamageHandler) -> Iterator[LogRows]:
    """The rows of the newest log: first those at its end, then all."""
    for log in logs[-1:]:
        whole = whole_file(log)
        starts = [whole.begin]
        if whole.size - whole.begin > _TAIL:
            starts.insert(0, whole.size - _TAIL)
        for start in starts:
            for some in group_blocks(read_blocks(whole._replace(start=start), damage)):
                yield from (rows for rows in read_rows(some, log.uri, damage) if len(rows))


def _merge(reached: VClock, clock: Mapping[int, int]) -> None:
    for member, lsn in clock.items():
        reached[member] = max(reached.get(member, 0), lsn)
