"""Counts the work between two turns of the event loop: the calls of functions that it makes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


class Meter:
    """Counts calls of Python and C functions, between `begin` and `end`."""

    def __init__(self) -> None:
        self._is_on = False
        self._slices: list[int] = []
        self._count = 0

    def begin(self) -> None:
        """Begin to count."""
        self._is_on = True
        self._slices = []

    def end(self) -> list[int]:
        """Stop counting, and return the number of calls in each function that was run."""
        self._is_on = False
        return self._slices

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function, and count the calls within."""
        if not self._is_on:
            return function(*arguments)
        self._count = 0
        before = sys.getprofile()
        sys.setprofile(self._profile)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(before)
            self._slices.append(self._count)

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self._count += 1
