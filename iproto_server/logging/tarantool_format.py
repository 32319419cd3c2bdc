"""Log lines in the formats of Tarantool 2.6, byte for byte.

Before its first configuration, Tarantool logs messages alone (`boot`); then in one of two formats:

    2026-01-31 12:00:00.123 [4321] main/103/app.lua app.lua:5 E> message
    {"time": "2026-01-31T12:00:00.123+0000", "level": "ERROR", "message": "message", "pid": 4321 , …}
"""

from __future__ import annotations

import logging
import os
import time
from typing import Final, Literal, NamedTuple

Format = Literal["boot", "plain", "json"]

FATAL, SYSERROR, ERROR, CRIT, WARN, INFO, VERBOSE, DEBUG = range(8)
"""The levels of Tarantool; what is below, is more important."""

LOGGING_LEVELS: Final = (
    logging.CRITICAL,
    logging.ERROR,
    logging.ERROR,
    logging.WARNING,
    logging.WARNING,
    logging.INFO,
    logging.DEBUG,
    logging.DEBUG,
)
"""The levels of Python's logging for those of Tarantool."""

_NAMES: Final = ("FATAL", "SYSERROR", "ERROR", "CRIT", "WARN", "INFO", "VERBOSE", "DEBUG")
_SIGNS: Final = "F!ECWIVD"
_WITH_PLACE: Final = frozenset({SYSERROR, ERROR, WARN})


class Origin(NamedTuple):
    """Where an event comes from; the attribute `origin` of a record of Python's logging.

    Attributes:
        level: the level of Tarantool.
        file: the file of the statement.
        line: its line.
        fiber_id: the number of the fiber; None if none was running.
        fiber_name: its name.
        error: the text of an error that the message belongs to.
        members: the text of a JSON object in place of the message.
    """

    level: int
    file: str | None = None
    line: int = 0
    fiber_id: int | None = None
    fiber_name: str = ""
    error: str | None = None
    members: str | None = None


class TarantoolFormatter(logging.Formatter):
    """Formats records, with an `Origin` or without.

    Parameters:
        log_format: the format; it may be changed.
    """

    def __init__(self, log_format: Format = "boot") -> None:
        super().__init__()
        self.log_format: Format = log_format

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, without its end. Bytes of Lua that are no UTF-8 are surrogates in it."""
        origin = getattr(record, "origin", None)
        if not isinstance(origin, Origin):
            origin = Origin(_level_of(record.levelno), record.filename, record.lineno)
            parts = [record.getMessage(), *_fields(record)]
        else:
            parts = [record.getMessage()]
        message = " ".join(parts)
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        if self.log_format == "json":
            return _json(record, origin, message)
        if origin.error is not None:
            message = f"{message}: {origin.error}"
        return message if self.log_format == "boot" else _plain(record, origin, message)


def _fields(record: logging.LogRecord) -> list[str]:
    fields = getattr(record, "fields", None)
    return [f"{name}={value}" for name, value in fields.items()] if isinstance(fields, dict) else []


def _level_of(number: int) -> int:
    """The level of Tarantool for one of Python's logging."""
    if number >= logging.CRITICAL:
        return FATAL
    if number >= logging.ERROR:
        return ERROR
    if number >= logging.WARNING:
        return WARN
    return INFO if number >= logging.INFO else DEBUG


def _plain(record: logging.LogRecord, origin: Origin, message: str) -> str:
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
    parts = [f"{moment}.{int(record.msecs):03d} [{os.getpid()}] main"]
    if origin.fiber_id is not None:
        parts.append(f"/{origin.fiber_id}/{origin.fiber_name}")
    if origin.file is not None and origin.level in _WITH_PLACE:
        parts.append(f" {origin.file.rpartition('/')[2]}:{origin.line}")
    parts.append(f" {_SIGNS[origin.level]}> {message}")
    return "".join(parts)


def _json(record: logging.LogRecord, origin: Origin, message: str) -> str:
    local = time.localtime(record.created)
    moment = (
        f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}.{int(record.msecs):03d}{time.strftime('%z', local)}"
    )
    parts = [f'"time": "{moment}", "level": "{_NAMES[origin.level]}"']
    if origin.members is None:
        parts.append(f'"message": {_quoted(message)}')
    elif origin.members:
        parts.append(origin.members)
    if origin.error is not None:
        parts.append(f'"error": {_quoted(origin.error)}')
    parts.append(f'"pid": {os.getpid()} , "cord_name": "main"')  # with Tarantool's space
    if origin.fiber_id is not None:
        parts.append(f'"fiber_id": {origin.fiber_id}, "fiber_name": {_quoted(origin.fiber_name)}')
    if origin.file is not None:
        parts.append(f'"file": {_quoted(origin.file)}, "line": {origin.line}')
    return f"{{{', '.join(parts)}}}"


def _quoted(text: str) -> str:
    """A text of JSON, in which Tarantool escapes slashes and DEL, too."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("/", "\\/").replace("\x7f", "\\u007f")
