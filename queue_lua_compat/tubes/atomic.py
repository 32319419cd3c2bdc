"""Methods that take effect completely or not at all, even if the caller catches their exceptions."""

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
    """Decorate a method to undo its changes when it raises, while the caller's transaction continues.

    A client's call is a transaction, or a separately undone part of a stream's transaction, so it can use the
    undecorated method, `__wrapped__`.
    """

    @wraps(method)
    def call(self: Self, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        with self.box.in_transaction():
            return method(self, *arguments, **options)

    return call
