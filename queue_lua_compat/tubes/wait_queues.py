"""The lines of those who wait in tubes. They live on while the code is loaded anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from iproto_server import Box, WaitQueue

_KEPT: Final = "queue_lua_compat.tubes.wait_queues"

TAKING: Final = "take"
PUTTING: Final = "put"


def line_of(box: Box, tube: str, purpose: str, resume: Callable[..., object]) -> WaitQueue:
    """The line of those who wait in a tube for the same thing.

    Parameters:
        box: the box.
        tube: the tube's name.
        purpose: what they wait for: to take, or to put.
        resume: what they try when they are woken.
    """
    line = _lines(box).setdefault((tube, purpose), WaitQueue(box))
    line.resume_with(resume)
    return line


def forget_lines(box: Box, tube: str) -> None:
    """The tube is dropped; once that has committed, nobody waits in it any more."""
    for purpose in (TAKING, PUTTING):
        box.on_commit(partial(_lines(box).pop, (tube, purpose), None))


def _lines(box: Box) -> dict[tuple[str, str], WaitQueue]:
    return box.keep(_KEPT, dict)
