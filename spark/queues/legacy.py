"""The older queue: any number of tubes in each of its spaces.

A row is id, tube, status, next_event, ipri, pri, cid, created, ttl, ttr, cbury, ctaken and the fields of its
data. Times are microseconds since 1970, durations microseconds. `next_event` is the end of the delay of a
delayed task, of the time to run of a taken one, and of the time to live of others.
"""

from __future__ import annotations

from typing import ClassVar

from pyspark_tarantool.queues.dialect import (
    CREATED,
    DATA,
    DUE,
    ID,
    PRIORITY,
    STATUS,
    TTL,
    TUBE,
    Dialect,
    QueueSpace,
    field_names,
)
from pyspark_tarantool.queues.stored_queue import StoredQueue
from pyspark_tarantool.queues.times import MICROSECONDS
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from queue_lua_compat.legacy.task import FORMAT, STATUSES

_NAMES = [field["name"] for field in FORMAT][:-1]
_MEANINGS = {
    "id": ID,
    "tube": TUBE,
    "status": STATUS,
    "next_event": DUE,
    "pri": PRIORITY,
    "created": CREATED,
    "ttl": TTL,
}


class LegacyQueue(StoredQueue):
    """The older queue. Its spaces are those with its fields, or the one that the option `space` names. The
    name of a queue is `SPACE/TUBE`."""

    name: ClassVar[str] = "legacy"
    dialect: ClassVar[Dialect] = Dialect(statuses=STATUSES, units=MICROSECONDS, expires_taken=True)

    def spaces(self, definitions: Definitions, wanted: str | int | None) -> list[QueueSpace]:
        """Find the spaces.

        Raises:
            SourceError: If there is none, or the requested one is not of this queue.
        """
        candidates = list(definitions.values()) if wanted is None else [definitions.space(wanted)]
        found = [space for space in candidates if _fits(space)]
        if not found:
            what = "there is no space" if wanted is None else f"the space {wanted!r} is none"
            raise SourceError(f"{what} of the older queue, with the fields {', '.join(map(str, _NAMES))}")
        meanings = [*(_MEANINGS.get(str(name)) for name in _NAMES), DATA]
        return [QueueSpace.of(space, meanings) for space in found]


def _fits(space: SpaceDefinition) -> bool:
    return list(field_names(space)[: len(_NAMES)]) == _NAMES
