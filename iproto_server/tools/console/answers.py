"""Answers of a console, as YAML or as Lua: whether one is an error, and the values of one."""

from __future__ import annotations

from typing import Any, Final

import yaml

try:
    from yaml import CBaseLoader as BaseLoader
except ImportError:  # PyYAML without libyaml
    from yaml import BaseLoader  # type: ignore[assignment]

_LUA_ERRORS: Final = ("{error = ", "{\n  error = ")


def is_error(answer: str) -> bool:
    """Whether an answer is that of a statement that has failed.

    One that returns `{error = …}` looks alike.
    """
    if answer.startswith(_LUA_ERRORS):
        return True
    if not answer.startswith("---\n- error:"):
        return False
    values = values_of(answer)
    return values is not None and len(values) == 1 and isinstance(values[0], dict) and len(values[0]) == 1


def values_of(answer: str) -> list[Any] | None:
    """Return the values of an answer in YAML, with scalars as their texts; None if they cannot be read."""
    if not answer.startswith("---"):
        return None
    try:
        values = yaml.load(answer, BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if isinstance(values, list):
        return values
    return [] if values in (None, "") else None
