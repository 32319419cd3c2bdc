"""Fuzz targets: one function for each package that decodes foreign data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple

TARGETS: Final = (
    "frames",
    "frames15",
    "requests",
    "service",
    "service15",
    "values",
    "paths",
    "updates",
    "rows",
    "logs",
    "recovery",
    "options",
    "messages",
    "keys",
    "answers",
    "connections",
    "replay",
    "spark_rows",
)
"""The modules of this package that have a `TARGET`."""


class Target(NamedTuple):
    """A fuzz target.

    Attributes:
        check: Feeds bytes to it, and raises anything when it does what it must not.
        seeds: Small inputs that reach much of it, to be mutated.
        cases: Inputs that once revealed a fault, by that fault.
        memory: The bytes that an input may make it allocate, in addition to 1000 times its own size.
    """

    check: Callable[[bytes], object]
    seeds: Sequence[bytes]
    cases: Mapping[str, bytes] = {}
    memory: int = 1 << 20


def target(name: str) -> Target:
    """Load a target by its name."""
    loaded: Target = import_module(f"tests.fuzz.{name}").TARGET
    return loaded
