"""Suggestions for mistyped names in error messages."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `, did you mean "…"?` with the name that is most like the given one; "" if none is like it.

    Parameters:
        name: the unknown name.
        names: the known names.
    """
    import difflib

    close = difflib.get_close_matches(name, list(names), n=1)
    return f', did you mean "{close[0]}"?' if close else ""
