"""The applications that show operators the queues of Lua code."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from iproto_server.app import Application

GROUP: Final = "iproto_server.lua_queues"
"""The group of entry points that name such applications, as `MODULE:APP`."""


def queue_applications() -> list[Application]:
    """Return the applications of installed packages, for a server that has Lua."""
    return [entry_point.load() for entry_point in entry_points(group=GROUP)]
