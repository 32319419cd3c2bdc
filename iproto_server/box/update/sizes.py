"""How many bytes a packed value takes, where its first byte tells it: a quick way over a few small values."""

from __future__ import annotations

from typing import Final


def _sizes() -> tuple[int, ...]:
    sizes = [0] * 256
    sizes[:0x80] = [1] * 0x80
    sizes[0xA0:0xC0] = range(1, 0x21)
    sizes[0xE0:] = [1] * 0x20
    fixed = {0xC0: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9}
    fixed |= {0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18}
    for first, size in fixed.items():
        sizes[first] = size
    return tuple(sizes)


SIZES: Final = _sizes()
"""By the first byte, the size in bytes; 0 where that byte does not tell."""
