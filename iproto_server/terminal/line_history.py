"""The lines that were entered in a console, in a file.

The file has one line for each entry, as readline's, so that Tarantool's console may use it, too.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

logger = logging.getLogger("iproto_server.terminal")


class LineHistory(History):
    """A history of lines, which are added by `remember` alone.

    A file that cannot be read or written is reported once, and lines are then kept in memory.

    Parameters:
        path: the file; None for a history in memory.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of the file, the newest first."""
        if self._path is None:
            return []
        try:
            text = self._path.read_text("utf-8", "surrogateescape")
        except FileNotFoundError:
            return []
        except OSError as error:
            self._give_up("read", error)
            return []
        return [line for line in reversed(text.split("\n")) if line]

    def append_string(self, string: str) -> None:
        """Ignore what the editor accepts: `remember` is told of it."""

    def store_string(self, string: str) -> None:
        """Append a line to the file."""
        if self._path is None:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(f"{string}\n")
        except OSError as error:
            self._give_up("write", error)

    def remember(self, line: str) -> None:
        """Add a line, unless it is empty.

        Parameters:
            line: the line, without its end.
        """
        if line:
            super().append_string(line)

    def _give_up(self, what: str, error: OSError) -> None:
        logger.warning("cannot %s the history %s: %s", what, self._path, error.strerror)
        self._path = None
