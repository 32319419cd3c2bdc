"""Interprets the spaces of the three queues: their tasks, and the events of tasks.

`queue_kind` finds a kind of queue by its name. Each kind defines which spaces contain its tasks and what
their fields mean; `tasks.py` interprets a state, and `task_events.py` a history. All of it is Spark SQL.
"""

from __future__ import annotations

from pyspark_tarantool.queues.queue_kind import EVENTS, STATUSES, TASKS, QueueKind

__all__ = ["EVENTS", "STATUSES", "TASKS", "QueueKind", "queue_kind"]


def queue_kind(name: str) -> QueueKind:
    """Find a kind of queue.

    Parameters:
        name: `tutorial`, `legacy` or `tubes`.

    Raises:
        ValueError: If there is no such kind.
    """
    from pyspark_tarantool.queues.legacy import LegacyQueue
    from pyspark_tarantool.queues.tubes import Tubes
    from pyspark_tarantool.queues.tutorial import TutorialQueue

    kinds: dict[str, type[QueueKind]] = {kind.name: kind for kind in (TutorialQueue, LegacyQueue, Tubes)}
    if name not in kinds:
        raise ValueError(f"there is no queue {name!r}: there are {', '.join(kinds)}")
    return kinds[name]()
