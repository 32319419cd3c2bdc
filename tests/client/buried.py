"""Waiting for buried tasks."""

from __future__ import annotations

from iproto_server.client import Backoff
from tests.client.support import (
    tube_states,
    wait_until,
)

AT_ONCE = Backoff(first=0)


def stored(address: str, tube: str) -> dict[str, int]:
    """Return how many tasks of a tube have each state, without those that are done."""
    return {state: number for state, number in tube_states(address, tube).items() if state != "done"}


def _wait_for_buried(address: str) -> None:
    wait_until(lambda: stored(address, "jobs") == {"buried": 1})
