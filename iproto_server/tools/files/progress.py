"""The progress of a command, as a line on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TextIO

INTERVAL: Final = 0.2
"""Seconds between two numbers, at least."""


class RowProgress:
    """One line on a terminal that changes; nothing where there is no terminal.

    Parameters:
        stream: where the line goes.
        clock: the time, in seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream.isatty() else None
        self._clock = clock
        self._due = clock()
        self._shown = False

    def show(self, rows: int) -> None:
        """Show the number, unless another was shown just now."""
        now = self._clock()
        if self._stream is not None and now >= self._due:
            self._due = now + INTERVAL
            self._write(f"\r{rows} rows")

    def end(self, rows: int | None = None) -> None:
        """End the line.

        Parameters:
            rows: the last number; None if the work was given up.
        """
        if rows is not None:
            self._write(f"\r{rows} rows")
        if self._shown:
            self._write("\n")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()
            self._shown = True
