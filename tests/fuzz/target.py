"""Fuzz targets: one function for each package that decodes foreign data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple

TARGETS: Final = {
    "frames": "tests.fuzz.wire.frames",
    "frames15": "tests.fuzz.wire.frames15",
    "requests": "tests.fuzz.wire.requests",
    "service": "tests.fuzz.wire.service",
    "service15": "tests.fuzz.wire.service15",
    "values": "tests.fuzz.wire.values",
    "paths": "tests.fuzz.spaces.paths",
    "updates": "tests.fuzz.spaces.updates",
    "rows": "tests.fuzz.files.rows",
    "logs": "tests.fuzz.files.logs",
    "recovery": "tests.fuzz.files.recovery",
    "options": "tests.fuzz.wire.options",
    "messages": "tests.fuzz.wire.messages",
    "keys": "tests.fuzz.spaces.keys",
    "answers": "tests.fuzz.spaces.answers",
    "connections": "tests.fuzz.wire.connections",
    "replay": "tests.fuzz.files.replay",
    "spark_rows": "tests.fuzz.files.spark_rows",
    "lua_values": "tests.fuzz.lua.values",
    "lua_tuples": "tests.fuzz.lua.tuples",
}
"""The modules that have a `TARGET`, by its name."""


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
    loaded: Target = import_module(TARGETS.get(name, f"tests.fuzz.{name}")).TARGET
    return loaded
