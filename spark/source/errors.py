"""What goes wrong when somebody asks for data."""

from __future__ import annotations


class SourceError(ValueError):
    """What was asked for cannot be had: a wrong option, a space that is not there, a value that does not fit.

    Parameters:
        message: One sentence for the user.
    """
