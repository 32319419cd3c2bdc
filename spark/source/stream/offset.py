"""Positions in the logs of a live directory, as Spark keeps them in its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack
from typing import Any, Final, NamedTuple, Self

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Row
from iproto_server.storage.xlog.block import checksum
from spark.source.errors import SourceError

STARTING: Final = "starting"
"""The key of an offset that is no position yet but says where to begin, as the option does."""

SINCE: Final = "since"
"""The key of the position that the first batch begins at, in the offset that it ends with."""


class RowFingerprint(NamedTuple):
    """What a row is known by again.

    Attributes:
        member: Whose row it is; its number is that of the position's clock.
        checksum: Of its time and body.
    """

    member: int
    checksum: int

    @classmethod
    def of(cls, row: Row) -> Self:
        """The mark of a row."""
        return cls(row.replica_id, checksum(pack(">d", row.timestamp) + row.body))


class Offset(NamedTuple):
    """How far logs were read. The clock decides; the rest is there to find the place quickly, and to see
    whether the logs are still those that were read.

    Attributes:
        vclock: The last row of each member that was read.
        file: The name of the log that was read last; empty if that is not known.
        offset: Where in it the next block begins.
        block: Where in it the last block begins.
        last: The last row that was read; None if that is not known.
        instance: The uuid of the instance that wrote the logs; empty if that is not known.
    """

    vclock: VClock
    file: str = ""
    block_end: int = 0
    block_start: int = 0
    last_row: RowFingerprint | None = None
    instance: str = ""

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint has."""
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
        """Read what a checkpoint has.

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
    """Say which rows are between two clocks.

    Parameters:
        before: A clock.
        after: A clock that does not cover it, or is beyond it.

    Returns:
        Such as "rows 11 to 20 of member 1"; empty if there are none.
    """
    return ", ".join(
        f"rows {before.get(member, 0) + 1} to {lsn} of member {member}"
        for member, lsn in sorted(after.items())
        if lsn > before.get(member, 0)
    )


def earlier(one: VClock, other: VClock) -> VClock:
    """What both clocks have seen.

    Parameters:
        one: A clock.
        other: Another one.
    """
    return VClock({member: min(lsn, other[member]) for member, lsn in one.items() if other.get(member)})


def later(one: VClock, other: VClock) -> VClock:
    """What one of two clocks has seen.

    Parameters:
        one: A clock.
        other: Another one.
    """
    return VClock({member: max(one.get(member, 0), other.get(member, 0)) for member in {**one, **other}})
