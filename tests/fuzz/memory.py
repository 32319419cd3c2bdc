"""The memory use of an input."""

from __future__ import annotations

import tracemalloc
from typing import Final

from tests.fuzz.target import Target

PER_BYTE: Final = 1000


def needs_little(target: Target, data: bytes) -> bool:
    """Whether checking an input uses no more memory than allowed.

    Parameters:
        target: The target.
        data: The input; it is checked twice, because caches are filled by the first time.
    """
    target.check(data)
    tracemalloc.start()
    try:
        target.check(data)
        return tracemalloc.get_traced_memory()[1] < target.memory + PER_BYTE * len(data)
    finally:
        tracemalloc.stop()
