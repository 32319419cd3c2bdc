"""Cutoffs: decide which transactions of the logs belong to a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Row
from pyspark_tarantool.source.decode.log_span import LogSpan, transactions_of
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, LogPart

LOCAL: Final = 0
"""The member id of rows of local spaces."""


def first_timestamp(file: DataFile, damage: DamageHandler) -> float | None:
    """The timestamp of a file's first row.

    Parameters:
        file: A snapshot or a log.
        damage: Handles damage.

    Returns:
        Seconds since 1970; None without rows.
    """
    for _, rows in LogSpan(file, file.begin, file.size, None).rows(damage):
        return rows[0].timestamp
    return None


class Cutoff(ABC):
    """Decides which transactions of the logs belong to a state.

    For each member, these are the transactions before the first excluded one.

    Parameters:
        damage: Handles damage.
    """

    def __init__(self, damage: DamageHandler) -> None:
        self.damage = damage

    @abstractmethod
    def includes(self, member: int, row: Row) -> bool:
        """Whether a transaction counts.

        Parameters:
            member: The member that wrote it; `LOCAL` if all of its rows are of local spaces.
            row: The member's last row in it.
        """

    @abstractmethod
    def includes_all_before(self, log: DataFile) -> bool:
        """Whether everything before a log counts."""

    @abstractmethod
    def excludes_all_of(self, log: DataFile) -> bool:
        """Whether nothing in a log counts."""

    @abstractmethod
    def is_reached(self, until: VClock, past: Collection[int]) -> bool:
        """Whether none of the following transactions in a log counts.

        Parameters:
            until: The clock of the transactions that count so far.
            past: The members with an excluded transaction.
        """

    @property
    def counts_local(self) -> bool:
        """Whether `includes` decides about transactions of local spaces; else the previous one does."""
        return True


class LsnCutoff(Cutoff):
    """A cutoff at LSNs.

    Parameters:
        target: The LSN of each member.
        damage: Handles damage.
        only: The only writer, for an LSN given as a number; None for a clock.
    """

    def __init__(self, target: VClock, damage: DamageHandler, only: int | None = None) -> None:
        super().__init__(damage)
        self.target = target
        self._only = only

    @property
    def counts_local(self) -> bool:
        """Whether the clock has a number for them."""
        return LOCAL in self.target

    def covers(self, clock: VClock) -> bool:
        """Whether all rows that a clock covers count."""
        if self._only is not None:
            return clock.get(self._only, 0) <= self.target.get(self._only, 0)
        return all(
            lsn <= self.target.get(member, 0)
            for member, lsn in clock.items()
            if member != LOCAL or self.counts_local
        )

    def includes(self, member: int, row: Row) -> bool:
        """Whether a transaction counts.

        Raises:
            SourceError: If the LSN is a number, and another member has written.
        """
        if self._only not in (None, member) and member != LOCAL:
            raise ambiguous([self._only or 0, member])
        return row.lsn <= self.target.get(member, 0)

    def is_reached(self, until: VClock, past: Collection[int]) -> bool:
        """Whether none of the following transactions in a log counts: all LSNs are reached."""
        return bool(past) and all(
            member in past or until.get(member, 0) >= lsn for member, lsn in self.target.items()
        )

    def includes_all_before(self, log: DataFile) -> bool:
        """Whether everything before a log counts."""
        return self.covers(log.header.vclock)

    def excludes_all_of(self, log: DataFile) -> bool:
        """Whether nothing in a log counts."""
        return all(log.header.vclock.get(member, 0) >= lsn for member, lsn in self.target.items())


class TimeCutoff(Cutoff):
    """A cutoff at a time.

    Parameters:
        time: In seconds since 1970.
        damage: Handles damage.
        is_single: Whether there is only one writer, so that timestamps are in order.
    """

    def __init__(self, time: float, damage: DamageHandler, is_single: bool) -> None:
        super().__init__(damage)
        self.time = time
        self._is_single = is_single

    def includes(self, member: int, row: Row) -> bool:
        """Whether a transaction counts."""
        return row.timestamp <= self.time

    def is_reached(self, until: VClock, past: Collection[int]) -> bool:
        """Never: other members may begin to write."""
        return False

    def includes_all_before(self, log: DataFile) -> bool:
        """Whether everything before a log counts; replication may log earlier rows later."""
        first = first_timestamp(log, self.damage) if self._is_single else None
        return first is not None and first <= self.time

    def excludes_all_of(self, log: DataFile) -> bool:
        """Whether nothing in a log counts."""
        first = first_timestamp(log, self.damage) if self._is_single else None
        return first is not None and first > self.time


def ambiguous(members: Sequence[int], option: str = "lsn") -> SourceError:
    """The error for an LSN given as a number if several members have written."""
    names = " and ".join(map(str, sorted(members)))
    reason = f'the option "{option}" is a number, but the members {names} have written'
    example = ", ".join(f"{member}: …" for member in sorted(members))
    return SourceError(f"{reason}: give a vector clock, {{{example}}}")


def writers(logs: Sequence[DataFile], clock: VClock, damage: DamageHandler) -> list[int]:
    """The members that have written since a clock, by the headers of logs; if none, the first writer.

    Parameters:
        logs: Oldest first.
        clock: The clock.
        damage: Handles damage.

    Returns:
        Their ids, ascending; at least one.

    Raises:
        XlogError: At damage that is not to be skipped.
    """
    found = {
        member
        for log in logs
        for member, lsn in log.header.vclock.items()
        if member != LOCAL and lsn > clock.get(member, 0)
    }
    if not found:
        rows = (row for log in logs[-1:] for row in rows_of_log(log, damage))
        first = next((row.replica_id for row in rows if row.replica_id != LOCAL), None)
        found = {member for member in clock if member != LOCAL} if first is None else {first}
    return sorted(found) or [LOCAL]


def rows_of_log(log: DataFile, damage: DamageHandler) -> Iterator[Row]:
    """The rows of a log's whole transactions.

    Parameters:
        log: The log.
        damage: Handles damage.

    Raises:
        XlogError: At damage that is not to be skipped.
    """
    for _, rows in LogSpan(log, log.begin, log.size, None).rows(damage):
        yield from rows


class LogRange:
    """The range of the logs that belongs to a state.

    Parameters:
        start: The clock of the state's beginning.
        parts: The following logs.
        cutoff: The end of the state.

    Attributes:
        until: The clock of the last transactions that count.
        spans: The parts of the logs with rows that count.

    Raises:
        XlogError: At damage that is not to be skipped.
        SourceError: If the LSN is a number, and several members have written.
    """

    def __init__(self, start: VClock, parts: Sequence[LogPart], cutoff: Cutoff) -> None:
        self._start, self._cutoff = start, cutoff
        self._past: set[int] = set()
        self._writers = {member for part in parts for member in part.file.header.vclock if member != LOCAL}
        self._writers = {
            member
            for member in self._writers
            if any(part.file.header.vclock.get(member, 0) > start.get(member, 0) for part in parts)
        }
        self.until = start.copy()
        self.spans: list[LogSpan] = []
        first = 0
        for number in range(len(parts) - 1, 0, -1):
            if cutoff.includes_all_before(parts[number].file):
                first = number
                break
        if parts:
            self._advance(parts[first].file.header.vclock)
        self.spans += map(LogSpan.whole, parts[:first])
        self._scan(parts[first:])

    def _scan(self, parts: Sequence[LogPart]) -> None:
        waiting: list[LogSpan] = []
        for part in parts:
            span = LogSpan.whole(part)
            stop: int | None = None
            for block, rows in span.rows(self._cutoff.damage):
                for transaction in transactions_of(rows):
                    if self._take(transaction, part.end):
                        stop = block.end
                if self._cutoff.is_reached(self.until, self._past):
                    break
            if self._past and (
                self._writers <= self._past or self._cutoff.is_reached(self.until, self._past)
            ):
                if stop is not None:
                    waiting.append(span._replace(stop=stop, end=None))
                break
            waiting.append(span)
        self.spans += waiting

    def _take(self, transaction: list[Row], end: VClock | None) -> bool:
        """Decide whether a transaction counts."""
        new = [
            row
            for row in transaction
            if row.lsn > self._start.get(row.replica_id, 0)
            and (end is None or row.lsn <= end.get(row.replica_id, 0))
        ]
        if not new:
            return False
        own = [row for row in new if row.replica_id != LOCAL]
        last = own[-1] if own else new[-1]
        member = last.replica_id
        if own:
            self._writers.add(member)
        if member == LOCAL and not self._cutoff.counts_local:
            counts = not self._past
        else:
            counts = member not in self._past and self._cutoff.includes(member, last)
        if not counts:
            self._past.add(member)
            return False
        for row in new:
            self._advance({row.replica_id: row.lsn})
        return True

    def _advance(self, clock: dict[int, int]) -> None:
        for member, lsn in clock.items():
            self.until[member] = max(lsn, self.until.get(member, 0))
