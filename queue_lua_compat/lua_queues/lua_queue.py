"""The common part of the queues that Lua code keeps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from iproto_server import Histogram, QueueState, TaskInfo, TaskState
from queue_lua_compat.listed_tasks import ListedTasks


class LuaQueue(ListedTasks):
    """A queue whose code is Lua: it has no policy, is not paused, and measures no durations."""

    @property
    def state(self) -> QueueState:
        """See `ManagedQueue`."""
        return QueueState.RUNNING

    @property
    def settings(self) -> Mapping[str, object]:
        """See `ManagedQueue`."""
        return {}

    @property
    def dead_letters_of(self) -> str | None:
        """See `ManagedQueue`."""
        return None

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Return the numbers of tasks for Graphite, by the counter's name."""

    def waits(self) -> Histogram | None:
        """See `ManagedQueue`."""
        return None

    def services(self) -> Histogram | None:
        """See `ManagedQueue`."""
        return None

    def pause(self) -> None:
        """See `ManagedQueue`."""
        raise self.lacks("pause")

    def drain(self) -> None:
        """See `ManagedQueue`."""
        raise self.lacks("drain")

    def resume(self) -> None:
        """See `ManagedQueue`."""
        raise self.lacks("resume")

    def configure(self, options: Mapping[str, object]) -> None:
        """See `ManagedQueue`."""
        raise self.lacks("configure")

    def existing_not(self, state: TaskState, task_id: int | str) -> TaskInfo:
        """Return a task that shall get a state. Raises BoxError if it has it, or does not exist."""
        task = self.existing(task_id)[1]
        if task.state == state:
            raise self.already(task)
        return task
