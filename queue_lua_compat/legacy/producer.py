"""The legacy queue's functions for producers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from iproto_server import Box, BoxError, packed_arguments
from queue_lua_compat.legacy.arguments import microseconds, several, stored_priority, text
from queue_lua_compat.legacy.queue_space import QueueSpace
from queue_lua_compat.legacy.space_rows import create_data_index
from queue_lua_compat.legacy.state import QueueState
from queue_lua_compat.legacy.task import (
    DELAYED,
    DONE,
    ID,
    IPRI,
    MIDDLE_IPRI,
    READY,
    STATUSES,
    Task,
    task_of,
)
from queue_lua_compat.policies.options import TASK_OPTIONS, refuse_unknown

_TIME_TO_LIVE: Final = 25 * 86_400
_TIME_TO_RUN: Final = 60
"""The default times in seconds."""

OPTIONS: Final = ("delay", "ttl", "ttr", "pri")
"""The legacy queue's own options of put, in the order of its arguments."""


class Producer:
    """Functions for producers.

    Parameters:
        queue: the queue.
    """

    def __init__(self, queue: QueueState) -> None:
        self._queue = queue

    @packed_arguments(*range(6, 32))
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
        create_data_index(box, queue_space.space)
        status = DELAYED if microseconds(delay, "delay") else READY
        present = queue_space.space.index["data"].first([text(tube, "tube"), status, data[0]])
        if present is not None:
            return task_of(present)
        return self._put(queue_space, tube, "put", MIDDLE_IPRI, delay, ttl, ttr, pri, *data)

    def put_with(
        self,
        box: Box,
        space: object = None,
        tube: object = None,
        options: object = None,
        *data: Any,
    ) -> Task:
        """Put a task with options by name.

        Parameters:
            space, tube, data: as for `put`.
            options: a map of `delay`, `ttl`, `ttr`, `pri`, and those of `policies.options`.

        Returns: the task; that which was put with the same `unique_key`, if there is one.

        Raises:
            BoxError: an option is unknown or wrong, or the tube is draining.
        """
        if options is None or options == []:
            options = {}
        if not isinstance(options, Mapping):
            raise BoxError.procedure("options must be a map")
        queue_space, tube = self._queue.registry.find(space), text(tube, "tube")
        refuse_unknown(options, TASK_OPTIONS | {*OPTIONS}, "put_with")
        policy = queue_space.policy_of(tube)
        if policy.is_draining:
            raise policy.refusal()
        own = policy.task_options(options, OPTIONS)
        found = None if own is None else policy.find_unique(own)
        if found is not None:
            task_id, exists = found
            row = queue_space.space.get(task_id) if exists else None
            return [task_id, tube, STATUSES[DONE], *data] if row is None else task_of(row)
        given = (options.get(name) for name in OPTIONS)
        task = self._put(queue_space, tube, "put", MIDDLE_IPRI, *given, *data)
        if own is not None:
            policy.task_put(task[ID], own, options)
        return task

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
        policy = queue_space.policies.get(tube)
        if policy is not None and policy.is_draining:
            raise policy.refusal()
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
