"""The result of opening a database."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from iproto_server.storage.vclock import VClock


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """The identity and position of a database that was recovered or made.

    Attributes:
        instance_uuid: The instance that the database belongs to.
        cluster_uuid: Its replica set; None if the database names none.
        replica_id: The instance's id in `_cluster`.
        vclock: The clock of the last recovered row.
        checkpoint: The clock of the newest readable snapshot.
        previous_vclock: The clock in the header of the log that the next one follows; None if there is none.
        rows: Number of rows read.
        damages: Descriptions of the skipped parts.
    """

    instance_uuid: UUID
    cluster_uuid: UUID | None
    replica_id: int
    vclock: VClock
    checkpoint: VClock
    previous_vclock: VClock | None
    rows: int
    damages: list[str]
