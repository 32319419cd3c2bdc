"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 task", "2 tasks".

    Parameters:
        number: the number of things.
        noun: one of them; its plural has an s.
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
