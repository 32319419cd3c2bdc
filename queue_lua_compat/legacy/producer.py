"""The legacy queue's functions for producers."""

from __future__ import annotations

import os
from typing import Any, Final

from iproto_server import Box, BoxError
from queue_lua_compat.legacy.arguments import microseconds, several, stored_priority, text
from queue_lua_compat.legacy.queue_space import QueueSpace
from queue_lua_compat.legacy.state import QueueState
from queue_lua_compat.legacy.task import DELAYED, IPRI, MIDDLE_IPRI, READY, Task, task_of

_TIME_TO_LIVE: Final = 25 * 86_400
_TIME_TO_RUN: Final = 60
"""The default times in seconds."""


class Producer:
    """Functions for producers.

    Parameters:
        queue: the queue.
    """

    def __init__(self, queue: QueueState) -> None:
        self._queue = queue

    def put(self, box: Box, space: object = None, tube: object = None, *task: Any) -> Task:
        """Put a task.

        Parameters:
            space: the space.
            tube: the tube.
            task: delay, ttl, ttr, pri, and the fields of its data. Durations are in seconds; the time to live
                starts after the delay. Missing values, nil, zero and negative ones mean the default: no
                delay, 25 days, 60 seconds. Priorities are -127 to 127, highest first.

        Returns: the task.
        """
        return self._put(self._queue.registry.find(space), tube, "put", MIDDLE_IPRI, *task)

    def urgent(
        self, box: Box, space: object = None, tube: object = None, delay: object = None, *task: Any
    ) -> Task:
        """Put a task ahead of all ready ones. With a delay this is `put`.

        Parameters:
            space, tube, delay, task: as for `put`.

        Returns: the task.
        """
        queue_space = self._queue.registry.find(space)
        ipri = MIDDLE_IPRI
        if not microseconds(delay, "delay"):
            first = queue_space.in_order.first([text(tube, "tube"), READY])
            ipri = min(MIDDLE_IPRI if first is None else first[IPRI], MIDDLE_IPRI) - 1
        return self._put(queue_space, tube, "urgent", ipri, delay, *task)

    def put_unique(
        self,
        box: Box,
        space: object = None,
        tube: object = None,
        delay: object = None,
        ttl: object = None,
        ttr: object = None,
        pri: object = None,
        *data: Any,
    ) -> Task:
        """Put a task unless a ready one (with a delay: a delayed one) has the same first field of
        data.

        Parameters:
            space, tube, delay, ttl, ttr, pri, data: as for `put`.

        Returns: the new task, or the existing one.

        Raises:
            BoxError: the task has no data.
        """
        queue_space = self._queue.registry.find(space)
        if not data or data[0] is None:
            raise BoxError.procedure("Can not put unique task without data")
        queue_space.create_data_index()
        status = DELAYED if microseconds(delay, "delay") else READY
        present = queue_space.space.index["data"].first([text(tube, "tube"), status, data[0]])
        if present is not None:
            return task_of(present)
        return self._put(queue_space, tube, "put", MIDDLE_IPRI, delay, ttl, ttr, pri, *data)

    def put_many(
        self,
        box: Box,
        space: object = None,
        tube: object = None,
        delay: object = None,
        ttl: object = None,
        ttr: object = None,
        pri: object = None,
        *tasks: Any,
    ) -> list[Task]:
        """Put many tasks, or none if one is refused.

        Parameters:
            space, tube, delay, ttl, ttr, pri: as for `put`, for all tasks.
            tasks: a list of tasks, or the tasks as arguments: each a list of data fields, or a single field.

        Returns: the tasks.
        """
        with box.in_transaction():
            queue_space = self._queue.registry.find(space)
            return [
                self._put(
                    queue_space,
                    tube,
                    "put",
                    MIDDLE_IPRI,
                    *(delay, ttl, ttr, pri),
                    *(data if isinstance(data, list) else (data,)),
                )
                for data in several(tasks)
            ]

    def _put(
        self,
        queue_space: QueueSpace,
        tube: object,
        counter: str,
        ipri: int,
        delay: object = None,
        ttl: object = None,
        ttr: object = None,
        pri: object = None,
        *data: Any,
    ) -> Task:
        tube = text(tube, "tube")
        wait = microseconds(delay, "delay")
        life = microseconds(ttl, "ttl", _TIME_TO_LIVE) + wait
        now = queue_space.now()
        created = queue_space.creation(now)
        row = queue_space.space.insert(
            [
                os.urandom(16).hex(),
                tube,
                DELAYED if wait else READY,
                now + wait if wait else created + life,
                ipri,
                stored_priority(pri),
                0,
                created,
                life,
                microseconds(ttr, "ttr", _TIME_TO_RUN),
                0,
                0,
                *data,
            ]
        )
        self._queue.statistics.count(queue_space.label, tube, counter)
        return task_of(row)
