"""JSON paths: how a request names a field inside a field, as in `[3].address["street"]`.

A path is a sequence of steps. `.name` and `["name"]` lead into a map by a string key, `[number]` into an
array, `[*]` into every element (only in some uses of paths). The first step may omit its dot. Numbers count
from 1 in the text and from 0 in a token.

A malformed path is an error only if a walk reaches the fault, not if it stops earlier at a missing field. So
`parse_json_path` never raises; it returns the tokens up to the fault, and the fault as the last.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

_INDEX_BASE: Final = 1
_LARGEST_INDEX: Final = 2**31 - 1
_MOST_TOKENS: Final = 1100
"""Values are not nested as deeply as this."""

# Longer paths are rare, and caching them would let clients fill the memory.
_LONGEST_CACHED: Final = 128


class TokenKind(Enum):
    """The kind of a token."""

    INDEX = "[n]"
    KEY = ".name"
    ANY = "[*]"
    END = "end"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class JsonToken:
    """One step of a path.

    Attributes:
        kind: its kind.
        index: of an INDEX: the element's number, from 0.
        key: of a KEY: the name, as in the path.
        start: the number of symbols before the token.
        end: the number of symbols before its end; of a FAULT, its 1-based position, as in messages.
    """

    kind: TokenKind
    index: int
    key: str
    start: int
    end: int

    @property
    def target(self) -> int | str | None:
        """The index or key of the step; None for tokens that lead to no single place."""
        if self.kind is TokenKind.INDEX:
            return self.index
        return self.key if self.kind is TokenKind.KEY else None


class _Fault(Exception):
    """The path is malformed at the position in `args`."""


def parse_json_path(path: str) -> tuple[JsonToken, ...]:
    """Cut a path into tokens.

    Args:
        path: the text; invalid UTF-8 is represented by lone surrogates, as `codec` decodes it.

    Returns:
        The steps, followed by a token of kind END or FAULT.

    Source: Tarantool reference, "JSON paths"; the positions of faults are those of Tarantool 2.6.0.
    """
    return _parse_and_keep(path) if len(path) <= _LONGEST_CACHED else _parse(path)


def _parse(path: str) -> tuple[JsonToken, ...]:
    tokens: list[JsonToken] = []
    position = 0
    try:
        while position < len(path):
            if len(tokens) == _MOST_TOKENS:
                raise _Fault(position + 1)
            token = _next_token(path, position)
            tokens.append(token)
            position = token.end
    except _Fault as fault:
        tokens.append(JsonToken(TokenKind.FAULT, 0, "", position, fault.args[0]))
    else:
        tokens.append(JsonToken(TokenKind.END, 0, "", position, position))
    return tuple(tokens)


_parse_and_keep = lru_cache(maxsize=512)(_parse)


def _next_token(path: str, start: int) -> JsonToken:
    first = path[start]
    if first == "[":
        return _bracketed(path, start)
    if first == ".":
        if start + 1 == len(path):
            raise _Fault(start + 2)
        return _identifier(path, start, start + 1)
    if start:
        raise _Fault(start + 1)
    return _identifier(path, 0, 0)


def _bracketed(path: str, start: int) -> JsonToken:
    position = start + 1
    if position == len(path):
        raise _Fault(position)
    first = path[position]
    index, key = 0, ""
    if first in "\"'":
        kind = TokenKind.KEY
        key = _quoted(path, position)
        position += len(key) + 2
    elif first == "*":
        kind = TokenKind.ANY
        position += 1
    else:
        kind = TokenKind.INDEX
        digits = position
        while position < len(path) and path[position] in "0123456789":
            position += 1
        # More digits do not matter, and int() of a very long text is slow.
        index = min(int(path[digits:position][:4000] or "0"), _LARGEST_INDEX) - _INDEX_BASE
        if index < 0:
            raise _Fault(digits + 1)
    if path[position : position + 1] != "]":
        raise _Fault(position + 1)
    return JsonToken(kind, index, key, start, position + 1)


def _quoted(path: str, start: int) -> str:
    end = path.find(path[start], start + 1)
    text = path[start + 1 :] if end < 0 else path[start + 1 : end]
    broken = next((offset for offset, symbol in enumerate(text) if _is_broken(symbol)), None)
    if broken is not None:
        raise _Fault(start + broken + 2)
    if end < 0 or not text:
        raise _Fault(start + len(text) + 2)
    return text


def _identifier(path: str, start: int, position: int) -> JsonToken:
    begin = position
    if not (path[position].isalpha() or path[position] == "_"):
        raise _Fault(position + 1)
    while position < len(path) and _is_of_identifier(path[position]):
        position += 1
    return JsonToken(TokenKind.KEY, 0, path[begin:position], start, position)


def _is_of_identifier(symbol: str) -> bool:
    if symbol.isascii():
        return symbol.isalnum() or symbol == "_"
    # Unicode's "alphabetic" (but for a few hundred combining marks, which Python has no table of), or a
    # digit.
    category = unicodedata.category(symbol)
    return (
        category[0] == "L"
        or category in ("Nl", "Nd", "Mc")
        or (category == "Mn" and not unicodedata.combining(symbol))
    )


def _is_broken(symbol: str) -> bool:
    return "\ud800" <= symbol <= "\udfff"
