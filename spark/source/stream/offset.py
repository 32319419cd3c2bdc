"""Offsets of a stream: positions in the logs of a live directory, as stored in Spark's checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack
from typing import Any, Final, NamedTuple, Self

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Row
from iproto_server.storage.xlog.block import checksum
from pyspark_tarantool.source.errors import SourceError

STARTING: Final = "starting"
"""The key of an initial offset, whose value is that of the option `starting`."""

SINCE: Final = "since"
"""The key, in the end offset of the first batch, of the position at which that batch begins."""


class RowFingerprint(NamedTuple):
    """Identifies a row that was read before.

    Attributes:
        member: The member that wrote the row; its LSN is in the offset's clock.
        checksum: The checksum of its timestamp and body.
    """

    member: int
    checksum: int

    @classmethod
    def of(cls, row: Row) -> Self:
        """The fingerprint of a row."""
        return cls(row.replica_id, checksum(pack(">d", row.timestamp) + row.body))


class Offset(NamedTuple):
    """A position in the logs. The clock defines it; the other attributes speed up seeking, and detect logs
    that differ from those read before.

    Attributes:
        vclock: The LSN of the last row read of each member.
        file: The name of the log read last; empty if unknown.
        block_end: The offset in it after the last block read.
        block_start: The offset in it of the last block read.
        last_row: The last row read; None if unknown.
        instance: The UUID of the instance that wrote the logs; empty if unknown.
    """

    vclock: VClock
    file: str = ""
    block_end: int = 0
    block_start: int = 0
    last_row: RowFingerprint | None = None
    instance: str = ""

    def to_json(self) -> dict[str, Any]:
        """The JSON object for a checkpoint."""
        checkpoint: dict[str, Any] = {
            "vclock": {str(member): self.vclock[member] for member in sorted(self.vclock)},
            "file": self.file,
            "offset": self.block_end,
            "block": self.block_start,
            "instance": self.instance,
        }
        if self.last_row is not None:
            checkpoint["last"] = self.last_row._asdict()
        return checkpoint

    @classmethod
    def from_json(cls, checkpoint: Mapping[str, Any]) -> Self:
        """Parse the JSON object of a checkpoint.

        Parameters:
            checkpoint: What `to_json` has made. All but the clock may be missing, or be wrong.

        Raises:
            SourceError: If it has no clock.
        """
        try:
            clock = VClock.parse(
                str(VClock({int(member): lsn for member, lsn in checkpoint["vclock"].items()}))
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise SourceError(
                f"the checkpoint of the query is not one of this source: {checkpoint!r}"
            ) from None
        last = checkpoint.get("last")
        try:
            fingerprint = None if last is None else RowFingerprint(int(last["member"]), int(last["checksum"]))
            block_end, block_start = int(checkpoint.get("offset", 0)), int(checkpoint.get("block", 0))
        except (KeyError, TypeError, ValueError):
            return cls(clock)
        return cls(
            clock,
            str(checkpoint.get("file", "")),
            block_end,
            block_start,
            fingerprint,
            str(checkpoint.get("instance", "")).lower(),
        )


def rows_between(before: VClock, after: VClock) -> str:
    """Describe the rows between two clocks.

    Parameters:
        before: A clock.
        after: A clock that is not covered by `before`.

    Returns:
        Such as "rows 11 to 20 of member 1"; empty if there are none.
    """
    return ", ".join(
        f"rows {before.get(member, 0) + 1} to {lsn} of member {member}"
        for member, lsn in sorted(after.items())
        if lsn > before.get(member, 0)
    )


def earlier(one: VClock, other: VClock) -> VClock:
    """The rows that both clocks cover: their minimum.

    Parameters:
        one: A clock.
        other: Another one.
    """
    return VClock({member: min(lsn, other[member]) for member, lsn in one.items() if other.get(member)})


def later(one: VClock, other: VClock) -> VClock:
    """The rows that either clock covers: their maximum.

    Parameters:
        one: A clock.
        other: Another one.
    """
    return VClock({member: max(one.get(member, 0), other.get(member, 0)) for member in {**one, **other}})
