"""The database that a snapshot is of: all of its rows but those of the space that is loaded."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final, NamedTuple
from uuid import UUID

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, XlogHeader
from spark.sink.values import FIRST_WITH_DATETIMES
from spark.source.schema.definitions import SpaceDefinition

LAST_SYSTEM_SPACE: Final = 511


class Rows(NamedTuple):
    """Rows of a space.

    Attributes:
        space_id: The space.
        group_id: 1 if it is not replicated.
        tuples: Its tuples, packed.
    """

    space_id: int
    group_id: int
    tuples: list[bytes]


class Database(ABC):
    """A database, new or of a template. It can be pickled, and has the same rows each time.

    Attributes:
        space: The space that is loaded.
        instance_uuid: Whose database it is.
        vclock: What has happened in it.
        server_version: The program that it is of, in its own words.
        sequence: What gives the space's rows their numbers; None if nothing does.
    """

    space: SpaceDefinition
    instance_uuid: UUID
    vclock: VClock
    server_version: str
    sequence: AttachedSequence | None = None

    @property
    def has_datetimes(self) -> bool:
        """Whether the program that it is of knows datetimes and intervals."""
        match = re.match(r"([0-9]+)\.([0-9]+)", self.server_version)
        return match is None or (int(match[1]), int(match[2])) >= FIRST_WITH_DATETIMES

    def header(self) -> XlogHeader:
        """What the snapshot says of itself."""
        return XlogHeader(FileType.SNAPSHOT, self.instance_uuid, self.vclock, None, self.server_version)

    @abstractmethod
    def rows(self) -> Iterator[Rows]:
        """The rows of all spaces but the one that is loaded, those of the system first.

        Raises:
            XlogError: If the template is damaged.
            OSError: If it cannot be read.
        """


class AttachedSequence(NamedTuple):
    """A sequence that numbers the rows of a space: its value must not be behind what is loaded.

    Attributes:
        id: Its number.
        field_no: The field that it gives a value, from 0.
        value: The last value it has given; None if it has not begun.
        step: How far it goes each time.
    """

    id: int
    field_no: int
    value: int | None
    step: int
