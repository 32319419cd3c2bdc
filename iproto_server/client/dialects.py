"""The procedures of each queue, without I/O: names, arguments and the shape of results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from iproto_server.client.errors import QueueError, QueueFull, Unsupported

VIEW_OF_SPACES: Final = 281
"""The id of `_vspace`, which shows the spaces that the user may read."""

BY_NAME: Final = 2
"""The number of its index by name."""

_POLICY_OPTIONS: Final = frozenset(
    {"release_limit", "release_limit_policy", "retry", "unique_key", "unique_for"}
)
"""The options of a put that this server has for all queues; the queue module ignores them."""

_WITH_TIMES: Final = frozenset({"ttl", "ttr", "pri", "delay"})
_PUT_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "fifo": _POLICY_OPTIONS,
    "fifottl": _POLICY_OPTIONS | _WITH_TIMES,
    "limfifottl": _POLICY_OPTIONS | _WITH_TIMES | {"timeout"},
    "utube": _POLICY_OPTIONS | {"utube"},
    "utubettl": _POLICY_OPTIONS | _WITH_TIMES | {"utube"},
}
"""The options of a put, by type of tube."""

_ENDLESS: Final = 365 * 86_400
"""Seconds from which a `ttr` is none: without one, the module stores a hundred years."""


class Call(NamedTuple):
    """A request: the procedure's name and its arguments."""

    name: str
    arguments: list[Any]


class Taken(NamedTuple):
    """A task as a queue delivers it."""

    id: Any
    data: Any


class Outcome(NamedTuple):
    """What the server has done with a failed task; only this server tells.

    Attributes:
        attempts: how many attempts have failed, as the server has counted them; None: it has not.
        delay: the seconds until the task is ready.
        ended: if it is not tried again: "is buried", "is a dead letter" or "was deleted"; else None.
    """

    attempts: int | None
    delay: float
    ended: str | None


_ENDS: Final[Mapping[str, str]] = {"bury": "is buried", "DLQ": "is a dead letter", "DELETE": "was deleted"}


@dataclass(frozen=True)
class Dialect(ABC):
    """The abilities of a queue, and its calls.

    Parameters:
        title: what messages call it.
        put_options: the options of a put; None: unknown, so that the server checks them.
        delayed_release: a released task can be delayed.
        can_bury: a task can be set aside.
        can_touch: a task may have a `ttr`, which a touch extends.
        ttr: seconds after which a task is taken away, unless its put says otherwise; None: never.
        prefix: what the names of its procedures begin with.
    """

    title: str
    put_options: frozenset[str] | None
    delayed_release: bool
    can_bury: bool
    can_touch: bool
    ttr: float | None
    prefix: str

    def put(self, data: object, options: Mapping[str, object]) -> Call:
        """Return the call that adds a task.

        Raises:
            ValueError: the queue has no such option.
        """
        if self.put_options is not None:
            for name in options:
                if name not in self.put_options:
                    known = ", ".join(sorted(self.put_options)) or "none"
                    raise ValueError(f"put: {self.title} has no option {name!r}; its options: {known}")
        return Call(self._name("put"), [data, dict(options)] if options else [data])

    def take(self, timeout: float) -> Call:
        """Return the call that takes a task, waiting up to `timeout` seconds for one."""
        return Call(self._name("take"), [timeout])

    def ack(self, task_id: object) -> Call:
        """Return the call that removes a task."""
        return Call(self._name("ack"), [task_id])

    def release(self, task_id: object, delay: float) -> Call:
        """Return the call that gives a task back.

        Raises:
            ValueError: the delay is negative.
            Unsupported: there is a delay, and the queue cannot delay a released task.
        """
        if not delay >= 0:
            raise ValueError(f"release: the delay is at least 0 seconds, not {delay!r}")
        if delay > 0 and not self.delayed_release:
            raise Unsupported(f"release: {self.title} cannot delay a released task")
        return Call(self._name("release"), [task_id, {"delay": delay}] if delay > 0 else [task_id])

    def fail(self, task_id: object, delay: float, max_failures: int | None) -> Call:
        """Return the call that gives a failed task back.

        This server then applies the queue's `retry` rather than the delay, counts the failures, and answers
        what it has done (`outcome`). Tarantool ignores the options that it does not know.

        Parameters:
            task_id: the task's id.
            delay: seconds until it is ready, if the queue has no `retry`.
            max_failures: after so many failures the server buries it; None: never.
        """
        options: dict[str, object] = {"failed": True}
        if delay > 0 and self.delayed_release:
            options["delay"] = delay
        if max_failures is not None and self.can_bury:
            options["max_failures"] = max_failures
        return Call(self._name("release"), [task_id, options])

    def outcome(self, values: Sequence[Any]) -> Outcome | None:
        """Return the answer to `fail`; None if the server does not tell."""
        told = self._failure(values[0]) if values else None
        if not isinstance(told, Mapping):
            return None
        return Outcome(
            told.get("attempts"), float(told.get("delay") or 0.0), _ENDS.get(told.get("ended") or "")
        )

    def bury(self, task_id: object) -> Call:
        """Return the call that sets a task aside.

        Raises:
            Unsupported: the queue cannot bury.
        """
        if not self.can_bury:
            raise Unsupported(f"bury: {self.title} cannot bury tasks")
        return Call(self._name("bury"), [task_id])

    def touch(self, task_id: object, seconds: float) -> Call:
        """Return the call that lets the worker keep a task for longer.

        On this server the task's stored `ttr` stays as it is; Tarantool's module adds the seconds to it, too.

        Raises:
            ValueError: the number is not positive.
            Unsupported: the queue takes no task away from its worker.
        """
        if not seconds > 0:
            raise ValueError(f"touch: the time is more than 0 seconds, not {seconds!r}")
        if not self.can_touch:
            raise Unsupported(f"touch: {self.title} has no ttr")
        return Call(self._name("touch"), [task_id, seconds, {"keep_ttr": True}])

    def taken(self, values: Sequence[Any]) -> Taken | None:
        """Return the task among a call's results; None if there is none.

        Raises:
            QueueError: it does not look like a task of this queue.
        """
        if not values or values[0] is None:
            return None
        try:
            return self._task(values[0])
        except (KeyError, IndexError, TypeError):
            raise QueueError(f"{self.title} returned no task but {values[0]!r}") from None

    def added(self, values: Sequence[Any]) -> Any:
        """Return the id of the task that a put has added.

        Raises:
            QueueFull: there was no room for it.
        """
        task = self.taken(values)
        if task is None:
            raise QueueFull(f"put: {self.title} is full")
        return task.id

    def lacks(self, max_failures: int | None) -> list[str]:
        """Return what a worker must do without, as sentences."""
        found = []
        if not self.delayed_release:
            found.append("it cannot delay released tasks, so the worker waits before it releases one")
        if max_failures is not None and not self.can_bury:
            found.append("it cannot bury tasks, so max_failures has no effect")
        if not self.can_touch:
            found.append("it has no ttr, so a task stays with its worker until that disconnects")
        return found

    def _name(self, method: str) -> str:
        return f"{self.prefix}{method}"

    @abstractmethod
    def _task(self, value: Any) -> Taken:
        """Return a task from a call's result."""

    @abstractmethod
    def _failure(self, value: Any) -> object:
        """Return what the result of `fail` tells beside the task."""


class Tutorial(Dialect):
    """The tutorial's queue."""

    def __init__(self) -> None:
        options = _POLICY_OPTIONS | {"delay", "ttr"}
        super().__init__("the tutorial's queue", options, True, False, True, None, "queue.")

    def touch(self, task_id: object, seconds: float) -> Call:
        """Return the call that restarts the task's time to run, however long that is."""
        return Call(super().touch(task_id, seconds).name, [task_id])

    def lacks(self, max_failures: int | None) -> list[str]:
        """See `Dialect`."""
        return [*super().lacks(max_failures), "if its tasks have a ttr, the worker must be given it"]

    def _task(self, value: Any) -> Taken:
        return Taken(value["id"], value["data"])

    def _failure(self, value: Any) -> object:
        return value.get("failure") if isinstance(value, Mapping) else None


class Tube(Dialect):
    """A tube of the queue module.

    Parameters:
        name: its name.
        kind: its type, `fifottl`; other types than the module's own are taken for ones without any extras.
        ttr: seconds until a task is taken away from its worker; None: never.
    """

    def __init__(self, name: str, kind: str, ttr: float | None) -> None:
        options = _PUT_OPTIONS.get(kind)
        with_times = options is not None and "ttr" in options
        own_ttr = ttr if with_times else None
        super().__init__(
            f"tube {name} ({kind})", options, with_times, True, with_times, own_ttr, f"queue.tube.{name}:"
        )

    def _task(self, value: Any) -> Taken:
        return Taken(value[0], value[2])

    def _failure(self, value: Any) -> object:
        return value[3] if isinstance(value, Sequence) and len(value) > 3 else None


def tube_from_row(name: str, row: Sequence[Any] | None) -> Tube:
    """Make a tube from its row in `_queue`.

    Parameters:
        name: the tube's name.
        row: name, number, space, type, options; None: there is none.

    Raises:
        QueueError: there is no such tube.
    """
    if row is None:
        raise QueueError(f"there is no tube {name!r}")
    ttr = row[4].get("ttr") if isinstance(row[4], Mapping) else None
    return Tube(name, row[3], float(ttr) if ttr is not None and ttr < _ENDLESS else None)


def no_tubes(user: str | None) -> QueueError:
    """Return the error for a server whose tubes the user does not see."""
    return QueueError(
        f"user {user or 'guest'} sees no space _queue: the server has no tubes, or the user no rights "
        "for them (queue.tube.NAME:grant(user, {call = true}))"
    )
