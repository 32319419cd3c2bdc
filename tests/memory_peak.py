"""How much memory something takes while it runs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Peak:
    """The most memory that Python's objects took in a block beside what was there before.

    Attributes:
        size: bytes; known when the block has ended.
    """

    size = 0


@contextmanager
def memory_peak() -> Iterator[Peak]:
    """Measure a block."""
    peak = Peak()
    tracemalloc.start()
    try:
        yield peak
        _, peak.size = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
