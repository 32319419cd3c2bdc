"""Calls of functions under `box.` for both servers, and a space for them."""

from __future__ import annotations

from typing import Any

from tests.differential.both import Both
from tests.iproto_client import INDEX_ID, ITERATOR, KEY, LIMIT, SELECT, SPACE_ID

T, ID = "words", 705
FORMAT: list[Any] = [
    ["a", "unsigned"],
    ["b", "string"],
    {"name": "n", "type": "unsigned", "is_nullable": True},
]


def rows(both: Both, space: int, *key: Any) -> None:
    """Find the same rows in a system space of both; the order of keys in a Lua table is nobody's business."""
    body = {SPACE_ID: space, INDEX_ID: 0, LIMIT: 1000, ITERATOR: 0, KEY: list(key)}
    ours, theirs = both.ours.request(SELECT, body), both.theirs.request(SELECT, body)
    assert ours.data == theirs.data


def each(call: tuple[Any, ...], *arguments: Any) -> list[tuple[Any, ...]]:
    """Build a call with each of the arguments as its last one."""
    return [(*call, argument) for argument in arguments]


def of(prefix: str, *calls: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Build calls of methods of one object."""
    return [(prefix + call[0], *call[1:]) for call in calls]


def choices(option: str, *values: Any) -> list[dict[str, Any]]:
    """Build options of a call with each of the values."""
    return [{option: value} for value in values]


def ask(both: Both, call: tuple[Any, ...]) -> None:
    method, *arguments = call
    separator = "." if method.startswith("index.") else ":"
    both.call(f"box.space.{T}{separator}{method}", *arguments)
