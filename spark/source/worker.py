"""What is done in the processes in which Spark runs tasks."""

from __future__ import annotations

import gc
import sys
from functools import cache
from typing import Final

_WORKERS: Final = "pyspark.daemon"
"""The program that such a process runs."""


def settle() -> None:
    """Leave what is loaded out of the garbage collection, if this is a process of Spark's.

    After each task such a process collects garbage, and looks for it among all that numpy, Arrow and Spark
    have loaded: that takes 30 ms, as long as to read 60,000 rows of a snapshot.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name == _WORKERS:
        _freeze_once()


@cache
def _freeze_once() -> None:
    """Do it once: what is garbage at that time stays for good."""
    gc.freeze()
