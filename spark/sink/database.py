"""The database of a snapshot: all rows except those of the loaded space."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final, NamedTuple
from uuid import UUID

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, XlogHeader
from pyspark_tarantool.source.remote.connection import FIRST_WITH_DATETIMES
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

LAST_SYSTEM_SPACE: Final = 511


class Rows(NamedTuple):
    """Rows of a space.

    Attributes:
        space_id: The space.
        group_id: 1 for a local space, else 0.
        tuples: Its packed tuples.
    """

    space_id: int
    group_id: int
    tuples: list[bytes]


class Database(ABC):
    """A database, new or from a template. It can be pickled, and provides the same rows each time.

    Attributes:
        space: The loaded space.
        instance_uuid: The UUID of the instance.
        vclock: The vector clock.
        server_version: The version of its server.
        sequence: The sequence attached to the space; None if there is none.
    """

    space: SpaceDefinition
    instance_uuid: UUID
    vclock: VClock
    server_version: str
    sequence: AttachedSequence | None = None

    @property
    def has_datetimes(self) -> bool:
        """Whether its server supports datetimes and intervals."""
        match = re.match(r"([0-9]+)\.([0-9]+)", self.server_version)
        return match is None or (int(match[1]), int(match[2])) >= FIRST_WITH_DATETIMES

    def header(self) -> XlogHeader:
        """The header of the snapshot."""
        return XlogHeader(FileType.SNAPSHOT, self.instance_uuid, self.vclock, None, self.server_version)

    @abstractmethod
    def rows(self) -> Iterator[Rows]:
        """The rows of all other spaces, system spaces first.

        Raises:
            XlogError: If the template is damaged.
            OSError: If it cannot be read.
        """


class AttachedSequence(NamedTuple):
    """A sequence that numbers the rows of a space: it must continue after the loaded rows.

    Attributes:
        id: Its id.
        field_no: The field that it fills, from 0.
        value: Its last value; None if it is unused.
        step: Its step.
    """

    id: int
    field_no: int
    value: int | None
    step: int
