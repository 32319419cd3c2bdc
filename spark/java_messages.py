"""Passes the messages of Java on to stderr, without the one that every Java of Spark 4 begins with."""

from __future__ import annotations

import os
import threading
from typing import Final

_NOISE: Final = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
"""Spark's launcher always asks for this module, and Java cannot be told not to announce it."""

_STDERR: Final = 2
_PIECE: Final = 64 * 1024


class MessageFilter:
    """Removes that line from a stream of bytes; everything else passes at once, incomplete lines included."""

    def __init__(self) -> None:
        self._held = b""
        self._is_at_line_start = True

    def feed(self, data: bytes) -> bytes:
        """Filter the next bytes.

        Parameters:
            data: The bytes; b"" at the end of the stream.

        Returns:
            The bytes to pass on. The beginning of the line is held back until it differs.
        """
        is_end = not data
        data, self._held = self._held + data, b""
        passed = []
        for line in data.splitlines(keepends=True):
            is_whole = line.endswith(b"\n")
            if self._is_at_line_start and line == _NOISE:
                continue
            if self._is_at_line_start and not is_whole and not is_end and _NOISE.startswith(line):
                self._held = line
                continue
            passed.append(line)
            self._is_at_line_start = is_whole
        return b"".join(passed)


def filtered_stderr() -> int:
    """Open a pipe whose content a thread passes on to the present stderr, until all writers have closed it.

    Returns:
        The file descriptor to write to; the caller closes it.

    Raises:
        OSError: If the pipe cannot be opened.
    """
    reading, writing = os.pipe()
    pipe = (reading, os.dup(_STDERR))
    threading.Thread(target=_pass_on, args=pipe, name="messages-of-java", daemon=True).start()
    return writing


def _pass_on(reading: int, stderr: int) -> None:
    messages = MessageFilter()
    with os.fdopen(reading, "rb", buffering=0) as source, os.fdopen(stderr, "wb") as target:
        data = None
        while data != b"":
            data = source.read(_PIECE)
            target.write(messages.feed(data))
            target.flush()
