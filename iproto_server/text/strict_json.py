"""JSON that people and programs send, without Python's liberties."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Texts may have the surrogates U+DC80 to U+DCFF, which stand for bytes that are no UTF-8.

    Parameters:
        text: the text.

    Raises:
        ValueError: it is no JSON, or has `NaN`, a number beyond the range of doubles, a name that occurs
            twice in an object, or half of a surrogate pair.
    """
    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_finite, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("too many lists or objects within each other") from None
    if _ESCAPED_SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise ValueError("a text has half of a surrogate pair") from None
    return value


def _constant(name: str) -> object:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large: the largest is about 1.8e308")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return found
