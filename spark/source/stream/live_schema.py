"""The space definitions of a database, updated from its logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, Row, decode_rows
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.schema.definitions import Definitions
from pyspark_tarantool.source.schema.system_rows import SystemRows, may_define, read_system_rows
from pyspark_tarantool.source.stream.offset import Offset


class LiveSchema:
    """The space definitions at a position in the logs.

    Parameters:
        system: The rows that define the spaces at that position.
        vclock: The position.

    Attributes:
        vclock: The position reached.
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
        """Read the definitions at a position.

        If no snapshot is old enough, the oldest one is used, with its slightly later definitions.

        Parameters:
            position: The position.
            snapshots: All snapshots, oldest first.
            logs: All logs, oldest first.
            damage: Handles damage.

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
        """Begin a batch: forget spaces that were dropped before."""
        if self._has_changed:
            self._recent = dict(self._system.definitions())
            self._has_changed = False

    def apply_block(self, block: Block, counts: Callable[[Row], bool]) -> None:
        """Apply the next block.

        Parameters:
            block: The block.
            counts: Whether to apply a row.

        Raises:
            ValueError: If it does not contain rows.
        """
        if not may_define(block):
            return
        for row in decode_rows(block.payload):
            if counts(row):
                self._system.apply(row)
        self._has_changed = True
        for number, space in self._system.definitions().items():
            # Dropping a space deletes its indexes first.
            if space.index_rows or number not in self._recent:
                self._recent[number] = space

    def definitions(self) -> Definitions:
        """The current definitions, and the last ones of spaces dropped since `begin_batch`."""
        return Definitions(self._recent.values())
