"""The differences between the kinds of queues: spaces, fields, statuses and behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from pyspark_tarantool.source.schema.space_rows import format_rows

ID: Final = "id"
STATUS: Final = "status"
DUE: Final = "due"
PRIORITY: Final = "priority"
CREATED: Final = "created"
TTL: Final = "ttl"
TUBE: Final = "tube"
DATA: Final = "data"


@dataclass(frozen=True)
class Dialect:
    """The properties of a kind of queue.

    Attributes:
        statuses: The names of statuses, by their stored values.
        units: The number of units per second in stored times.
        id_is_creation: Whether a task's id is the time of its put, in nanoseconds since 1970.
        expires_taken: Whether a taken task is deleted when its time to live is over.
        release_sets_due: Whether a release stores a due time, while a lost connection does not.
    """

    statuses: Mapping[str, str]
    units: int
    id_is_creation: bool = False
    expires_taken: bool = False
    release_sets_due: bool = False


class QueueSpace(NamedTuple):
    """A space with tasks.

    Attributes:
        id: Its number.
        name: Its name.
        names: The names of its fields.
        meanings: The indexes of fields by their meaning: `ID`, `STATUS` …
    """

    id: int
    name: str
    names: tuple[str, ...]
    meanings: Mapping[str, int]

    @classmethod
    def of(cls, space: SpaceDefinition, meanings: Sequence[str | None]) -> QueueSpace:
        """Describe a space.

        Parameters:
            space: Its definition.
            meanings: The meanings of its first fields, in order; None for irrelevant ones.
        """
        numbers = {meaning: number for number, meaning in enumerate(meanings) if meaning is not None}
        return cls(space.id, space.name, field_names(space), numbers)


def field_names(space: SpaceDefinition) -> tuple[str, ...]:
    """The names of the fields in a space's format; indexes are not required."""
    return tuple(str(row.get("name")) for row in format_rows(space.id, space.format_rows))
