"""A filter for blocks of logs: a search for space ids is cheaper than decoding the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from spark.native import twin

_SPACE_ID: Final = b"\x10"
"""The key of the space's number in a row's body."""

_WIDTHS: Final = ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8))


class BlockFilter:
    """Matches blocks that may have rows of some spaces: it searches for all encodings of `space_id: 280`.

    Parameters:
        spaces: Their numbers, at least one.
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
        """Tell whether a block may have rows of one of the spaces; every block that has them matches.

        Parameters:
            payload: The block's rows.
        """
        found = quick_search(payload, _SPACE_ID, self._forms)
        return self._pattern.search(payload) is not None if found is None else found


@twin
def quick_search(data: bytes, lead: bytes, forms: tuple[bytes, ...]) -> bool | None:
    """Tell quickly whether some byte string is somewhere behind a byte, if that is compiled.

    Parameters:
        data: Where to look.
        lead: The byte.
        forms: What may be behind it, at least one byte each.

    Returns:
        Whether one is there; None if nothing is compiled.
    """
    return None
