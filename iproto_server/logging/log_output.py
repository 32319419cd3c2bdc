"""Where Tarantool's log goes: stderr, a file, a program's input, or syslog.

The texts are those of Tarantool's option `log`: a path, or one with a prefix (`file:`, `pipe:` or `|`,
`syslog:`). See https://www.tarantool.io/en/doc/2.6/reference/configuration/#cfg-logging-log.
"""

from __future__ import annotations

import logging
import os
import sys

from iproto_server.logging.tarantool_format import Format, TarantoolFormatter

_STDERR = 2


class LogOutput(logging.Handler):
    """Writes records to a descriptor, each with one call if the system takes it at once.

    Parameters:
        log_format: the format, see `TarantoolFormatter`.
    """

    def __init__(self, log_format: Format = "boot") -> None:
        super().__init__()
        self._formatter = TarantoolFormatter(log_format)
        self.setFormatter(self._formatter)
        self._descriptor = _STDERR
        self._path: bytes | None = None
        self.process_id = 0

    @property
    def log_format(self) -> Format:
        """The format of the lines."""
        return self._formatter.log_format

    @log_format.setter
    def log_format(self, log_format: Format) -> None:
        self._formatter.log_format = log_format

    @property
    def is_file(self) -> bool:
        """Whether lines go to a file, which `rotate` opens again."""
        return self._path is not None

    def open(self, destination: bytes) -> None:
        """Write to a destination from now on; an empty one leaves it as it is.

        Raises:
            OSError: it cannot be opened.
            ValueError: it has an unknown prefix.
        """
        prefix, colon, rest = destination.partition(b":")
        if destination.startswith(b"|"):
            self.open_pipe(destination[1:])
        elif prefix == b"pipe" and colon:
            self.open_pipe(rest)
        elif prefix == b"file" and colon:
            self.open_file(rest)
        elif colon and b"/" not in prefix:
            raise ValueError("expecting a file name or a prefix, such as '|', 'pipe:', 'syslog:'")
        elif destination:
            self.open_file(destination)

    def open_file(self, path: bytes) -> None:
        """Append to a file from now on.

        Raises:
            OSError: it cannot be opened.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._path = os.path.abspath(path)
        self._replace(descriptor)

    def open_pipe(self, command: bytes) -> None:
        """Write to a program of the shell from now on; its number is in `process_id`.

        Raises:
            OSError: it cannot be started.
        """
        import subprocess

        process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE)
        assert process.stdin is not None
        self.process_id = process.pid
        process.returncode = 0  # it outlives this object
        self._replace(os.dup(process.stdin.fileno()))
        process.stdin.close()

    def rotate(self) -> bool:
        """Open the file again, which may have been moved away. Returns whether there is one.

        Raises:
            OSError: it cannot be opened.
        """
        if self._path is None:
            return False
        self.open_file(self._path)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        try:
            rest = _bytes(self.format(record) + "\n")
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            # There is no better place to report it: the reader of the log has gone, or the disk is full.
            if self._descriptor != _STDERR and sys.stderr is not None:
                self.handleError(record)

    def _replace(self, descriptor: int) -> None:
        old, self._descriptor = self._descriptor, descriptor
        if old != _STDERR:
            os.close(old)


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
