"""Calls of one tube's procedures."""

from __future__ import annotations

from typing import Any

from tests.queue_lua_compat.tubes.world import Outcome, World


class Talk:
    """Calls of one tube's procedures, on either kind of server.

    Parameters:
        world: the server and its clients.
        tube: the name of the tube.
    """

    def __init__(self, world: World, tube: str) -> None:
        self.world = world
        self.tube = tube

    def __call__(self, who: str, method: str, *arguments: Any) -> Outcome:
        return self.world.call(who, f"queue.tube.{self.tube}:{method}", *arguments)

    def start(self, who: str, method: str, *arguments: Any) -> None:
        """Call without waiting."""
        self.world.start(who, f"queue.tube.{self.tube}:{method}", *arguments)

    def statistics(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the numbers of tasks and calls, without zeros."""
        (statistics,) = self.world.call("operator", "queue.statistics", self.tube)
        tasks, calls = statistics["tasks"], statistics["calls"]
        return (
            {name: number for name, number in tasks.items() if number},
            {name: number for name, number in calls.items() if number},
        )
