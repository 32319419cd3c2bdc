"""The range of changes between two LSNs or two times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Self

from iproto_server.storage.vclock import VClock
from pyspark_tarantool.source.decode.cutoff import (
    LOCAL,
    LogRange,
    TimeCutoff,
    ambiguous,
    first_timestamp,
    writers,
)
from pyspark_tarantool.source.decode.files_end import check_lsn, check_time
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, LogPart, parts_of
from pyspark_tarantool.source.options import LsnBound, ReadOptions


class ChangesRange(NamedTuple):
    """The changes that a query wants. It can be pickled.

    Attributes:
        after: Rows up to this clock come before the first change; None for no limit.
        until: Rows after this clock come after the last change; None for no limit.
        only: The only member that may have written, if an LSN was given as a number; None for any.
        option: The option with that number.
    """

    after: VClock | None = None
    until: VClock | None = None
    only: int | None = None
    option: str = ""

    @classmethod
    def find(cls, options: ReadOptions, logs: Sequence[DataFile], damage: DamageHandler) -> Self:
        """Find the range that options describe.

        Parameters:
            options: Of the query.
            logs: All logs, oldest first.
            damage: Handles damage.

        Raises:
            SourceError: If an LSN is a number and several members have written, if changes of the start
                are gone, or if the start or the end is in the future.
            LogGapError: If a log is missing between others.
            XlogError: At damage that is not to be skipped.
        """
        check_range(options, logs, damage)
        after = until = only = None
        option = ""
        if options.starting_lsn is not None:
            after = clock_before(options.starting_lsn, logs, damage)
        elif options.starting_time is not None:
            after = clock_at(options.starting_time, logs, damage)
        if isinstance(options.ending_lsn, int):
            until = VClock({_only_writer("ending_lsn", logs, damage): options.ending_lsn})
        elif options.ending_lsn is not None:
            until = options.ending_lsn
        elif options.ending_time is not None and logs:
            until = _reached(options.ending_time, logs, damage)
        for name in ("starting_lsn", "ending_lsn"):
            if isinstance(getattr(options, name), int):
                only, option = _only_writer(name, logs, damage), name
        return cls(after, until, only, option)

    def may_match(self, log: LogPart) -> bool:
        """Whether a log may contain wanted rows, according to the clocks."""
        return not (
            (self.after is not None and log.end is not None and self.after.covers(log.end))
            or (self.until is not None and log.file.header.vclock.covers(self.until))
        )

    def limits(self, member: int, rows: LogRows) -> tuple[int, int | None]:
        """The wanted rows of a member: those with `low < lsn <= high`.

        Parameters:
            member: The member that has written some of the rows.
            rows: The rows, to which no other range applies.

        Returns:
            `low` and `high`; no `high` for no limit.

        Raises:
            SourceError: If an LSN was given as a number, and this is another member.
        """
        if self.only is not None and member not in (self.only, LOCAL) and len(rows):
            raise ambiguous([self.only, member], self.option)
        low = 0 if self.after is None else self.after.get(member, 0)
        if self.until is None or (member == LOCAL and member not in self.until):
            return low, None
        return low, self.until.get(member, 0)


def check_range(options: ReadOptions, logs: Sequence[DataFile], damage: DamageHandler) -> None:
    """Check that the start and the end of a range are not in the future.

    A start may be the next LSN: nothing has been logged since, then.

    Parameters:
        options: Of the query.
        logs: All logs, oldest first.
        damage: Handles damage.

    Raises:
        SourceError: If one is.
        XlogError: At damage that is not to be skipped.
    """
    for name, ahead in (("starting_lsn", 1), ("ending_lsn", 0)):
        wanted: LsnBound | None = getattr(options, name)
        if isinstance(wanted, int):
            wanted = VClock({_only_writer(name, logs, damage): wanted})
        if wanted is not None:
            check_lsn(name, {member: max(lsn - ahead, 0) for member, lsn in wanted.items()}, (), logs)
    for name in ("starting_time", "ending_time"):
        moment: float | None = getattr(options, name)
        if moment is not None:
            check_time(name, moment, logs)


def clock_before(lsn: LsnBound, logs: Sequence[DataFile], damage: DamageHandler) -> VClock:
    """The clock after which the rows from an LSN on begin.

    Parameters:
        lsn: The first LSN of the only writer, or of each member.
        logs: All logs, oldest first.
        damage: Handles damage.

    Raises:
        SourceError: If it is a number, and several members have written.
        XlogError: At damage that is not to be skipped.
    """
    if isinstance(lsn, VClock):
        return VClock({member: first - 1 for member, first in lsn.items() if first > 1})
    clock = logs[0].header.vclock.copy() if logs else VClock()
    clock[_only_writer("starting_lsn", logs, damage)] = max(lsn - 1, 0)
    return VClock({member: last for member, last in clock.items() if last})


def clock_at(time: float, logs: Sequence[DataFile], damage: DamageHandler) -> VClock:
    """The clock after which the changes from a time on begin.

    Each member's changes begin with its first transaction at that time or later, so that a clock that was set
    back hides nothing.

    Parameters:
        time: In seconds since 1970.
        logs: All logs, oldest first.
        damage: Handles damage.

    Returns:
        The clock; that of the newest row if all rows are older.

    Raises:
        SourceError: If the logs begin after that time, and not with the first row.
        LogGapError: If a log is missing between others.
        XlogError: At damage that is not to be skipped.
    """
    if not logs:
        return VClock()
    first = logs[0]
    before = math.nextafter(time, -math.inf)
    reached = _reached(before, logs, damage)
    stamp = first_timestamp(first, damage)
    is_first = not any(first.header.vclock.values())
    if not is_first and reached.same_as(first.header.vclock) and (stamp is None or stamp > time):
        since = "" if stamp is None else f", at {_text(stamp)}"
        raise SourceError(
            f"{first.uri}: the changes since {_text(time)} are not all there: the oldest log begins with "
            f"{first.header.vclock}{since}"
        )
    return reached


def _reached(time: float, logs: Sequence[DataFile], damage: DamageHandler) -> VClock:
    """The clock of the changes up to a time."""
    start = logs[0].header.vclock
    is_single = len(writers(logs, start, damage)) <= 1
    return LogRange(start, parts_of(logs), TimeCutoff(time, damage, is_single)).until


def _only_writer(option: str, logs: Sequence[DataFile], damage: DamageHandler) -> int:
    members = writers(logs, logs[0].header.vclock if logs else VClock(), damage)
    if len(members) > 1:
        raise ambiguous(members, option)
    return members[0]


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
