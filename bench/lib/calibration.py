"""How fast the machine is just now: the time of a fixed piece of work that has nothing of ours in it.

What else runs on a machine makes everything slower for a while, and other machines are faster or slower
altogether. This work suffers as the pieces do, so a piece's time divided by this one's is what is compared.
"""

from __future__ import annotations

import time
from typing import Final

import msgpack

_STEPS: Final = 8_000
_MESSAGES: Final = 800
_ROW: Final = [1, "ready", 1.5, "x" * 100, {"priority": 3, "tags": ["a", "b"]}]


def measure() -> float:
    """Do the work once.

    Returns:
        How many seconds of CPU it has taken.
    """
    begin = time.process_time()
    work()
    return time.process_time() - begin


def work() -> int:
    """Some of what any Python program does: numbers, dictionaries, byte strings, calls, and a library's C.

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
