"""Steps of calls whose length depends on the backlog; see `Box.in_slices`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from iproto_server import Steps

Task = TypeVar("Task")

TAKES: Final = 300
"""The maximum number of takes in a slice, 3 to 10 µs each."""
WOKEN_MAX: Final = 1000
"""The maximum number of tasks for a bulk take that has waited."""


def take_steps(take: Callable[[], Task | None], count: int) -> Steps[list[Task]]:
    """Take up to `count` tasks, one in each step.

    Parameters:
        take: takes a task for the current session; returns None if there is none, or the session has ended.
        count: the maximum number.

    Returns: the tasks.
    """
    tasks: list[Task] = []
    while len(tasks) < count:
        task = take()
        if task is None:
            break
        tasks.append(task)
        yield
    return tasks
