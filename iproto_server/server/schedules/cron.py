"""Cron expressions in a time zone.

The syntax and the rule for changes of local time are those of Debian's cron, which the library follows.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

CRON_MAX: Final = 256
"""The maximum length of an expression in characters."""
_LATEST: Final = 221_845_392_000
"""The year 9000 in seconds since 1970: `datetime` ends soon after it."""
_FIELDS: Final = "minute, hour, day of month, month, day of week, and optionally the second before them"


class CronExpression:
    """The due times of an expression, in whole seconds since 1970.

    Parameters:
        text: 5 fields (minute, hour, day of month, month, day of week), or 6 with the second first.
        timezone: a name of the IANA database, such as "Europe/Berlin".

    Raises:
        ValueError: the expression or the time zone is wrong, or there is no due time in 50 years. The message
            is for the user.
    """

    __slots__ = ("_text", "_zone")

    def __init__(self, text: str, timezone: str) -> None:
        self._text = text
        self._zone = _zone(timezone)
        if len(text) > CRON_MAX:
            raise ValueError(f"the cron expression is longer than {CRON_MAX} characters")
        if len(text.split()) not in (5, 6):
            raise ValueError(f'the cron expression "{text}" must have 5 or 6 fields: {_FIELDS}')
        try:
            CronSim(text, datetime.now(self._zone))
        except CronSimError as error:
            reason = str(error)
            raise ValueError(f'the cron expression "{text}" has a {reason[:1].lower()}{reason[1:]}') from None
        if self.after(0) is None:
            raise ValueError(f'the cron expression "{text}" is never due')

    def after(self, moment: int) -> int | None:
        """Return the first due time after a time; None if there is none in 50 years.

        Parameters:
            moment: seconds since 1970.

        Raises:
            ValueError: the time is out of range.
        """
        if not 0 <= moment <= _LATEST:
            raise ValueError(f"{moment} is not a time in seconds since 1970 up to the year 9000")
        # In a repeated hour, the library returns times of its first half again.
        for found in CronSim(self._text, datetime.fromtimestamp(moment, self._zone)):
            due = int(found.timestamp())
            if due > moment:
                return due
        return None

    def latest(self, after: int, until: int) -> int | None:
        """Return the last due time in an interval, or None. The number of due times in it does not matter.

        Parameters:
            after: seconds since 1970, before the interval.
            until: its end, which belongs to it.
        """
        found = self.after(after)
        if found is None or found > until:
            return None
        # All times up to `low` have the due time `found` or a later one of the interval behind them.
        low, high = found, until
        while low < high:
            middle = (low + high) // 2
            due = self.after(middle)
            if due is None or due > until:
                high = middle
            else:
                found = low = due
        return found


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not found; not a name; a directory
        raise ValueError(f'there is no time zone "{name}"; names are as "Europe/Berlin" or "UTC"') from None
