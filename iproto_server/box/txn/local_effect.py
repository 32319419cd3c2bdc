"""What a row of a system space has done to something that is not replicated."""

from __future__ import annotations

from collections.abc import Callable


class LocalEffect:
    """Takes back what a row has brought about that concerns this instance alone; so does the row, in the log.

    Parameters:
        undo: takes it back.
    """

    __slots__ = ("_undo",)

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo = undo

    def __call__(self) -> None:
        """Take it back."""
        self._undo()
