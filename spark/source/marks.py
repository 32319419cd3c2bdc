"""What blocks with rows of some spaces have in them: to look for it is cheaper than to decode the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

Mark = re.Pattern[bytes]

_WIDTHS: Final = ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8))


def mark_of(spaces: Iterable[int]) -> Mark:
    """The mark of the rows of spaces: all ways to write `space_id: 280` and so on.

    Args:
        spaces: Their numbers, at least one.

    Returns:
        The mark: `search` finds it in every block that has rows of one of the spaces.
    """
    forms = [
        bytes((head,)) + space.to_bytes(size, "big")
        for space in spaces
        for head, size in _WIDTHS
        if space < 1 << 8 * size
    ]
    forms += [bytes((space,)) for space in spaces if space < 0x80]
    return re.compile(b"\x10(?:" + b"|".join(map(re.escape, forms)) + b")", re.DOTALL)
