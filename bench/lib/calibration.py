"""The current speed of the machine: the time of a fixed workload without any of the server's code.

Other processes slow a machine down for a while, and machines differ in speed. That affects this workload as
it affects the microbenchmarks, so times are compared after dividing them by the workload's.
"""

from __future__ import annotations

import time
from typing import Final

import msgpack

_STEPS: Final = 8_000
_MESSAGES: Final = 800
_ROW: Final = [1, "ready", 1.5, "x" * 100, {"priority": 3, "tags": ["a", "b"]}]


def measure() -> float:
    """Run the workload once.

    Returns:
        The CPU time in seconds.
    """
    begin = time.process_time()
    work()
    return time.process_time() - begin


def work() -> int:
    """Run typical Python operations: numbers, dictionaries, byte strings, calls, and a C extension.

    Returns:
        A number that is always the same.
    """
    found: dict[bytes, int] = {}
    for step in range(_STEPS):
        key = (step * 7919 % _STEPS).to_bytes(4, "big")
        found[key] = _smaller(found.get(key[:3] + b"\0", 0), step)
    total = sum(found.values())
    for _ in range(_MESSAGES):
        total += len(msgpack.unpackb(msgpack.packb(_ROW)))
    return total


def _smaller(one: int, other: int) -> int:
    return one if one < other else other
