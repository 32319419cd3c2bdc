"""Triggers that note what they hear, or fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, Tuple

Told = list[tuple[Any, Any]]


class Refusal(Exception):
    """The error that triggers of these tests raise."""


def listener(told: Told) -> Callable[[Any, Any], None]:
    """A trigger that records its arguments."""

    def trigger(old: Tuple | None, new: Tuple | None) -> None:
        told.append((None if old is None else list(old), None if new is None else list(new)))

    return trigger


def fail(old: Tuple | None, new: Tuple | None) -> object:
    """A trigger that raises."""
    raise Refusal


def attempt(box: Box, function: Callable[..., object], *arguments: object) -> None:
    """Run a procedure that a trigger refuses."""
    with pytest.raises(Refusal):
        box.run(box.session.background, function, *arguments)
