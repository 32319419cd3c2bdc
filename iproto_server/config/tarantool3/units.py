"""Sizes and times with units, as Tarantool 3 writes them.

Source: Tarantool's module `config`, its units of sizes and durations.
"""

from __future__ import annotations

import re
from typing import Final

_BYTES: Final = {
    "": 1,
    **{unit: 1024**power for power, unit in enumerate(("b", "kib", "mib", "gib", "tib", "pib"))},
}
_SECONDS: Final = {
    "": 1.0,
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 7 * 86400.0,
    "M": 30 * 86400.0,
    "y": 365 * 86400.0,
}


def without_unit(value: object, unit: str) -> object:
    """Return a size in bytes or a time in seconds as a number.

    Parameters:
        value: such as "64MiB" or "1.5h"; what is no text stays as it is, a text without a unit as well.
        unit: "bytes" or "seconds"; "": the value stays as it is.

    Raises:
        ValueError: it is a text without such a form.
    """
    if not unit or not isinstance(value, str):
        return value
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:[eE]\+?[0-9]{1,2})?)\s*([A-Za-z]*)", value.strip())
    if unit == "bytes":
        factor = _BYTES.get(match[2].lower()) if match else None
        if match is None or factor is None:
            raise ValueError(f'"{value}" is not a size: expected bytes, or a unit such as 64MiB or 1GiB')
        return int(match[1]) * factor if match[1].isdigit() else round(float(match[1]) * factor)
    seconds = _SECONDS.get(match[2]) if match else None
    if match is None or seconds is None:
        raise ValueError(f'"{value}" is not a time: expected seconds, or a unit such as 500ms, 30s or 1h')
    return float(match[1]) * seconds
