"""Choices that Hypothesis makes, and makes simpler."""

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
    """Makes choices; the first of several is the simplest, which a difference is reduced to.

    Parameters:
        draw: Hypothesis' function that draws from a strategy.
    """

    __slots__ = ("draw",)

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def below(self, count: int) -> int:
        """A number from 0 and below another."""
        return self.draw(_below(count))

    def pick(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[self.draw(_below(len(options)))]

    def rarely(self, one_in: int) -> bool:
        """Whether something happens that does so once in so many times."""
        return self.draw(_below(one_in)) == one_in - 1

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """Several different ones, in any order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]


def drawn(function: Callable[[Draws], T]) -> st.SearchStrategy[T]:
    """The strategy of what a function makes of draws."""

    @st.composite
    def compose(draw: st.DrawFn) -> T:
        return function(Draws(draw))

    return compose()


def sequence(draws: Draws, one: Callable[[Draws], Any], lists: int = 6, longest: int = 10) -> list[Any]:
    """Many things, from a few lists: so there are many as a rule, and each can be left out.

    Parameters:
        draws: What draws.
        one: Makes one of them.
        lists: How many lists.
        longest: How many things a list has at most.
    """
    strategy = st.lists(drawn(one), max_size=longest)
    return [each for _ in range(lists) for each in draws.draw(strategy)]
