"""How far recovery has come: a bar on a terminal, else a line in the log now and then."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TextIO

import click

logger = logging.getLogger("iproto_server.recovery")

LOG_EVERY: Final = 5.0
_STEP: Final = 100_000
_CLEAR_LINE: Final = "\r\x1b[K"
_SHOW_CURSOR: Final = "\x1b[?25h"


class Progress(Protocol):
    """Is told how far recovery is."""

    def begin(self, size: int) -> None:
        """It begins; there are so many bytes to read."""

    def update(self, rows: int, position: int) -> None:
        """So many rows and so many bytes have been read. Called for every block."""

    def end(self) -> None:
        """It has ended, well or not."""


class LoggedProgress:
    """Progress in the log, every few seconds: what is done sooner is not mentioned.

    Args:
        clock: The time, in seconds.
        every: So many seconds are between two lines.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, every: float = LOG_EVERY) -> None:
        self._clock = clock
        self._every = every
        self._size = 0
        self._due = 0.0

    def begin(self, size: int) -> None:
        """It begins."""
        self._size = size
        self._due = self._clock() + self._every

    def update(self, rows: int, position: int) -> None:
        """So much is done."""
        if self._clock() >= self._due:
            self._due = self._clock() + self._every
            share = position / self._size if self._size else 1
            logger.info("recovering: %s rows, %.0f %%", f"{rows:,}", share * 100)

    def end(self) -> None:
        """It has ended."""


class ProgressBar:
    """Progress as a bar on a terminal, which makes room for lines of the log and is gone in the end.

    Args:
        terminal: Where it is drawn.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._drawn_rows = 0
        self._drawn_position = 0
        self._handlers: list[logging.Handler] = []

    def begin(self, size: int) -> None:
        """It begins."""
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
            handler.addFilter(self._make_room)

    def update(self, rows: int, position: int) -> None:
        """So much is done."""
        if rows >= self._drawn_rows + _STEP:
            self._bar.update(position - self._drawn_position, rows)
            self._drawn_rows, self._drawn_position = rows, position

    def end(self) -> None:
        """It has ended."""
        for handler in self._handlers:
            handler.removeFilter(self._make_room)
        self._write(_CLEAR_LINE + _SHOW_CURSOR)

    def _make_room(self, record: logging.LogRecord) -> bool:
        """Let a line of the log begin where the bar is; the next update draws it below."""
        self._write(_CLEAR_LINE)
        return True

    def _write(self, text: str) -> None:
        self._terminal.write(text)
        self._terminal.flush()


def _shown(rows: int | None) -> str | None:
    return None if rows is None else f"{rows:,} rows"


def progress_on(stream: TextIO | None = None) -> Progress:
    """Progress that is drawn where somebody is looking, and logged where nobody is.

    Args:
        stream: Where it would be drawn; None for stderr.
    """
    stream = stream or sys.stderr
    return ProgressBar(stream) if stream.isatty() else LoggedProgress()
