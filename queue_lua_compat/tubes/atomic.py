"""Calls that are done wholly or not at all, whoever catches what they raise."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from iproto_server import Box


class _WithBox(Protocol):
    box: Box


Self = TypeVar("Self", bound=_WithBox)
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def atomic(
    method: Callable[Concatenate[Self, Arguments], Result],
) -> Callable[Concatenate[Self, Arguments], Result]:
    """Have a method undo what it has changed when it raises, though the caller's transaction goes on.

    A client's call is a transaction, or a part of a stream's, that is undone by itself: it needs no more than
    the method that is decorated, `__wrapped__`.
    """

    @wraps(method)
    def call(self: Self, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        with self.box.in_transaction():
            return method(self, *arguments, **options)

    return call
