"""The tutorial's queue: a space with id, status, runat, data.

A task's id is the time of its put, in nanoseconds since 1970 (or one more than the last id). `runat` is the
time when a waiting task will be ready, in seconds since 1970, and 0 for all others. There is no time to run.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pyspark_tarantool.queues.dialect import DATA, DUE, ID, STATUS, Dialect, QueueSpace, field_names
from pyspark_tarantool.queues.queue_kind import DELAYED, READY, TAKEN
from pyspark_tarantool.queues.stored_queue import StoredQueue
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import Definitions

_SPACE: Final = "queue"
_MEANINGS: Final = (ID, STATUS, DUE, DATA)
_FIELDS: Final = ("id", "status", "runat")


class TutorialQueue(StoredQueue):
    """The tutorial's queue, whose space is `queue`, or the one that the option `space` names."""

    name: ClassVar[str] = "tutorial"
    dialect: ClassVar[Dialect] = Dialect(
        statuses={"R": READY, "T": TAKEN, "W": DELAYED}, units=1, id_is_creation=True, release_sets_due=True
    )

    def spaces(self, definitions: Definitions, wanted: str | int | None) -> list[QueueSpace]:
        """Find the space.

        Raises:
            SourceError: If it does not exist, or is not of this queue.
        """
        space = definitions.space(_SPACE if wanted is None else wanted)
        if field_names(space)[: len(_FIELDS)] != _FIELDS:
            raise SourceError(
                f"the space {space.name!r} is not the tutorial's queue: its fields are not id, status, runat"
            )
        return [QueueSpace.of(space, _MEANINGS)]
