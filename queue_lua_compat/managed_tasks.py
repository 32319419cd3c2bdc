"""The common part of the queues that operators see whose durations and policies this package keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from iproto_server import Box, QueueState
from queue_lua_compat.listed_tasks import ListedTasks
from queue_lua_compat.policies.queue_policy import QueuePolicy
from queue_lua_compat.task_times import TaskTimes

_OF_ALL: Final = frozenset({"pause", "drain", "resume", "configure"})
"""The actions on queues, which all have."""


class ManagedTasks(ListedTasks):
    """A queue for operators; see `iproto_server.ManagedQueue`.

    Parameters:
        box: the box.
        name: the queue's name.
        kind: its type.
        times: its durations.
        policy: its policy.
    """

    repairs: ClassVar[frozenset[str]]
    """The actions on tasks that the dialect has."""

    def __init__(self, box: Box, name: str, kind: str, times: TaskTimes, policy: QueuePolicy) -> None:
        super().__init__(box, name, kind)
        self.times = times
        self.policy = policy

    @property
    def actions(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return self.repairs | _OF_ALL | (frozenset() if self.dead_letters_of is None else {"requeue"})

    # -- the policy --

    @property
    def state(self) -> QueueState:
        """See `ManagedQueue`."""
        return self.policy.state

    @property
    def settings(self) -> Mapping[str, object]:
        """See `ManagedQueue`."""
        return self.policy.given

    @property
    def dead_letters_of(self) -> str | None:
        """See `ManagedQueue`."""
        return self.policy.dead_letters_of

    def pause(self) -> None:
        """See `ManagedQueue`."""
        self.policy.set_state(QueueState.PAUSED)

    def drain(self) -> None:
        """See `ManagedQueue`."""
        self.policy.set_state(QueueState.DRAINING)

    def resume(self) -> None:
        """See `ManagedQueue`."""
        self.policy.set_state(QueueState.RUNNING)

    def configure(self, options: Mapping[str, object]) -> None:
        """See `ManagedQueue`."""
        self.policy.configure(options)

    # -- figures --

    def waits(self) -> Any:
        """See `ManagedQueue`."""
        return self.times.waits

    def services(self) -> Any:
        """See `ManagedQueue`."""
        return self.times.services

    def ready_since(self, task_id: Any) -> int | None:
        """See `ListedTasks`."""
        return self.times.ready_since.get(task_id)

    def suspicious_tasks(self) -> Mapping[int | str, int]:
        """See `WatchedQueue`."""
        return self.policy.suspicious_tasks()
