"""Parsers of the values of options.

The argument is a string or a TOML value. Each function returns the option's value, or raises ValueError with
the reason in one line.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from iproto_server.config.address import Address

#: Names of Tarantool's log levels; a level's number is its place here.
LOG_LEVELS = ("fatal", "syserror", "error", "crit", "warn", "info", "verbose", "debug")


def parse_size(value: object) -> int:
    """Read a number of bytes: 16320, "16320", "64K", "256 MiB", "1G". K, M and G are powers of 1024.

    Raises:
        ValueError: it is not a number of bytes.
    """
    match = re.fullmatch(r"([0-9]+)\s*(?:([kmg]?)(?:i?b)?)", str(value).strip(), re.IGNORECASE)
    if not match or isinstance(value, bool):
        raise ValueError(f"{_shown(value)} is not a number of bytes, such as 16320, 64K or 256M")
    return int(match[1]) << 10 * " KMG".index(match[2].upper() or " ")


def _shown(value: object) -> str:
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{_shown(value)} is not a text" if value != "" else "the value is empty")
    return value


def application(value: object) -> str:
    """The application's module and variable, `MODULE:ATTRIBUTE`, or the path of a Lua file."""
    text = _text(value)
    if not is_lua_file(text) and not re.fullmatch(r"[^\s:]+:[^\s:]+", text):
        raise ValueError(f'"{text}" is not an application: expected MODULE:ATTRIBUTE or FILE.lua')
    return text


def is_lua_file(application: str) -> bool:
    """Whether an application is a file of Lua."""
    return application.endswith(".lua")


def listen(value: object) -> Address:
    """An address to listen on."""
    # A bare port is a number in TOML.
    return Address.parse_listen(
        str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)
    )


def receiver(value: object) -> Address:
    """A receiver: `HOST:PORT`."""
    address = Address.parse(_text(value))
    if not address.host or not address.port:
        raise ValueError(f'"{value}" is not a receiver: expected HOST:PORT')
    return address


def path(value: object) -> Path:
    """A path, absolute or relative."""
    return Path(_text(value))


def instance_uuid(value: object) -> uuid.UUID:
    """An instance's UUID."""
    try:
        parsed = uuid.UUID(_text(value))
    except ValueError:
        raise ValueError(f"{_shown(value)} is not a UUID") from None
    if not parsed.int:
        raise ValueError("the UUID of all zeros cannot be an instance's")
    return parsed


def instance_name(value: object) -> str:
    """An instance's name; in Tarantool 3 it may have letters, digits, "_" and "-"."""
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", text):
        raise ValueError(
            f'"{text}" is not an instance name: a letter or digit and up to 62 letters, digits, "_", "-", "."'
        )
    return text


def host_name(value: object) -> str:
    """A host's name without a port."""
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?", text):
        raise ValueError(f'"{text}" is not the name of a host, such as queue.example.com')
    return text


def boolean(value: object) -> bool:
    """A flag."""
    if isinstance(value, bool):
        return value
    lowered = value.lower() if isinstance(value, str) else ""
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off"):
        return False
    raise ValueError(f"{_shown(value)} is neither true nor false")


def whole(low: int, high: int) -> Callable[[object], int]:
    """Return a parser of whole numbers within bounds."""

    def parse(value: object) -> int:
        if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]{1,18}", str(value)):
            raise ValueError(f"{_shown(value)} is not a whole number")
        number = int(str(value))
        if not low <= number <= high:
            raise ValueError(f"{number} is out of bounds: from {low} to {high}")
        return number

    return parse


def size(low: int, high: int) -> Callable[[object], int]:
    """Return a parser of sizes within bounds, in the format of `parse_size`."""

    def parse(value: object) -> int:
        number = parse_size(value)
        if not low <= number <= high:
            raise ValueError(f"{number} bytes is out of bounds: from {low} to {high}")
        return number

    return parse


def one_of(what: str, *choices: str) -> Callable[[object], str]:
    """Return a parser of words, in upper or lower case.

    Parameters:
        what: what is chosen, for the error.
        choices: the words.
    """

    def parse(value: object) -> str:
        text = str(value).lower()
        if text not in choices:
            raise ValueError(f"unknown {what} {_shown(value)}: choose {in_words(choices)}")
        return text

    return parse


def in_words(choices: Sequence[str]) -> str:
    """Join words for a sentence: `none, write or fsync`."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def log_level(value: object) -> str:
    """A log level by its name or number."""
    text = "warn" if str(value).lower() == "warning" else str(value).lower()
    if text in LOG_LEVELS:
        return text
    if not isinstance(value, bool) and re.fullmatch(r"[0-7]", text):
        return LOG_LEVELS[int(text)]
    raise ValueError(
        f"unknown log level {_shown(value)}: choose {in_words(LOG_LEVELS)}, or a number from 0 to 7"
    )


def announced_version(value: object) -> str:
    """A version of Tarantool, such as `2.11.0`; the greeting has room for seven characters."""
    from iproto_server.protocol.greeting import VERSION_SIZE_MAX

    # TOML takes 2.11 for a number.
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else _text(value)
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", text, re.ASCII):
        raise ValueError(f'"{text}" is not a version: expected MAJOR.MINOR.PATCH, such as 2.11.0')
    if len(text) > VERSION_SIZE_MAX:
        raise ValueError(f'"{text}" has no room in the greeting: at most {VERSION_SIZE_MAX} characters')
    if max(map(int, text.split("."))) > 255:
        raise ValueError(f'"{text}" is not a version: clients keep each of its numbers in a byte')
    return text


def prefix(value: object) -> str:
    """The prefix of metrics' names."""
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", text):
        raise ValueError(
            f'"{text}" is not a metric prefix: letters, digits, "_" and "-", in parts with dots between'
        )
    return text


def seconds(low: float, high: float) -> Callable[[object], float]:
    """Return a parser of times in seconds within bounds."""

    def parse(value: object) -> float:
        number = _number(value)
        if not low <= number <= high:
            raise ValueError(
                f"{_shown(value)} is not an interval: expected seconds, from {low:.10g} to {high:.10g}"
            )
        return number

    return parse


def rate(value: object) -> float | None:
    """Megabytes (MiB) per second; 0 is no limit."""
    number = _number(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{_shown(value)} is not a rate: expected megabytes per second, 0 for no limit")
    return number or None


def _number(value: object) -> float:
    """Return the number; NaN for other values."""
    try:
        return math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        return math.nan
