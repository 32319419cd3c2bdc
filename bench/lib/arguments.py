"""Types of command-line options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final, TypeVar

_Item = TypeVar("_Item")

_UNITS: Final = {"K": 1024, "M": 1024**2, "G": 1024**3}


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


def size(text: str) -> int:
    """Parse a size in bytes, such as `16M`.

    Parameters:
        text: the option's value.

    Raises:
        ArgumentTypeError: It is not such a size.
    """
    unit = _UNITS.get(text[-1:].upper(), 1)
    return count(text[:-1] if unit > 1 else text) * unit


def items(parse: Callable[[str], _Item]) -> Callable[[str], list[_Item]]:
    """Return the parser of a comma-separated list.

    Parameters:
        parse: parses an item.
    """

    def parse_all(text: str) -> list[_Item]:
        try:
            return [parse(item) for item in text.split(",")]
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse_all


def choice(*choices: str) -> Callable[[str], str]:
    """Return the parser of a word.

    Parameters:
        choices: the possible words.
    """

    def parse(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return parse
