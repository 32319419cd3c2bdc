"""How much memory an input needs."""

from __future__ import annotations

import tracemalloc
from typing import Final

from tests.fuzz.target import Target

PER_BYTE: Final = 1000


def needs_little(target: Target, data: bytes) -> bool:
    """Whether checking an input needs no more memory than it may.

    Args:
        target: What it is fed to.
        data: The input; it is checked twice, because what is kept for all inputs is there after the first.
    """
    target.check(data)
    tracemalloc.start()
    try:
        target.check(data)
        return tracemalloc.get_traced_memory()[1] < target.memory + PER_BYTE * len(data)
    finally:
        tracemalloc.stop()
