"""What has become of the rows of keys.

bytes       the row as it is now, known because some change had all of it, and this task gives it out
OTHERS      such a row that another task gives out: the key's hash tells which one
None        there is no row
a list      what to do with the row of the snapshot, which the task gives out that reads it there
"""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from iproto_server.box.update import Operations
from iproto_server.native import twin
from spark.source.decode.packed import Cells, Offsets

OTHERS: Final = True


class LoggedOperations(NamedTuple):
    """An UPDATE or UPSERT.

    Attributes:
        lsn: Its number.
        member: Who made it.
        tuple_raw: Of an UPSERT, the row if there is none yet; None for an UPDATE.
        operations: What it does to the row that there is.
    """

    lsn: int
    member: int
    tuple_raw: bytes | None
    operations: Operations


Fate = bytes | bool | list[LoggedOperations] | None
"""What has become of a key's row."""


@twin
class Fates(dict[bytes, Fate]):
    """The fates of the rows of keys, by key, as `spark.source.decode.packed_keys.PackedKeys` gives it.

    What is compiled is no dictionary, but does of it what is needed here. It looks for many keys at a time,
    so that the memory that is waited for is waited for together: that is what most of the time goes into.
    """

    def note_cells(
        self,
        data: bytes,
        key_start: Offsets,
        key_end: Offsets,
        tuple_start: Offsets,
        tuple_end: Offsets,
        is_own: npt.NDArray[np.bool_],
    ) -> bool:
        """Do what `note` does quickly, if that is compiled.

        Args:
            data: What keys and tuples are in.
            key_start: Where keys begin.
            key_end: Where they end.
            tuple_start: Where tuples begin; below 0 where there is none.
            tuple_end: Where they end.
            is_own: Which tuples this task gives out.

        Returns:
            Whether it was done; False if something is not in the buffer, or nothing is compiled.
        """
        return False

    def find_cells(self, data: bytes, start: Offsets, end: Offsets) -> bytes | None:
        """Tell quickly which keys have fates, if that is compiled.

        Args:
            data: What the keys are in.
            start: Where they begin.
            end: Where they end.

        Returns:
            A byte for each key, 1 if it has; None if one is not in the buffer, or nothing is compiled.
        """
        return None

    def fold(
        self,
        data: bytes,
        size: int,
        space_id: int,
        kind: int,
        task: int,
        tasks: int,
        has_snapshot: bool,
        low: array[int],
        high: array[int],
        clock: array[int] | None,
        most: array[int] | None,
    ) -> tuple[int, int] | None:
        """Do quickly what `log_folder.Folding.follow` does with rows of a log, if that is compiled.

        It is done where all rows are plain and of one member, without a gap between them, and those of the
        space are INSERT, REPLACE and DELETE of keys that are cut out; else nothing is.

        Args:
            data: What the rows are in, and nothing else.
            size: As far as that.
            space_id: The space.
            kind: Which keys are cut out (`spark.source.decode.packed_keys.Cut`).
            task: The number of this task, from 0.
            tasks: How many there are.
            has_snapshot: Whether there are rows that the logs do not tell of.
            low: By member, the LSN that those that count are above.
            high: By member, the LSN that those that count are not above.
            clock: By member, the last LSN that was there before, which new ones must follow; None if that is
                not asked.
            most: By member, the LSN that those that must follow are not above; None if that is not asked.

        Returns:
            The member, and the last LSN that is there now, if that is asked; None if it was not done.
        """
        return None

    def rows(self) -> list[bytes]:
        """The rows that are known as a whole."""
        return [fate for fate in self.values() if type(fate) is bytes]


def note(fates: Fates, keys: Cells, tuples: Cells, is_own: npt.NDArray[np.bool_]) -> None:
    """Note what INSERT, REPLACE and DELETE have made of rows.

    Args:
        fates: Where it is noted.
        keys: The keys, as they are cut.
        tuples: The tuples; missing where there is none any more.
        is_own: Which of them this task gives out.
    """
    start, end = tuples.places
    if fates.note_cells(keys.buffer.data, *keys.places, start, end, np.ascontiguousarray(is_own)):
        return
    raws = tuples.where(is_own, tuples.none()).raws()
    there = (tuples.start >= 0).tolist()
    for key, raw, is_there in zip(keys.raws(), raws, there, strict=True):
        fates[key or b""] = raw if raw is not None or not is_there else OTHERS
