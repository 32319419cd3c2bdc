"""What a database is found to be when it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from iproto_server.storage.vclock import VClock


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What was found, or made.

    Attributes:
        instance_uuid: Whose database it is.
        cluster_uuid: Of which replica set; None if nothing says so.
        replica_id: The instance's number in `_cluster`.
        vclock: What the database has seen.
        checkpoint: What is in the newest snapshot that could be read.
        previous_vclock: The clock in the header of the log that the next one follows; None if there is none.
        rows: How many rows were read.
        damages: What was left out, in words.
    """

    instance_uuid: UUID
    cluster_uuid: UUID | None
    replica_id: int
    vclock: VClock
    checkpoint: VClock
    previous_vclock: VClock | None
    rows: int
    damages: list[str]
