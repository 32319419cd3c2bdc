"""Creates the first snapshot of a new database."""

from __future__ import annotations

import time
from pathlib import Path
from uuid import UUID

from iproto_server.box.api.box import Box
from iproto_server.box.catalog.system_space_ids import CLUSTER, SCHEMA
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.storage.recovery.recovery_result import RecoveryResult
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, XlogHeader
from iproto_server.storage.xlog.writer import sync_directory

_ONLY_MEMBER = 1


def bootstrap(
    box: Box, snapshot_directory: Path, *, instance_uuid: UUID, cluster_uuid: UUID, server_version: str
) -> RecoveryResult:
    """Create a database for a new box, the only member of a new replica set.

    Parameters:
        box: A new box, with the initial system spaces.
        snapshot_directory: The directory of the snapshot; made if it is missing.
        instance_uuid: UUID of the new instance.
        cluster_uuid: UUID of the new replica set.
        server_version: The program's version, for the snapshot's header.

    Returns:
        The identity of the new database.

    Raises:
        OSError: A file cannot be written.
    """
    if not snapshot_directory.is_dir():
        snapshot_directory.mkdir(parents=True)
        sync_directory(snapshot_directory.parent)
    spaces = box.catalog.spaces
    box.catalog.load(spaces[SCHEMA], codec.pack(["cluster", str(cluster_uuid)]))
    box.catalog.load(spaces[CLUSTER], codec.pack([_ONLY_MEMBER, str(instance_uuid)]))
    box.uuid, box.cluster_uuid = instance_uuid, cluster_uuid
    vclock = VClock()
    header = XlogHeader(FileType.SNAPSHOT, instance_uuid, vclock, None, server_version)
    with SnapshotWriter(snapshot_directory, header, time.time()) as writer:
        for space_id in sorted(spaces):
            space = spaces[space_id]
            if not isinstance(space, SysviewSpace) and not space.is_temporary:
                writer.write(space_id, space.rows(), group_id=int(space.is_local))
    return RecoveryResult(instance_uuid, cluster_uuid, _ONLY_MEMBER, VClock(), vclock, None, writer.rows, [])
