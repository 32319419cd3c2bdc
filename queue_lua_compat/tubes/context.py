"""Objects that all tubes of a queue share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from iproto_server import Box
from queue_lua_compat.tubes.consumers import Consumers
from queue_lua_compat.tubes.sessions import Sessions
from queue_lua_compat.tubes.statistics import Statistics


@dataclass(frozen=True, slots=True)
class TubeContext:
    """Objects that all tubes share.

    Parameters:
        box: the box.
        statistics, sessions, consumers: those of the queue.
        is_running: returns whether the queue is running; if not, it logs the method name it is given.
        forget: called with the name of a tube that is being dropped.
        tubes: all tubes by name.
        dead_letters_of: returns the tube of the dead letters of the tube with a name, creating it unless it
            exists.
    """

    box: Box
    statistics: Statistics
    sessions: Sessions
    consumers: Consumers
    is_running: Callable[[str], bool]
    forget: Callable[[str], object]
    tubes: Mapping[str, Any]
    dead_letters_of: Callable[[str], Any]
