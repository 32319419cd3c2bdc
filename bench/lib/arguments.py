"""Values of options on the command line."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """Read a whole number from 1 on.

    Parameters:
        text: what was given.

    Raises:
        ArgumentTypeError: It is none.
    """
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number
