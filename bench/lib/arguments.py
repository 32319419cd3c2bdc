"""Types of command-line options."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """Parse an integer of at least 1.

    Parameters:
        text: the option's value.

    Raises:
        ArgumentTypeError: It is not such a number.
    """
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number
