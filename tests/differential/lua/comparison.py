"""Answers to EVAL without what must differ: addresses, lines of modules, and the order of maps."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.iproto_client import Answer
from tests.lua.values.alike import comparable

_ADDRESS: Final = re.compile(r"0x[0-9a-f]{4,}")
_REPLACED: Final = re.compile("ADDRESS|DIRECTORY|builtin|NUMBER|struct|described|no value")
"""Words in texts whose lengths differ."""

_DIRECTORY: Final = re.compile(r"/[^ \'\\]*/(?:ours|theirs)-\d+")
Outcome = tuple[object, ...]


def outcome(answer: Answer) -> Outcome:
    """Return the part of an answer that must be equal.

    Parameters:
        answer: The answer.

    Returns:
        The values as texts, integers apart from doubles, with the number of bytes of the body; or the
        error's code, text and stack.
    """
    if answer.ok:
        shown = repr(_shown(answer.data))
        return ("answer", shown, None if _REPLACED.search(shown) else len(answer.raw_body))
    return ("error", answer.error_code, _text(answer.error or ""), repr(_shown(answer.error_stack)))


def _text(text: str) -> str:
    return comparable(_DIRECTORY.sub("DIRECTORY", _ADDRESS.sub("ADDRESS", text)))


def _shown(value: Any) -> object:
    """A value with texts without addresses, and maps in the order of their keys."""
    match value:
        case str():
            return _text(value)
        case list():
            return [_shown(each) for each in value]
        case dict():
            return ["map", *sorted(([_shown(key), _shown(each)] for key, each in value.items()), key=repr)]
    return value
