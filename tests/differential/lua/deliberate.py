"""Deliberate differences between our Lua and that of a real Tarantool."""

from __future__ import annotations

import re
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


DELIBERATE: Final[list[Deliberate]] = [
    Deliberate(
        "rows with equal fields are equal",
        lambda snippet, ours, theirs: (
            _without(ours, "True", "False", "true", "false")
            == _without(theirs, "True", "False", "true", "false")
        ),
    ),
    Deliberate(
        "the order of a map with several keys is that of LuaJIT, whose releases differ",
        lambda snippet, ours, theirs: sorted(str(ours)) == sorted(str(theirs)),
    ),
    Deliberate(
        "tables that the server describes have hints of their form",
        lambda snippet, ours, theirs: _without(ours, "seq:", "map:") == _without(theirs, "seq:", "map:"),
    ),
    Deliberate(
        "the names of types of C are those of this server",
        lambda snippet, ours, theirs: "cannot convert" in str(ours) and "cannot convert" in str(theirs),
    ),
    Deliberate(
        "null pointers are no options, as nil; of other objects of C the errors name their own types",
        lambda snippet, ours, theirs: "has no member named" in str(theirs),
    ),
    Deliberate(
        "which one of several values that cannot be sent is named depends on the order of a table",
        lambda snippet, ours, theirs: (
            "unsupported Lua type" in str(ours) and "unsupported Lua type" in str(theirs)
        ),
    ),
    Deliberate(
        "arguments are packed before they are checked one by one",
        lambda snippet, ours, theirs: "unsupported Lua type" in str(ours),
    ),
    Deliberate(
        "of several wrong options another one is named",
        lambda snippet, ours, theirs: (
            "Illegal parameters" in str(ours) and "Illegal parameters" in str(theirs)
        ),
    ),
    Deliberate(
        "a transaction whose fiber waits is aborted, even if it is still empty",
        lambda snippet, ours, theirs: "aborted by a fiber yield" in str(ours),
    ),
    Deliberate(
        "an object of a dropped space is refused by all methods, and in the same words",
        lambda snippet, ours, theirs: (
            re.search(r"Space '\\*\d+\\*' does not exist", str(ours)) is not None or "Space \\'5" in str(ours)
        ),
    ),
    Deliberate(
        "objects of spaces keep a handle, and have no functions as fields",
        lambda snippet, ours, theirs: "_handle" in str(ours) or "ck_constraint" in str(theirs),
    ),
    Deliberate(
        "the message of assert may be any value, as in Lua 5.2 and LuaJIT's later releases",
        lambda snippet, ours, theirs: "to \\'assert\\'" in str(theirs) or "to 'assert'" in str(theirs),
    ),
    Deliberate(
        "tuple:update and tuple:upsert do not check the format of a space",
        lambda snippet, ours, theirs: (
            snippet.topic in ("tuples", "rows")
            and ("update" in snippet.text or "upsert" in snippet.text)
            and any(text in str(theirs) for text in ("Tuple field", "tuple field"))
        ),
    ),
]


def _without(outcome: Outcome, *words: str) -> str:
    """An outcome's text without some words, and without its size."""
    text = str(outcome[:2])
    for word in words:
        text = text.replace(word, "")
    return text


def reason_for(snippet: Snippet, ours: Outcome, theirs: Outcome) -> str | None:
    """Return the reason why two outcomes differ, if it is deliberate."""
    return next((each.reason for each in DELIBERATE if each.applies(snippet, ours, theirs)), None)
