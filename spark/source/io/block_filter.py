"""A filter for blocks of logs: a search for space ids is cheaper than decoding the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pyspark_tarantool.native import twin

_SPACE_ID: Final = b"\x10"
"""The key of the space's id in a row's body."""

_WIDTHS: Final = ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8))


class BlockFilter:
    """Matches blocks that may contain rows of some spaces, by a search for the encodings of their ids.

    Parameters:
        spaces: The spaces' ids, at least one.
    """

    def __init__(self, spaces: Iterable[int]) -> None:
        numbers = sorted(spaces)
        forms = [
            bytes((head,)) + number.to_bytes(size, "big")
            for number in numbers
            for head, size in _WIDTHS
            if number < 1 << 8 * size
        ]
        forms += [bytes((number,)) for number in numbers if number < 0x80]
        self._forms = tuple(forms)
        self._pattern = re.compile(_SPACE_ID + b"(?:" + b"|".join(map(re.escape, forms)) + b")", re.DOTALL)

    def matches(self, payload: bytes) -> bool:
        """Whether a block may contain rows of one of the spaces; blocks that do always match.

        Parameters:
            payload: The block's rows.
        """
        found = quick_search(payload, _SPACE_ID, self._forms)
        return self._pattern.search(payload) is not None if found is None else found


@twin
def quick_search(data: bytes, lead: bytes, forms: tuple[bytes, ...]) -> bool | None:
    """Compiled search for byte strings that follow a certain byte.

    Parameters:
        data: The bytes to search.
        lead: The preceding byte.
        forms: The byte strings, at least one byte each.

    Returns:
        Whether one occurs; None without compiled code.
    """
    return None
