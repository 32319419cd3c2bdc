"""Undo functions of effects that are not replicated."""

from __future__ import annotations

from collections.abc import Callable


class LocalUndo:
    """An undo function of a system row whose effect is local to this instance; the log marks the row so.

    Parameters:
        undo: reverts the effect.
    """

    __slots__ = ("_undo",)

    is_local = True

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo = undo

    def __call__(self) -> None:
        """Revert the effect."""
        self._undo()
