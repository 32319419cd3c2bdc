"""Deliberate differences between our Lua and that of a real Tarantool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.differential.lua.comparison import Outcome
from tests.differential.lua.snippet import Snippet


class Deliberate(NamedTuple):
    """A deliberate difference.

    Attributes:
        reason: The reason for it.
        applies: Tells from a snippet and what comes of it here and there whether this is it.
    """

    reason: str
    applies: Callable[[Snippet, Outcome, Outcome], bool]


DELIBERATE: Final[list[Deliberate]] = []


def reason_for(snippet: Snippet, ours: Outcome, theirs: Outcome) -> str | None:
    """Return the reason why two outcomes differ, if it is deliberate."""
    return next((each.reason for each in DELIBERATE if each.applies(snippet, ours, theirs)), None)
