"""Rate-limited log lines for events that clients can cause in any number."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Final

from iproto_server.box.clock import Clock, Timer
from iproto_server.logging.log_setup import event

INTERVAL: Final = 10.0
"""Seconds between the first two lines of one kind."""

LONGEST_INTERVAL: Final = 600.0
"""The longest time between two lines of one kind, in seconds."""

MAX_KINDS: Final = 20
"""Maximum number of kinds of an event that are logged separately."""


class RateLimitedLog:
    """Logs at most one line per interval and kind of event.

    The first event of a kind is logged at once. Those within the following interval are counted, and logged
    together when it ends, with the fields of the last one. While events go on, each interval is twice as long
    as the one before, up to `LONGEST_INTERVAL`. The field `count` of a line is the number of its events, so
    the counts of all lines add up to the number of events.

    Parameters:
        logger: the logger.
        clock: provides the timers.
        interval: seconds between the first two lines of one kind.
        max_kinds: maximum number of keys of an event at a time. Events with further keys form one kind,
            logged as "NAME, others" without fields.
    """

    def __init__(
        self,
        logger: logging.Logger,
        clock: Clock,
        interval: float = INTERVAL,
        max_kinds: int = MAX_KINDS,
    ) -> None:
        self._logger = logger
        self._clock = clock
        self._interval = interval
        self._max_kinds = max_kinds
        self._kinds: dict[str, dict[Hashable, _Kind]] = {}

    def event(self, level: int, name: str, /, *, key: Hashable = None, **fields: object) -> None:
        """Log an event now, or with others of its kind when the interval ends.

        Parameters:
            level: logging.WARNING and so on.
            name: the event, in a few fixed words.
            key: distinguishes kinds of an event, such as an address.
            fields: the event's variable data; `count` is reserved.
        """
        if not self._logger.isEnabledFor(level):
            return
        kinds = self._kinds.setdefault(name, {})
        kind = kinds.get(key)
        if kind is None and len(kinds) >= self._max_kinds:
            key, name, fields = _OTHERS, f"{name}, others", {}
            kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = _Kind(level, name, self._interval)
            event(self._logger, level, name, **fields, count=1)
            self._wait(kinds, key, kind)
        else:
            kind.fields = fields
            kind.count += 1

    def close(self) -> None:
        """Log the counted events, and end all intervals."""
        for kinds in self._kinds.values():
            for kind in kinds.values():
                kind.timer.cancel()
                self._log(kind)
        self._kinds.clear()

    def _wait(self, kinds: dict[Hashable, _Kind], key: Hashable, kind: _Kind) -> None:
        kind.timer = self._clock.call_later(kind.interval, lambda: self._end(kinds, key, kind))

    def _end(self, kinds: dict[Hashable, _Kind], key: Hashable, kind: _Kind) -> None:
        """End an interval."""
        if kind.count:
            self._log(kind)
            kind.interval = min(LONGEST_INTERVAL, kind.interval * 2)
            self._wait(kinds, key, kind)
        else:
            del kinds[key]

    def _log(self, kind: _Kind) -> None:
        if kind.count:
            event(self._logger, kind.level, kind.name, **kind.fields, count=kind.count)
            kind.count = 0
            kind.fields = {}


class _Others:
    """The key of events beyond `max_kinds`."""


_OTHERS: Final = _Others()


class _Kind:
    """The events of one kind since its last line."""

    __slots__ = ("count", "fields", "interval", "level", "name", "timer")

    timer: Timer

    def __init__(self, level: int, name: str, interval: float) -> None:
        self.level = level
        self.name = name
        self.interval = interval
        self.count = 0
        self.fields: dict[str, object] = {}
