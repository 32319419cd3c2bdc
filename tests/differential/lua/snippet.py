"""Random snippets of Lua for EVAL: a few lines each, on one topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from tests.differential.lua.rules.expansion import Rules, expand, read_rules
from tests.lua.modules.random_snippets import SNIPPETS as OF_MODULES
from tests.lua.values.random_box import SNIPPETS as OF_VALUES

_RULES: Final = Path(__file__).parent / "rules"
_KEEPS: Final = "local got, all = results()"
_RETURNS_ALL: Final = "return all()"
_ELSEWHERE: Final = ("fio", "os", "crypto", "tap")
"""Modules whose snippets leave files or variables, or print."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A snippet.

    Attributes:
        topic: Its topic.
        lines: Its lines, any of which may be left out.
        is_described: Whether the values are described by Lua code, and not packed.
    """

    topic: str
    lines: tuple[str, ...]
    is_described: bool = False

    def __str__(self) -> str:
        way = "described" if self.is_described else "evaluated"
        return "\n".join((f"{self.topic}, {way}:", *self.lines))

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(self.lines)


def _from_rules(topic: str, rules: Rules, random: Random) -> Snippet:
    lines = [expand(random, rules, "<head>"), _KEEPS]
    lines += [expand(random, rules, "<line>") for _ in range(random.choice((1, 2, 3, 4, 6)))]
    last = _RETURNS_ALL if random.random() < 0.6 else "return " + expand(random, rules, "<step>")
    return Snippet(topic, (*lines, last), is_described=random.random() < 0.25)


def _from_elsewhere(topic: str, make: Callable[[Random], str], random: Random) -> Snippet:
    return Snippet(topic, (make(random),), is_described=True)


def _topics() -> dict[str, Callable[[Random], Snippet]]:
    values = read_rules(_RULES / "values.rules")
    topics: dict[str, Callable[[Random], Snippet]] = {}
    for path in sorted(_RULES.glob("*.rules")):
        if path.stem != "values":
            topics[path.stem] = partial(_from_rules, path.stem, {**values, **read_rules(path)})
    others = {**OF_VALUES, **{name: make for name, make in OF_MODULES.items() if name not in _ELSEWHERE}}
    for name, make in others.items():
        topics[f"module {name}"] = partial(_from_elsewhere, f"module {name}", make)
    return topics


TOPICS: Final[Mapping[str, Callable[[Random], Snippet]]] = _topics()
"""What makes a snippet of a topic; those of `module …` are those that compare modules without a database."""

OWN_TOPICS: Final = tuple(topic for topic in TOPICS if not topic.startswith("module "))


def snippet(random: Random, topics: tuple[str, ...]) -> Snippet:
    """Make a snippet.

    Parameters:
        random: The source of choices.
        topics: Names of `TOPICS`; those with rules here come nine times as often as those of modules.

    Returns:
        The snippet.
    """
    own = [topic for topic in topics if topic in OWN_TOPICS]
    others = [topic for topic in topics if topic not in OWN_TOPICS]
    chosen = own if own and (not others or random.random() < 0.9) else others
    return TOPICS[random.choice(chosen)](random)
