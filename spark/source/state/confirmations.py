"""Synchronous spaces: their changes count only after a quorum of members has confirmed them.

Logs have each change when it is made, and later a CONFIRM of all changes of a member up to an LSN. The newest
changes without one may still be rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iproto_server.codec import msgpack as codec
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Row, RowType
from pyspark_tarantool.source.decode.cutoff import rows_of_log
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

_CONFIRMING: Final = (RowType.CONFIRM, RowType.PROMOTE, RowType.DEMOTE)
_MEMBER, _LSN = 2, 3
"""The keys of their bodies."""


def check_confirmed(
    space: SpaceDefinition, logs: Sequence[DataFile], until: VClock | None, damage: DamageHandler
) -> None:
    """Check that all changes of a synchronous space are confirmed.

    Parameters:
        space: The space.
        logs: The logs with its changes, and those behind, oldest first.
        until: The end of the state; None for all rows.
        damage: Handles damage.

    Raises:
        SourceError: If there is a change that is not; it names the first one.
        XlogError: At damage that is not to be skipped.
        OSError: If a file cannot be read.
    """
    if not space.is_synchronous:
        return
    confirmed = VClock()
    changed: dict[int, list[int]] = {}
    for log in reversed(logs):
        for row in rows_of_log(log, damage):
            if row.type in _CONFIRMING:
                _confirm(confirmed, row)
            elif row.space_id == space.id and (until is None or row.lsn <= until.get(row.replica_id, 0)):
                changed.setdefault(row.replica_id, []).append(row.lsn)
        if confirmed and changed.keys() <= confirmed.keys():
            break
    for member, lsns in sorted(changed.items()):
        pending = [lsn for lsn in lsns if lsn > confirmed.get(member, 0)]
        if pending:
            raise SourceError(
                f"space '{space.name}' is synchronous, and its changes from the LSN {min(pending)} of the "
                f"member {member} on are not confirmed yet: read the state before them with mode=at_lsn"
            )


def _confirm(confirmed: VClock, row: Row) -> None:
    body = codec.unpack(row.body) if row.body else {}
    member, lsn = body.get(_MEMBER, 0), body.get(_LSN, 0)
    confirmed[member] = max(lsn, confirmed.get(member, 0))
