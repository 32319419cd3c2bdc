"""Objects that all tubes of a queue share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from iproto_server import Box
from queue_lua_compat.tubes.statistics import Statistics
from queue_lua_compat.tubes.system.consumers import Consumers
from queue_lua_compat.tubes.system.sessions import Sessions


class Tubes(dict[str, Any]):
    """The running tubes by name; after a reload, a stored tube starts at the latest when it is looked up.

    Attributes:
        start_stored: starts the stored tube with a name, and returns it, or None if there is none; None when
            all stored tubes run.
    """

    start_stored: Callable[[object], Any] | None = None

    def running(self, name: str) -> Any:
        """Return a running tube, or None."""
        return super().get(name)

    def get(self, name: object, default: Any = None) -> Any:
        """Return a tube, or `default`."""
        try:
            return self[name]  # type: ignore[index]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        """Whether there is a tube."""
        return super().__contains__(name) or (self.start_stored is not None and self.get(name) is not None)

    def __missing__(self, name: object) -> Any:
        """Start a stored tube."""
        tube = None if self.start_stored is None else self.start_stored(name)
        if tube is None:
            raise KeyError(name)
        return tube


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
