"""Progress of a recovery: a bar on a terminal, otherwise a log line every few seconds."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TextIO

import click

logger = logging.getLogger("iproto_server.recovery")

LOG_EVERY: Final = 5.0
"""Seconds between two log lines."""

_STEP: Final = 100_000
_CLEAR_LINE: Final = "\r\x1b[K"
_SHOW_CURSOR: Final = "\x1b[?25h"


class Progress(Protocol):
    """Receives the progress of a recovery."""

    def begin(self, size: int) -> None:
        """Begin; `size` is the number of bytes to read."""

    def update(self, rows: int, position: int) -> None:
        """Report the rows and bytes read so far; called for every block."""

    def end(self) -> None:
        """End, after success or failure."""


class LoggedProgress:
    """Logs the progress every few seconds; a shorter recovery logs nothing.

    Parameters:
        clock: Steady time in seconds.
        every: Seconds between two lines.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, every: float = LOG_EVERY) -> None:
        self._clock = clock
        self._every = every
        self._size = 0
        self._due = 0.0

    def begin(self, size: int) -> None:
        """Begin."""
        self._size = size
        self._due = self._clock() + self._every

    def update(self, rows: int, position: int) -> None:
        """Report the rows and bytes read so far."""
        if self._clock() >= self._due:
            self._due = self._clock() + self._every
            share = position / self._size if self._size else 1
            logger.info("recovering: %s rows, %.0f %%", f"{rows:,}", share * 100)

    def end(self) -> None:
        """End."""


class ProgressBar:
    """Shows the progress as a bar on a terminal; log lines appear above it, and it vanishes at the end.

    Parameters:
        terminal: The terminal.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._drawn_rows = 0
        self._drawn_position = 0
        self._handlers: list[logging.Handler] = []

    def begin(self, size: int) -> None:
        """Begin."""
        self._drawn_rows = self._drawn_position = 0
        self._bar: Any = click.progressbar(
            length=size,
            label="recovering",
            file=self._terminal,
            item_show_func=_shown,
        )
        self._bar.render_progress()
        self._handlers = logging.getLogger().handlers[:]
        for handler in self._handlers:
            handler.addFilter(self._clear_line)

    def update(self, rows: int, position: int) -> None:
        """Report the rows and bytes read so far."""
        if rows >= self._drawn_rows + _STEP:
            self._bar.update(position - self._drawn_position, rows)
            self._drawn_rows, self._drawn_position = rows, position

    def end(self) -> None:
        """End."""
        for handler in self._handlers:
            handler.removeFilter(self._clear_line)
        self._write(_CLEAR_LINE + _SHOW_CURSOR)

    def _clear_line(self, record: logging.LogRecord) -> bool:
        """Clear the bar for a log line; the next update draws it below."""
        self._write(_CLEAR_LINE)
        return True

    def _write(self, text: str) -> None:
        self._terminal.write(text)
        self._terminal.flush()


class ProgressOfAll:
    """Passes the progress on to several receivers.

    Parameters:
        receivers: The receivers.
    """

    def __init__(self, *receivers: Progress) -> None:
        self._receivers = receivers

    def begin(self, size: int) -> None:
        """Begin."""
        for receiver in self._receivers:
            receiver.begin(size)

    def update(self, rows: int, position: int) -> None:
        """Report the rows and bytes read so far."""
        for receiver in self._receivers:
            receiver.update(rows, position)

    def end(self) -> None:
        """End."""
        for receiver in self._receivers:
            receiver.end()


def _shown(rows: int | None) -> str | None:
    return None if rows is None else f"{rows:,} rows"


def progress_on(stream: TextIO | None = None) -> Progress:
    """Return a progress bar for a terminal, otherwise progress in the log.

    Parameters:
        stream: The possible terminal; None: stderr.
    """
    stream = stream or sys.stderr
    return ProgressBar(stream) if stream.isatty() else LoggedProgress()
