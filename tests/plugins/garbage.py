"""Leaves the collected tests out of Python's garbage collections, but not the garbage that tests leave."""

from __future__ import annotations

import gc
from typing import Final

import pytest

MANY: Final = 300_000
"""New frozen objects after which the garbage among them is collected: tenths of a second of work."""

_frozen = 0


def pytest_collection_finish() -> None:
    """Freeze modules, test functions and parameters.

    A full collection that walked them took half a second, in the middle of some test.
    """
    _collect()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect what servers and recoveries in this process have frozen, after the last test of a file.

    A reload, which does that, took half a minute in a process that had run some thousand tests.
    """
    if (nextitem is None or nextitem.path != item.path) and gc.get_freeze_count() > _frozen + MANY:
        _collect()


def _collect() -> None:
    global _frozen
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    _frozen = gc.get_freeze_count()
