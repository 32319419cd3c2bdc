"""Errors of the data source."""

from __future__ import annotations


class SourceError(ValueError):
    """The request is invalid: a wrong option, an unknown space, a value that does not fit.

    Parameters:
        message: One sentence for the user.
    """


def shortened(value: object, most: int = 60) -> str:
    """A value shortened for a message.

    Parameters:
        value: The value.
        most: The maximum length in characters.
    """
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
