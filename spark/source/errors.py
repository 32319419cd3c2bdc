"""Errors of the data source."""

from __future__ import annotations


class SourceError(ValueError):
    """The request is invalid: a wrong option, an unknown space, a value that does not fit.

    Parameters:
        message: One sentence for the user.
    """
