"""Payloads that are shown or sent in part, because they may have any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def cut_payload(value: Any, size: int) -> Any:
    """Return the beginning of a payload, in time that depends on the size alone.

    Texts, bytes, lists and maps are cut; what is within them counts. A payload that is cut still takes more
    than `size` characters as JSON, so that a text shortened to `size` shows that something is missing.

    Parameters:
        value: the payload.
        size: characters, bytes, items and other values that are kept, and one more.
    """
    return _cut(value, [size + 1])


def _cut(value: Any, left: list[int]) -> Any:
    """Cut a value to what is left, and count it."""
    if isinstance(value, str | bytes):
        kept: Any = value[: max(left[0], 0)]
        left[0] -= max(len(kept), 1)
        return kept
    left[0] -= 1
    if isinstance(value, Mapping):
        found: dict[Any, Any] = {}
        for key, item in value.items():
            if left[0] <= 0:
                break
            found[_cut(key, left)] = _cut(item, left)
        return found
    if isinstance(value, list):
        items: list[Any] = []
        for item in value:
            if left[0] <= 0:
                break
            items.append(_cut(item, left))
        return items
    return value
