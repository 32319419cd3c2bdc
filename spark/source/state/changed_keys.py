"""A set of changed keys that is sent to tasks and searched for the rows of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyspark_tarantool.source.arrow.cell_arrays import integers
from pyspark_tarantool.source.decode.packed import Cells

Numbers = npt.NDArray[np.int64]

KeyColumns = Mapping[int, bytes]
"""Keys by size in bytes: the first bytes of all keys of that size, then their second bytes, and so on.

Sorted keys of one size often differ in their last bytes only, so that columns compress well.
"""

_HEADS: Final = {2: 0xCC, 3: 0xCD, 5: 0xCE, 9: 0xCF}
"""The first bytes of packed unsigned integers that have more than one byte."""

_FIXED_END: Final = 0x80


def key_columns(keys: Sequence[bytes]) -> dict[int, bytes]:
    """Arrange keys by size and column.

    Parameters:
        keys: The keys, as `pyspark_tarantool.source.decode.packed_keys.PackedKeys` packs them.
    """
    by_size: dict[int, list[bytes]] = {}
    for key in sorted(keys):
        by_size.setdefault(len(key), []).append(key)
    return {
        size: np.frombuffer(b"".join(same), np.uint8).reshape(-1, size).T.tobytes()
        for size, same in by_size.items()
    }


def keys_of(columns: KeyColumns) -> list[bytes]:
    """The keys that `key_columns` has arranged.

    Parameters:
        columns: Its result.
    """
    keys: list[bytes] = []
    for size, column in columns.items():
        data = np.frombuffer(column, np.uint8).reshape(size, -1).T.tobytes()
        keys += (data[start : start + size] for start in range(0, len(data), size))
    return keys


def numbers_of(columns: KeyColumns) -> Numbers | None:
    """The values of keys, sorted.

    Parameters:
        columns: The keys, from `key_columns`.

    Returns:
        The values; None if some are not unsigned integers below 2⁶³.
    """
    found: list[Numbers] = []
    for size, column in columns.items():
        octets = np.frombuffer(column, np.uint8).reshape(size, -1)
        digits = octets if size == 1 else octets[1:]
        is_packed = (octets < _FIXED_END) if size == 1 else octets[0] == _HEADS.get(size)
        if not np.all(is_packed) or (size == 9 and (digits[0] >= 0x80).any()):
            return None
        values = np.zeros(octets.shape[1], np.int64)
        for digit in digits:
            values = values << 8 | digit
        found.append(values)
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)


def find_numbers(numbers: Numbers, keys: Cells) -> npt.NDArray[np.bool_] | None:
    """Whether keys are in a set.

    Parameters:
        numbers: The values of the set, sorted.
        keys: The packed keys.

    Returns:
        One value per key; None if some keys are not integers of 64 bits.
    """
    values = integers(keys, pa.int64())
    if values is None or values.null_count:
        return None
    wanted = values.to_numpy()
    if not numbers.size:
        return np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(numbers, wanted), numbers.size - 1)
    found: npt.NDArray[np.bool_] = numbers[places] == wanted
    return found
