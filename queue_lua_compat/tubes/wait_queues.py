"""The wait queues of tubes. They survive a reload."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from iproto_server import Box, WaitQueue

_KEPT: Final = "queue_lua_compat.tubes.wait_queues"

TAKING: Final = "take"
PUTTING: Final = "put"


def wait_queue_of(box: Box, tube: str, purpose: str, resume: Callable[..., object]) -> WaitQueue:
    """Find or create a wait queue of a tube.

    Parameters:
        box: the box.
        tube: the tube's name.
        purpose: `TAKING` for callers that wait for a task, `PUTTING` for those that wait for room.
        resume: called when a waiting call is woken.

    Returns: the wait queue.
    """
    queue = _wait_queues(box).setdefault((tube, purpose), WaitQueue(box))
    queue.resume_with(resume)
    return queue


def forget_wait_queues(box: Box, tube: str) -> None:
    """Remove the wait queues of a dropped tube once the running transaction has committed."""
    for purpose in (TAKING, PUTTING):
        box.on_commit(partial(_wait_queues(box).pop, (tube, purpose), None))


def _wait_queues(box: Box) -> dict[tuple[str, str], WaitQueue]:
    return box.keep(_KEPT, dict)
