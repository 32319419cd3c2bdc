"""The spaces of a database, followed through its logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, Row, decode_rows
from spark.source.io.damage import DamageHandler
from spark.source.io.data_files import DataFile
from spark.source.schema.definitions import Definitions, SystemRows, may_define, read_system_rows
from spark.source.stream.offset import Offset


class LiveSchema:
    """What the spaces are at a position of the logs.

    Parameters:
        system: The rows that define them there.
        vclock: The position.

    Attributes:
        vclock: How far rows have been seen.
    """

    def __init__(self, system: SystemRows, vclock: VClock) -> None:
        self.vclock = vclock
        self._system = system
        self._recent = dict(system.definitions())
        self._has_changed = False

    @classmethod
    def at(
        cls, position: Offset, snapshots: Sequence[DataFile], logs: Sequence[DataFile], damage: DamageHandler
    ) -> LiveSchema:
        """Read what the spaces are at a position.

        Where no snapshot is as old as the position, the oldest one tells what the spaces are; it has them as
        they will be a little later.

        Parameters:
            position: The position.
            snapshots: Those there are, oldest first.
            logs: Those there are, oldest first.
            damage: What is done about places that cannot be read.

        Raises:
            XlogError: At damage that is not to be skipped.
            OSError: If a file cannot be read.
        """
        clock = position.vclock
        older = [file for file in snapshots if clock.covers(file.header.vclock)]
        if snapshots and not older:
            return cls(read_system_rows(snapshots[0], (), damage), clock)
        base = older[-1] if older else None
        between: list[DataFile] = []
        for log in logs:
            if base is not None and base.header.vclock.covers(log.header.vclock):
                between.clear()
            if clock.covers(log.header.vclock) and not clock.same_as(log.header.vclock):
                between.append(log)
        return cls(
            read_system_rows(base, between, damage, lambda row: row.lsn <= clock.get(row.replica_id, 0)),
            clock,
        )

    def begin_batch(self) -> None:
        """A batch begins: spaces that were dropped before have no rows any more."""
        if self._has_changed:
            self._recent = dict(self._system.definitions())
            self._has_changed = False

    def apply_block(self, block: Block, counts: Callable[[Row], bool]) -> None:
        """A block follows.

        Parameters:
            block: The block.
            counts: Whether a row of it counts.

        Raises:
            ValueError: If there are no rows in it.
        """
        if not may_define(block):
            return
        for row in decode_rows(block.payload):
            if counts(row):
                self._system.apply(row)
        self._has_changed = True
        for number, space in self._system.definitions().items():
            # While a space is being dropped, its indexes are the first to go.
            if space.index_rows or number not in self._recent:
                self._recent[number] = space

    def definitions(self) -> Definitions:
        """The spaces as they are now, and those that were dropped since `begin_batch`, as they were."""
        return Definitions(self._recent.values())
