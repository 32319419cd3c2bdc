"""The queue module's tubes: a space for each, and `_queue`, which has their names and types.

The fields of a tube's rows depend on its type; custom types have the fields of the type that they are derived
from, and are recognized by the fields' names. Times are microseconds since 1970, durations microseconds. The
additional spaces of tubes with a ready buffer, which contain the heads of sub-queues, have no tasks.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pyspark_tarantool.queues.dialect import (
    CREATED,
    DATA,
    DUE,
    ID,
    PRIORITY,
    STATUS,
    TTL,
    Dialect,
    QueueSpace,
    field_names,
)
from pyspark_tarantool.queues.stored_queue import StoredQueue
from pyspark_tarantool.queues.times import MICROSECONDS
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from queue_lua_compat.tubes.driver import STATES

_FIFO: Final = ("task_id", "status", "data")
_UTUBE: Final = ("task_id", "status", "utube", "data")
_TIMES: Final = ("task_id", "status", "next_event", "ttl", "ttr", "pri", "created")
_FIFOTTL: Final = (*_TIMES, "data")
_UTUBETTL: Final = (*_TIMES, "utube", "data")
_LAYOUTS: Final = (_FIFOTTL, _UTUBETTL, _FIFO, _UTUBE)
_MEANINGS: Final = {
    "task_id": ID,
    "status": STATUS,
    "next_event": DUE,
    "ttl": TTL,
    "pri": PRIORITY,
    "created": CREATED,
    "data": DATA,
}


class Tubes(StoredQueue):
    """The tubes of a database, or the one that the option `space` names."""

    name: ClassVar[str] = "tubes"
    dialect: ClassVar[Dialect] = Dialect(
        statuses={stored: name for name, stored in STATES.items()}, units=MICROSECONDS
    )

    def spaces(self, definitions: Definitions, wanted: str | int | None) -> list[QueueSpace]:
        """Find the tubes' spaces.

        Raises:
            SourceError: If there is none, or the requested one is not a tube.
        """
        candidates = list(definitions.values()) if wanted is None else [definitions.space(wanted)]
        found = [(space, layout) for space in candidates if (layout := _layout(space)) is not None]
        if not found:
            what = "there are no tubes" if wanted is None else f"the space {wanted!r} is not a tube"
            raise SourceError(f"{what}: tubes have the fields {', '.join(_FIFO)} or more")
        return [QueueSpace.of(space, [_MEANINGS.get(name) for name in layout]) for space, layout in found]


def _layout(space: SpaceDefinition) -> tuple[str, ...] | None:
    names = field_names(space)
    return next((layout for layout in _LAYOUTS if names[: len(layout)] == layout), None)
