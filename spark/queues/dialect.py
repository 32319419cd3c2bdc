"""What makes one dialect of queue different from another: spaces, fields, statuses and a few habits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from spark.source.schema.definitions import SpaceDefinition

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
    """The habits of a dialect.

    Attributes:
        statuses: The statuses' names, by what is stored.
        units: How many units of a stored moment are a second.
        id_is_creation: Whether a task's id is the moment at which it was put, in nanoseconds since 1970.
        expires_taken: Whether a taken task is deleted when its time to live is over, before it is given back.
        release_sets_due: Whether a release stores a moment and the loss of a connection does not.
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
        meanings: Which of the fields there are, by what they mean here: `ID`, `STATUS` …
    """

    id: int
    name: str
    names: tuple[str, ...]
    meanings: Mapping[str, int]

    @classmethod
    def of(cls, space: SpaceDefinition, meanings: Sequence[str | None]) -> QueueSpace:
        """Describe a space.

        Parameters:
            space: What is known of it.
            meanings: What its first fields mean, in order; None for what does not matter.
        """
        numbers = {meaning: number for number, meaning in enumerate(meanings) if meaning is not None}
        return cls(space.id, space.name, field_names(space), numbers)


def field_names(space: SpaceDefinition) -> tuple[str, ...]:
    """The names of the fields that a space's format has; a space without indexes has them, too."""
    return tuple(str(row.get("name")) for row in space.format_rows)
