"""Values as text for a terminal, which they never control, in the operators' commands."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any, Final

from iproto_server.text.payload_size import cut_payload
from iproto_server.tools.files.json_record import json_text

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "m"))
_TENTH: Final = 0.1
STATES: Final = ("ready", "taken", "delayed", "buried", "done")


def printable(text: object) -> str:
    """Return a text in one line, without control characters."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(text))


def payload(value: object, width: int) -> str:
    """Return a payload as JSON, shortened to a width. Only what is shown is formatted."""
    text = printable(json_text(cut_payload(value, width)).replace("\\/", "/"))
    return text if len(text) <= width else f"{text[: width - 1]}…"


def duration(seconds: float | None) -> str:
    """Return a duration with its two greatest units, `2m5s`; a negative one for what is overdue: `-2m5s`."""
    if seconds is None:
        return ""
    if seconds <= -_TENTH / 2:
        return f"-{duration(-seconds)}"
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f}s"
    if math.isinf(seconds):
        return "∞"
    left = int(seconds)
    parts: list[str] = []
    for size, unit in _UNITS:
        if left >= size or parts:
            parts.append(f"{left // size}{unit}")
            left %= size
    parts.append(f"{left}s")
    return "".join(parts[:2])


def moment(seconds: float | None) -> str:
    """Return a time in UTC."""
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def size(octets: float) -> str:
    """Return a number of bytes with its unit."""
    amount = float(octets)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if amount < 1024 or unit == "TB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError


def rate(per_second: float) -> str:
    """Return a number of events per second; small ones have a fraction."""
    return f"{per_second:.1f}".removesuffix(".0") if per_second < 9.95 else f"{per_second:.0f}"


def depth(queue: dict[str, Any], state: str) -> str:
    """Return the number of a queue's tasks in a state; nothing if it does not have the state."""
    number = queue["tasks"].get(state)
    return "" if number is None else f"{number}"
