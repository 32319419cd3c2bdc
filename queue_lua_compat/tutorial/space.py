"""The space of the tutorial's queue: its format, its indexes, and the ids in it."""

from __future__ import annotations

from typing import Final

from iproto_server import Box, Space

SPACE: Final = "queue"

READY: Final = "R"
TAKEN: Final = "T"
WAITING: Final = "W"
GONE: Final = "-"
"""The status of a task in an answer that does not exist any more."""

STATUS: Final = 1
RUN_AT: Final = 2

_FORMAT: Final = (("id", "number"), ("status", "string"), ("runat", "number"), ("data", "*"))
_YEAR_NS: Final = 366 * 86_400 * 1_000_000_000


def create_space(box: Box, name: str = SPACE) -> Space:
    """Create the space and its indexes unless they exist.

    Parameters:
        box: the box.
        name: the name of the space.

    Returns: the space.
    """
    space = box.schema.create_space(name, if_not_exists=True, format=_FORMAT)
    space.create_index("primary", parts=[("id", "number")], if_not_exists=True)
    space.create_index("status", parts=[("status", "string"), ("id", "number")], if_not_exists=True)
    space.create_index("runat", parts=[("runat", "number"), ("id", "number")], if_not_exists=True)
    return space


def newest_id(box: Box, space: Space) -> int:
    """Find the greatest id that the queue can have assigned, so that ids keep rising after a restart.

    Parameters:
        box: the box.
        space: the space of the queue.

    Returns: the id, or 0. Ids more than a year ahead of the clock are ignored: clients have inserted those.
    """
    ahead = box.clock.time_ns() + _YEAR_NS
    for task in space.index[0].pairs([ahead], iterator="LE"):
        if isinstance(task[0], int):
            return max(task[0], 0)
    return 0
