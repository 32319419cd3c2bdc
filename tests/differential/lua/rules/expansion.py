"""Random texts from rules: `<name>` stands for one of the alternatives of that name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

Rules = Mapping[str, Sequence[str]]

_NAME: Final = re.compile(r"<(\w+)>")
_DEEPEST: Final = 6
"""The number of rules within each other from which on the first alternative is taken, so that texts end."""


def read_rules(path: Path) -> dict[str, list[str]]:
    """Read a file of rules: names, each before indented lines of alternatives with `||` between them.

    Parameters:
        path: The file; lines that begin with `#` do not count.

    Returns:
        The alternatives by name. `nothing` is the empty text.
    """
    rules: dict[str, list[str]] = {"nothing": [""]}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith("    "):
            rules[name] += [alternative.strip() for alternative in line.split(" || ")]
        elif line and not line.startswith("#"):
            name = line
            rules[name] = []
    return rules


def expand(random: Random, rules: Rules, text: str, depth: int = 0) -> str:
    """Replace each `<name>` of a text.

    Parameters:
        random: The source of choices.
        rules: The alternatives by name; the first one of a name leads to no further rules, or to short ones.
        text: The text.
        depth: How many rules this text comes from.

    Returns:
        A text without names of rules.

    Raises:
        KeyError: There is no such rule.
    """

    def chosen(found: re.Match[str]) -> str:
        alternatives = rules[found[1]]
        alternative = alternatives[0] if depth >= _DEEPEST else random.choice(alternatives)
        return expand(random, rules, alternative, depth + 1)

    return _NAME.sub(chosen, text)
