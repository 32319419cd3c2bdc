"""Random choices that Hypothesis makes and simplifies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class Draws:
    """Makes choices; the first of several is the simplest, to which a difference is reduced.

    Parameters:
        draw: Hypothesis' function that draws from a strategy.
    """

    __slots__ = ("draw",)

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def below(self, count: int) -> int:
        """Draw an integer from 0 up to, not including, a limit."""
        return self.draw(_below(count))

    def pick(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[self.draw(_below(len(options)))]

    def rarely(self, one_in: int) -> bool:
        """Draw whether an event of a given rarity happens."""
        return self.draw(_below(one_in)) == one_in - 1

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Choose several different ones, in any order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]


def drawn(function: Callable[[Draws], T]) -> st.SearchStrategy[T]:
    """Make a strategy of a function of draws."""

    @st.composite
    def compose(draw: st.DrawFn) -> T:
        return function(Draws(draw))

    return compose()


def sequence(draws: Draws, one: Callable[[Draws], Any], lists: int = 6, longest: int = 10) -> list[Any]:
    """Draw many things in a few lists, so that there are usually many, and each can be omitted.

    Parameters:
        draws: The source of choices.
        one: Draws one of them.
        lists: The number of lists.
        longest: The maximum length of a list.
    """
    strategy = st.lists(drawn(one), max_size=longest)
    return [each for _ in range(lists) for each in draws.draw(strategy)]
