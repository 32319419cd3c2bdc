"""The final state of each key after replay.

bytes       the complete row, from a change that contained it; this task returns it
OTHER_TASK  a complete row that another task returns, selected by the key's hash
None        there is no row
a list      operations on the row of the snapshot; the task that reads that row returns the result
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pyspark_tarantool.native import twin
from pyspark_tarantool.source.decode.packed import Cells, Offsets

OTHER_TASK: Final = True


class LoggedOperations(NamedTuple):
    """An UPDATE or UPSERT.

    Attributes:
        lsn: Its LSN.
        member: The member that wrote it.
        tuple_raw: The tuple of an UPSERT; None for an UPDATE.
        operations_raw: Its packed operations on an existing row.
        index_base: The number of the first field in them.
    """

    lsn: int
    member: int
    tuple_raw: bytes | None
    operations_raw: bytes
    index_base: int


KeyState = bytes | bool | list[LoggedOperations] | None
"""The state of a key. Compiled code appends plain tuples of the attributes of `LoggedOperations`."""


@twin
class KeyStates(dict[bytes, KeyState]):
    """The states of keys, by key, as `pyspark_tarantool.source.decode.packed_keys.PackedKeys` packs it.

    The compiled class is not a dictionary, but has the methods used here. It looks up many keys at a time, so
    that their cache misses, which take most of the time, overlap.
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
        """Compiled version of `record`.

        Parameters:
            data: The buffer with keys and tuples.
            key_start: The start offsets of the keys.
            key_end: Their end offsets.
            tuple_start: The start offsets of the tuples; negative if there is none.
            tuple_end: Their end offsets.
            is_own: Whether this task returns the tuple.

        Returns:
            Whether the states were recorded; False without compiled code, or if an offset is out of range.
        """
        return False

    def find_cells(self, data: bytes, start: Offsets, end: Offsets) -> bytes | None:
        """Compiled lookup of the keys that have a state.

        Parameters:
            data: The buffer with the keys.
            start: Their start offsets.
            end: Their end offsets.

        Returns:
            A byte per key, 1 if it has a state; None without compiled code, or if a key is out of range.
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
        trusts_inserts: bool,
        low: array[int],
        high: array[int],
        clock: array[int] | None,
        most: array[int] | None,
        doubles: int,
        has_more_doubles: bool,
        operate: Callable[[int, int, int, bytes | None, bytes | None, bytes, int], None] | None,
    ) -> tuple[int, int, int] | None:
        """Compiled core of `log_folder.LogFolder.apply_buffer`.

        It requires that all rows are plain, of one member and without gaps, and that those of the space have
        keys that are cut out. Otherwise it changes nothing.

        Parameters:
            data: The buffer with the rows only.
            size: The size of the rows in bytes.
            space_id: The space's id.
            kind: The kind of keys that are cut out (`pyspark_tarantool.source.decode.packed_keys.Cut`).
            task: The number of this task, from 0.
            tasks: The number of tasks.
            has_snapshot: Whether a snapshot may have further rows.
            trusts_inserts: Whether the snapshot has no key whose first change is an INSERT: a deletion drops
                the state of such a key.
            low: By member, the LSN before the first row that counts.
            high: By member, the LSN of the last row that counts.
            clock: By member, the last LSN read, which new ones must follow; None disables this check.
            most: By member, the highest LSN to check; None disables the check.
            doubles: The fields of type `double`: a bit for each of the first 64.
            has_more_doubles: Whether there are more, or some within fields.
            operate: Called with the type, LSN, member, tuple, key, operations and index base of an UPDATE or
                UPSERT that compiled code leaves to Python; None if the rows must have none of these.

        Returns:
            The member, its last LSN if checked, and whether operations wait for rows of the snapshot: 1, plus
            2 if there are UPSERTs; None if the rows were not applied.
        """
        return None

    def rows(self) -> list[bytes]:
        """The complete rows."""
        return [state for state in self.values() if type(state) is bytes]

    def rows_size(self) -> int:
        """The size of the complete rows in bytes."""
        return sum(len(state) for state in self.values() if type(state) is bytes)

    def snapshot_keys(self) -> list[bytes]:
        """The keys that the snapshot may have; `fold` leaves out those whose first change is an INSERT."""
        return list(self)


@twin
def quick_operations(
    row: bytes | None, operations: list[LoggedOperations], doubles: int, has_more_doubles: bool
) -> bytes | None:
    """Compiled application of operations to a row.

    Parameters:
        row: The row; None if there is none.
        operations: The operations, in order.
        doubles: The fields of type `double`: a bit for each of the first 64.
        has_more_doubles: Whether there are more, or some within fields.

    Returns:
        The new row; None if Python has to apply them, or without compiled code.
    """
    return None


def record(states: KeyStates, keys: Cells, tuples: Cells, is_own: npt.NDArray[np.bool_]) -> None:
    """Record the states of keys after INSERT, REPLACE and DELETE.

    Parameters:
        states: The states to change.
        keys: The keys, as cut out.
        tuples: The tuples; missing for deletions.
        is_own: Whether this task returns the tuple.
    """
    start, end = tuples.places
    if states.record_cells(keys.buffer.data, *keys.places, start, end, np.ascontiguousarray(is_own)):
        return
    raws = tuples.where(is_own, tuples.none()).raws()
    there = (tuples.start >= 0).tolist()
    for key, raw, is_there in zip(keys.raws(), raws, there, strict=True):
        states[key or b""] = raw if raw is not None or not is_there else OTHER_TASK
