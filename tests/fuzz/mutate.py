"""Mutations of given inputs for tests, always the same ones.

They are not guided by coverage; `make fuzz` has guided ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

_BYTES: Final = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0x81,
    0x90,
    0x91,
    0xA0,
    0xC0,
    0xC1,
    0xC4,
    0xC7,
    0xC9,
    *range(0xCA, 0xE0),
    0xFF,
)
"""Bytes with a special meaning in MessagePack, and other popular ones."""

_CHANGES_MOST: Final = 8


def mutations(inputs: Sequence[bytes], seed: int, most: int) -> Iterator[bytes]:
    """Generate an endless sequence of mutations.

    Parameters:
        inputs: The inputs to mutate.
        seed: The seed; the same one leads to the same inputs.
        most: The maximum number of bytes.

    Yields:
        An input that differs from one of the given inputs in up to eight places.
    """
    random = Random(seed)
    while True:
        data = bytearray(random.choice(inputs))
        for _ in range(random.randint(1, _CHANGES_MOST)):
            _change(data, random, inputs)
        yield bytes(data[:most])


def _change(data: bytearray, random: Random, inputs: Sequence[bytes]) -> None:
    """Make one change in place."""
    start = random.randint(0, len(data))
    end = min(start + random.choice((1, 1, 2, 4, 8, 64)), len(data))
    match random.randrange(6):
        case 0 if start < len(data):
            data[start] ^= 1 << random.randrange(8)
        case 1 if start < len(data):
            data[start] = random.choice(_BYTES)
        case 2:
            data[start:start] = random.randbytes(random.randint(1, 8))
        case 3:
            del data[start:end]
        case 4:
            data[start:start] = data[start:end] * random.randint(1, 3)
        case _:
            other = random.choice(inputs)
            data[start:] = other[random.randint(0, len(other)) :]
