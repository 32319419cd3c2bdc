"""A filter for the log that drops warnings and errors that repeat."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from iproto_server.text.exception_text import text_of

BURST: Final = 5
"""The number of events of one kind that are logged at first."""
INTERVAL: Final = 10.0
"""Seconds after a kind's first event in which events beyond the burst are dropped."""
LONGEST_INTERVAL: Final = 600.0
"""The longest interval, in seconds: while events go on, each is twice as long as the one before."""
QUIET: Final = 60.0
"""Seconds without an event after an interval, after which a kind begins anew."""
MAX_KINDS: Final = 1000
"""The number of kinds that are told apart; events of further kinds form one."""
_TEXT_SIZE: Final = 100

_Key = tuple[str, ...]
_OTHERS: Final[_Key] = ()


@dataclass(slots=True)
class _Kind:
    """The recent events of one kind.

    Attributes:
        until: the end of the interval, by the steady clock.
        interval: its length in seconds.
        room: the number of events that may still be logged in it.
        dropped: the number of events dropped since the last line.
        last: the newest of these.
    """

    until: float
    interval: float = INTERVAL
    room: int = BURST
    dropped: int = 0
    last: logging.LogRecord | None = None


class RepeatFilter(logging.Filter):
    """Logs the first warnings or errors of one kind, then one per interval, with the number of those dropped.

    A kind is the logger, the text before its arguments are filled in, the field `procedure`, the exception
    and the line that raised it. The first event of a kind has the traceback, the others the field `error`.
    The field `repeated` of a line is the number of events of its kind that were dropped before it. Events
    with the field `count` are not dropped: `RateLimitedLog` has limited them.

    Parameters:
        now: returns steady time in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._kinds: dict[_Key, _Kind] = {}
        self._next_look = now() + QUIET
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether an event is logged."""
        now = self._now()
        if now >= self._next_look:
            self._log_the_last(now)
        fields = _fields(record)
        if record.levelno < logging.WARNING or "count" in fields or "repeated" in fields:
            return True
        with self._lock:
            kind = self._kind(_key(record), now)
            if not kind.room:
                # Without its traceback, which would keep the objects of all its frames.
                _leave_out_traceback(record)
                kind.dropped += 1
                kind.last = record
                return False
            is_first = kind.room == BURST
            kind.room -= 1
            dropped, kind.dropped, kind.last = kind.dropped, 0, None
        if not is_first:
            _leave_out_traceback(record)
        if dropped:
            _add_field(record, "repeated", dropped)
        return True

    def _kind(self, key: _Key, now: float) -> _Kind:
        """Return an event's kind, in a new interval if the last one is over."""
        if key not in self._kinds and len(self._kinds) >= MAX_KINDS:
            key = _OTHERS
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(now + INTERVAL)
        elif now >= kind.until:
            if now >= kind.until + QUIET:
                kind.interval, kind.room = INTERVAL, BURST
            else:
                kind.interval, kind.room = min(LONGEST_INTERVAL, kind.interval * 2), 1
            kind.until = now + kind.interval
        return kind

    def _log_the_last(self, now: float) -> None:
        """Forget kinds that are quiet; log the last event of each if some were dropped."""
        with self._lock:
            self._next_look = now + QUIET
            quiet = [key for key, kind in self._kinds.items() if now >= kind.until + QUIET]
            ended = [self._kinds.pop(key) for key in quiet]
        for kind in ended:
            if kind.last is not None:
                _add_field(kind.last, "repeated", kind.dropped - 1)
                logging.getLogger(kind.last.name).handle(kind.last)


def _key(record: logging.LogRecord) -> _Key:
    error = record.exc_info[1] if record.exc_info else None
    procedure = str(_fields(record).get("procedure", ""))
    if error is None:
        return record.name, str(record.msg), procedure
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    return record.name, str(record.msg), procedure, type(error).__name__, text_of(error)[:_TEXT_SIZE], where


def _leave_out_traceback(record: logging.LogRecord) -> None:
    """Replace an event's traceback by the text of its last line."""
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        record.exc_info = record.exc_text = None
        _add_field(record, "error", f"{type(error).__name__}: {text_of(error)}")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


def _add_field(record: logging.LogRecord, name: str, value: object) -> None:
    record.__dict__["fields"] = {**_fields(record), name: value}
