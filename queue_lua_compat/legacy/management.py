"""The tubes of the legacy queue for operators."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from iproto_server import BoxError, Histogram, IteratorType, NamedQueues, TaskInfo, TaskState, Tuple
from queue_lua_compat.legacy.admin import Admin
from queue_lua_compat.legacy.producer import OPTIONS, Producer
from queue_lua_compat.legacy.queue_space import QueueSpace
from queue_lua_compat.legacy.space_rows import tubes_of
from queue_lua_compat.legacy.state import QueueState
from queue_lua_compat.legacy.task import (
    CBURY,
    CREATED,
    CTAKEN,
    DATA,
    DEFAULT_PRIORITY,
    HIGHEST_PRIORITY,
    ID,
    IPRI,
    MICROSECONDS,
    NEXT_EVENT,
    PRI,
    READY,
    STATUS,
    STATUSES,
    TTL,
    TTR,
    TUBE,
)
from queue_lua_compat.listed_tasks import NANOSECONDS, first_of_groups
from queue_lua_compat.managed_tasks import ManagedTasks
from queue_lua_compat.policies.queue_policy import DEAD_LETTERS

_STATES: Final = {stored: TaskState(name) for stored, name in STATUSES.items()}
_STATUSES: Final = {state: stored for stored, state in _STATES.items()}
_ORDER: Final = (IPRI, PRI, CREATED)


class ManagedLegacyTube(ManagedTasks):
    """A tube of a space, named `SPACE/TUBE`.

    Parameters:
        queue: the queue.
        queue_space: the space.
        tube: the name of the tube.
        producer, admin: the functions for clients.
    """

    dialect: ClassVar[str] = "legacy"
    repairs: ClassVar[frozenset[str]] = frozenset({"put", "release", "kick", "bury", "delete", "move"})

    def __init__(
        self, queue: QueueState, queue_space: QueueSpace, tube: str, producer: Producer, admin: Admin
    ) -> None:
        name = f"{queue_space.space.name}/{tube}"
        super().__init__(queue.box, name, "legacy", queue_space.times.of(tube), queue_space.policy_of(tube))
        self._queue = queue
        self._space = queue_space
        self._tube = tube
        self._producer = producer
        self._admin = admin

    @property
    def options(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return self.policy.task_option_names | {*OPTIONS}

    # -- figures --

    def counts(self) -> dict[TaskState, int]:
        """See `ManagedQueue`."""
        self._space.space.readable()
        count = self._space.in_order.tree.count
        return {state: count(IteratorType.EQ, [self._tube, stored]) for stored, state in _STATES.items()}

    def calls(self) -> dict[str, int]:
        """See `ManagedQueue`."""
        return dict(self._queue.statistics.counters.get((self._space.label, self._tube), {}))

    def oldest_ready(self) -> float | None:
        """See `ManagedQueue`."""
        index = self._space.in_order
        ready = [self._tube, READY]
        return self.oldest_of_groups(
            ((row[ID], row[CREATED] * 1000) for row in index.pairs([*ready, first[IPRI], first[PRI]]))
            for first in first_of_groups(index, {TUBE: self._tube, STATUS: READY}, (IPRI, PRI))
        )

    def consumers_waiting(self) -> int:
        """See `ManagedQueue`."""
        return len(self._space.wait_queues.get(self._tube, ()))

    def waits(self) -> Histogram | None:
        """See `ManagedQueue`. There are too many tubes to measure all."""
        return self.times.waits if self._tube in self._space.times else None

    def services(self) -> Histogram | None:
        """See `ManagedQueue`."""
        return self.times.services if self._tube in self._space.times else None

    # -- tasks --

    def info(self, row: Tuple) -> TaskInfo:
        """See `ManagedTasks`."""
        state = _STATES.get(row[STATUS])
        if state is None:
            raise BoxError.procedure(f"the task {row[ID]} has the unknown status {row[STATUS]!r}")
        is_taken = state == TaskState.TAKEN
        session = self._space.owners.sessions.get(row[ID]) if is_taken else None
        return TaskInfo(
            row[ID],
            state,
            list(row[DATA:]),
            row[CREATED] / MICROSECONDS,
            due=row[NEXT_EVENT] / MICROSECONDS if is_taken or state == TaskState.DELAYED else None,
            session=session,
            taken_at=None if session is None else self.taken_at(row),
            touched_at=self._space.owners.touched_at(row[ID]) if is_taken else None,
            details={
                "pri": HIGHEST_PRIORITY - DEFAULT_PRIORITY - row[PRI],
                "ttl": row[TTL] / MICROSECONDS,
                "ttr": row[TTR] / MICROSECONDS,
                "cbury": row[CBURY],
                "ctaken": row[CTAKEN],
                **self.policy.details(row[ID]),
            },
        )

    def taken_at(self, row: Tuple) -> float | None:
        """See `ManagedTasks`."""
        moment = self._space.owners.moment(row[ID])
        return None if moment is None else moment / NANOSECONDS

    def row(self, task_id: int | str) -> Tuple | None:
        """See `ManagedTasks`."""
        if not isinstance(task_id, str):
            raise BoxError.procedure(f'ids of the queue "{self.name}" are strings, not {task_id!r}')
        row = self._space.space.get(task_id)
        return row if row is not None and row[TUBE] == self._tube else None

    def in_order(self, state: TaskState | None, after: int | str | None) -> Iterator[Tuple]:
        """See `ManagedTasks`. Without a state, tasks are in the order of statuses, as ids are random."""
        index = self._space.in_order
        key: list[Any] = [self._tube] if state is None else [self._tube, _STATUSES[state]]
        if after is None:
            yield from index.pairs(key)
            return
        place = self.after(after)
        status = place[STATUS] if state is None else key[1]
        behind = [self._tube, status, *(place[field] for field in _ORDER)]
        for row in index.pairs(behind, iterator="GT"):
            if row[TUBE] != self._tube or (state is not None and row[STATUS] != status):
                return
            yield row

    # -- actions --

    def put(self, data: object, options: Mapping[str, object]) -> TaskInfo:
        """See `ManagedQueue`. A list becomes the fields of the task's data."""
        self.check_options(options)
        fields = data if isinstance(data, list | tuple) else [data]
        task = self._producer.put_with(self.box, self._space.space.id, self._tube, dict(options), *fields)
        return self.info_of_put(task[ID], data)

    def release(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        if task.state in (TaskState.READY, TaskState.DONE):
            raise self.already(task)
        released = self._space.make_ready(row)
        self._queue.count(self._space, row, "dig" if task.state == TaskState.BURIED else "release")
        return self.info(released)

    def bury(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        if task.state in (TaskState.BURIED, TaskState.DONE):
            raise self.already(task)
        buried = self._space.bury(row)
        self._queue.count(self._space, row, "bury")
        return self.info(buried)

    def delete(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        task = self.existing(task_id)[1]
        self._admin.delete(self.box, self._space.space.id, task_id)
        return task

    def kick(self, count: int) -> int:
        """See `ManagedQueue`."""
        return self.box.in_one_slice(self._admin.kick_steps(self._space, self._tube, count))

    def requeue(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        if self.dead_letters_of is None:
            raise self.lacks("requeue")
        row = self.existing(task_id)[0]
        tube = self._tube.removesuffix(DEAD_LETTERS)
        requeued = self._space.change_tube(row, tube)
        if self.policy.has_rows:
            self.policy.task_removed(row[ID])
        return ManagedLegacyTube(self._queue, self._space, tube, self._producer, self._admin).info(requeued)


def managed_tubes(queue: QueueState, producer: Producer, admin: Admin) -> NamedQueues:
    """Return all tubes that have tasks, waiting calls or a policy, or were used since the start.

    Parameters:
        queue: the queue.
        producer, admin: its functions for clients.
    """

    def find(name: str) -> ManagedLegacyTube | None:
        for queue_space in queue.registry.spaces.values():
            tube = name.removeprefix(f"{queue_space.space.name}/")
            if tube != name and _is_in_use(queue, queue_space, tube):
                return ManagedLegacyTube(queue, queue_space, tube, producer, admin)
        return None

    return NamedQueues(_names(queue), find)


def _names(queue: QueueState) -> Iterator[str]:
    """Yield the name of each tube in use once; others may change the tubes meanwhile."""
    for queue_space in list(queue.registry.spaces.values()):
        prefix, seen = f"{queue_space.space.name}/", set[str]()
        for tube in itertools.chain(
            tubes_of(queue_space.space),
            [tube for tube, waiting in queue_space.wait_queues.items() if waiting],
            [tube for label, tube in queue.statistics.counters if label == queue_space.label],
            [tube for tube, policy in queue_space.policies.items() if policy.is_set],
        ):
            if tube not in seen:
                seen.add(tube)
                yield prefix + tube


def _is_in_use(queue: QueueState, queue_space: QueueSpace, tube: str) -> bool:
    policy = queue_space.policies.get(tube)
    return (
        queue_space.in_order.first([tube]) is not None
        or bool(queue_space.wait_queues.get(tube))
        or (queue_space.label, tube) in queue.statistics.counters
        or (policy is not None and policy.is_set)
    )


def tube_by_name(queue: QueueState, producer: Producer, admin: Admin, name: str) -> ManagedLegacyTube | None:
    """Return a tube of an existing space by its name `SPACE/TUBE`, also if it was never used; else None.

    Parameters:
        queue: the queue.
        producer, admin: its functions for clients.
        name: the name; of several spaces that fit, the one with the longest name counts.
    """
    for queue_space in sorted(queue.registry.spaces.values(), key=lambda each: -len(each.space.name)):
        prefix = f"{queue_space.space.name}/"
        if name.startswith(prefix) and len(name) > len(prefix):
            return ManagedLegacyTube(queue, queue_space, name.removeprefix(prefix), producer, admin)
    return None
