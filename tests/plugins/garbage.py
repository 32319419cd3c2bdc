"""Leaves the collected tests out of Python's garbage collections."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Freeze modules, test functions and parameters.

    A full collection that walked them took half a second, in the middle of some test.
    """
    gc.collect()
    gc.freeze()
