"""Random values as texts of Lua, for snippets."""

from __future__ import annotations

import unicodedata
from random import Random

_JUNK = ("nil", "true", "false", "{}", "5", "-1", "''", "'x'", "'5'", "1ULL", "print", "1.5", "{1, 2}")
_NUMBERS = ("0", "1", "2", "3", "5", "8", "-1", "-2", "-3", "-10", "1.5", "2.7", "-1.5", "0.5", "1e3", "'2'")
_ASCII = "abcABC 12,.;-_%[]^$()\t\n"
_WIDE = "äößÄéÉёЁйИжςσΣαΩıİǅǆﬁŉ€日本語Ⅷªⓐᾳΐ٣²½\u0301\U0001f600\U00010400\U00010428"


def quoted(text: bytes) -> str:
    """A text of Lua with escapes."""
    safe = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,.;:/?#@[]()^$-_+=!&*~<>{}|%"
    return '"' + "".join(chr(byte) if byte in safe else f"\\{byte:03d}" for byte in text) + '"'


def number(random: Random) -> str:
    """A number, sometimes as a text."""
    return random.choice(_NUMBERS) if random.random() < 0.7 else str(random.randint(-20, 40))


def junk(random: Random) -> str:
    """A value of any type."""
    return random.choice(_JUNK)


def ascii_text(random: Random, longest: int = 12) -> str:
    """A text of a few characters, in which repetitions are likely."""
    alphabet = random.sample(_ASCII, random.randint(1, 6))
    return quoted("".join(random.choices(alphabet, k=random.randint(0, longest))).encode())


def byte_text(random: Random, longest: int = 12) -> str:
    """A text of any bytes."""
    return quoted(random.randbytes(random.randint(0, longest)))


def _character(random: Random) -> str:
    if random.random() < 0.7:
        return random.choice(_WIDE)
    while True:
        found = chr(
            random.choice((random.randint(0, 0x3FF), random.randint(0, 0xFFFF), random.randint(0, 0x1FFFF)))
        )
        # Releases of Unicode differ in what they add, and two letters got capitals late.
        if unicodedata.ucd_3_2_0.category(found) not in {"Cs", "Cn"} and found not in "\u019b\u0264":
            return found


def wide_text(random: Random, longest: int = 8) -> str:
    """A text of any characters, sometimes with invalid bytes."""
    parts = []
    for _ in range(random.randint(0, longest)):
        kind = random.random()
        if kind < 0.5:
            parts.append(_character(random).encode())
        elif kind < 0.9:
            parts.append(random.choice(_ASCII).encode())
        else:
            parts.append(
                random.choice((b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90", b"\x80"))
            )
    return quoted(b"".join(parts))


def code_point(random: Random) -> str:
    """A code point, sometimes an invalid one."""
    if random.random() < 0.2:
        return random.choice(("-1", "0x110000", "0xD800", "1e10", "0.5", "'65'", "2^40"))
    return str(ord(_character(random)))


def nested_table(random: Random, depth: int = 3) -> str:
    """A table with tables in it, some of them with metatables."""
    entries = []
    for _ in range(random.randint(0, 4)):
        key = random.choice(("", "", "[1] = ", "a = ", "b = ", "[2.5] = ", "[true] = ", "[shared] = "))
        kind = random.random()
        if kind < 0.4 and depth:
            value = nested_table(random, depth - 1)
        elif kind < 0.5:
            value = random.choice(("shared", "copied", "shared"))
        else:
            value = random.choice(("1", "2", "'x'", "true", "1ULL", "false"))
        entries.append(key + value)
    table = "{" + ", ".join(entries) + "}"
    return f"setmetatable({table}, {random.choice(('meta', 'copying'))})" if random.random() < 0.2 else table
