"""The final state of each key after replay.

bytes       the row, known as a whole because some change had all of it; this task returns it
OTHER_TASK      such a row that another task returns; the key's hash tells which one
None        there is no row
a list      operations on the row of the snapshot, which the task that reads it there returns
"""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from iproto_server.box.update import Operations
from spark.native import twin
from spark.source.decode.packed import Cells, Offsets

OTHER_TASK: Final = True


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


KeyState = bytes | bool | list[LoggedOperations] | None
"""The state of a key."""


@twin
class KeyStates(dict[bytes, KeyState]):
    """The states of keys, by key, as `spark.source.decode.packed_keys.PackedKeys` packs it.

    The compiled class is no dictionary, but has the methods that are used here. It looks up many keys at a
    time, so that their cache misses overlap: they take most of the time.
    """

    def record_cells(
        self,
        data: bytes,
        key_start: Offsets,
        key_end: Offsets,
        tuple_start: Offsets,
        tuple_end: Offsets,
        is_own: npt.NDArray[np.bool_],
    ) -> bool:
        """Do what `record` does quickly, if that is compiled.

        Parameters:
            data: What keys and tuples are in.
            key_start: Where keys begin.
            key_end: Where they end.
            tuple_start: Where tuples begin; below 0 where there is none.
            tuple_end: Where they end.
            is_own: Which tuples this task returns.

        Returns:
            Whether it was done; False if something is not in the buffer, or nothing is compiled.
        """
        return False

    def find_cells(self, data: bytes, start: Offsets, end: Offsets) -> bytes | None:
        """Tell quickly which keys have a state, if that is compiled.

        Parameters:
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
        """Do quickly what `log_folder.LogFolder.apply_buffer` does with rows of a log, if that is compiled.

        It is done where all rows are plain and of one member, without a gap between them, and those of the
        space are INSERT, REPLACE and DELETE of keys that are cut out; else nothing is.

        Parameters:
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
        return [state for state in self.values() if type(state) is bytes]


def record(states: KeyStates, keys: Cells, tuples: Cells, is_own: npt.NDArray[np.bool_]) -> None:
    """Record the states of keys after INSERT, REPLACE and DELETE.

    Parameters:
        states: The states to change.
        keys: The keys, as they are cut.
        tuples: The tuples; missing where there is none any more.
        is_own: Which of them this task returns.
    """
    start, end = tuples.places
    if states.record_cells(keys.buffer.data, *keys.places, start, end, np.ascontiguousarray(is_own)):
        return
    raws = tuples.where(is_own, tuples.none()).raws()
    there = (tuples.start >= 0).tolist()
    for key, raw, is_there in zip(keys.raws(), raws, there, strict=True):
        states[key or b""] = raw if raw is not None or not is_there else OTHER_TASK
