"""The server's log: events with fields, on stderr or in a file, one line each.

The loggers are those of the standard library, so a program that embeds the server configures `logging` as for
any other library. `configure_logs`, which only the command line calls, sets up the two formats. In a module:

    logger = logging.getLogger("iproto_server.server")
    event(logger, logging.INFO, "listening", address="127.0.0.1:3301")

    2026-01-31T12:00:00.123Z info listening address=127.0.0.1:3301
    {"time": "2026-01-31T12:00:00.123Z", "level": "info", "logger": "iproto_server.server", "event":
    "listening", …}

A dropped event costs one cached level check and no formatting. `logger.info("…", x)` and other libraries'
loggers use the same formats.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from pathlib import Path
from typing import TextIO

from iproto_server.logging.repeat_filter import RepeatFilter

#: From Tarantool's level names to logging's numbers. Tarantool has three kinds of errors below "warn".
_LEVELS = {
    "fatal": logging.CRITICAL,
    "syserror": logging.ERROR,
    "error": logging.ERROR,
    "crit": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "verbose": logging.DEBUG,
    "debug": logging.DEBUG,
}

_SHOWN = {"WARNING": "warn", "CRITICAL": "fatal"}


def event(logger: logging.Logger, level: int, name: str, /, **fields: object) -> None:
    """Log an event.

    Parameters:
        logger: the module's logger.
        level: logging.INFO and so on.
        name: the event, in a few fixed words, so that it can be searched for.
        fields: the event's variable data; values are formatted with `str`.
    """
    if logger.isEnabledFor(level):
        logger.log(level, name, extra={"fields": fields}, stacklevel=2)


def configure_logs(
    level: str, log_format: str, stream: TextIO | None = None, file: Path | None = None
) -> None:
    """Send the events of all loggers to a stream or a file.

    Parameters:
        level: one of config.LOG_LEVELS; less important events are dropped.
        log_format: "plain" or "json".
        stream: the stream; None: stderr.
        file: the file to append to in place of a stream. If it is moved away or removed, it is made anew.

    Raises:
        OSError: the file cannot be opened.
    """
    handler = logging.StreamHandler(stream or sys.stderr) if file is None else _file_handler(file)
    handler.setFormatter(JsonFormatter() if log_format == "json" else PlainFormatter())
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(_LEVELS[level])


def _file_handler(file: Path) -> logging.Handler:
    from logging.handlers import WatchedFileHandler

    class LogFile(WatchedFileHandler):
        """A log's file that is made anew if it is moved away or removed."""

        def emit(self, record: logging.LogRecord) -> None:
            try:
                super().emit(record)
            except OSError:
                # The file cannot be made anew now; the next event tries again.
                self.handleError(record)

    return LogFile(file, encoding="utf-8", errors="backslashreplace")


def rotate_logs() -> None:
    """Make files of the log anew that were moved away or removed.

    Raises:
        OSError: a file cannot be made.
    """
    for handler in logging.getLogger().handlers:
        reopen = getattr(handler, "reopenIfNeeded", None)
        if reopen is not None:
            handler.acquire()
            try:
                reopen()
            finally:
                handler.release()


def change_logs(level: str, log_format: str) -> None:
    """Change the level and format that `configure_logs` has set.

    Parameters:
        level: one of config.LOG_LEVELS.
        log_format: "plain" or "json".
    """
    logging.getLogger().setLevel(_LEVELS[level])
    change_format(log_format)


def change_format(log_format: str) -> None:
    """Change the format that `configure_logs` has set, to "plain" or "json"."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, PlainFormatter | JsonFormatter):
            handler.setFormatter(JsonFormatter() if log_format == "json" else PlainFormatter())


class PlainFormatter(logging.Formatter):
    """`TIME LEVEL EVENT key=value …`; a traceback follows on lines that begin with two spaces."""

    def format(self, record: logging.LogRecord) -> str:
        parts = [_time(record), _level(record), _printable(record.getMessage())]
        parts += [f"{name}={_quoted(str(value))}" for name, value in _fields(record).items()]
        if record.exc_info:
            # Indented: the text of an exception may have line breaks, and must not look like an event.
            lines = self.formatException(record.exc_info).splitlines()
            return "\n".join([" ".join(parts), *(f"  {_printable(line)}" for line in lines)])
        return " ".join(parts)


class JsonFormatter(logging.Formatter):
    """One JSON object per line; a traceback is the field "exception"."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": _time(record),
            "level": _level(record),
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in _fields(record).items():
            # A field never replaces a field of the record.
            plain = value is None or isinstance(value, (bool, int, float, str))
            entry.setdefault(name, value if plain else str(value))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=True)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


def _time(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _level(record: logging.LogRecord) -> str:
    return _SHOWN.get(record.levelname, record.levelname.lower())


def _quoted(text: str) -> str:
    """Return a value unchanged if it is one word, otherwise as a JSON string."""
    return text if re.fullmatch(r"[!#-<>-\[\]-~]+", text) else json.dumps(text, ensure_ascii=False)


def _printable(text: str) -> str:
    """Return the text on one line, so that clients cannot forge log lines."""
    return re.sub(r"[\x00-\x1f\x7f\u2028\u2029]", lambda found: f"\\x{ord(found[0]):02x}", text)
