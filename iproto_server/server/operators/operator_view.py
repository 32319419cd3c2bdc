"""The server as operators see it: its status, its queues, and the holders of tasks."""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from iproto_server.box import Box
from iproto_server.box.api.slices import Steps
from iproto_server.managed_queue import Histogram, ManagedQueue, TaskInfo, TaskState, suspicious_tasks
from iproto_server.metrics.loop_lag import LoopLag
from iproto_server.program_version import PROGRAM_VERSION
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.checkpoints.checkpointer import Checkpointer
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.server.stats.readiness import Readiness
from iproto_server.storage.wal import WriteAheadLog

HELD_MAX: Final = 20_000
"""The maximum number of taken tasks that `sessions` looks at."""

Record = dict[str, Any]


class OperatorView:
    """Describes the server in maps and lists that can be packed.

    Parameters:
        state: the connections.
        box: the database.
        dispatcher: counts requests.
        log: the write-ahead log.
        checkpointer: takes snapshots.
        lag: measures the event loop's latency.
        queues: the queues.
        readiness: tells whether the server is ready.
    """

    def __init__(
        self,
        state: ServerState,
        box: Box,
        dispatcher: Dispatcher,
        log: WriteAheadLog,
        checkpointer: Checkpointer,
        lag: LoopLag,
        queues: ApplicationQueues,
        readiness: Readiness,
    ) -> None:
        self._state = state
        self._box = box
        self._dispatcher = dispatcher
        self._log = log
        self._checkpointer = checkpointer
        self._lag = lag
        self._queues = queues
        self._readiness = readiness

    def status(self) -> Record:
        """Return version, state, memory, traffic, files and event-loop latency. Times are in seconds."""
        box, state = self._box, self._state
        info = box.info()
        net = box.stat.net()
        problem = self._readiness.problem()
        return {
            "version": PROGRAM_VERSION,
            "protocol_version": box.version,
            "instance": info["uuid"],
            "pid": os.getpid(),
            "time": time.time(),
            "uptime": info["uptime"],
            "listen": list(box.listen),
            "read_only": box.is_read_only,
            "ready": problem is None,
            "not_ready_reason": problem,
            "generation": box.generation,
            "lsn": info["lsn"],
            "vclock": info["vclock"],
            "memory": {
                "process": box.memory.used(),
                "available": box.memory.limit(),
                "data": box.memory.data(),
                "index": box.memory.indexes(),
                "limit": state.config.memtx_memory,
            },
            "connections": {"current": len(state.connections), "total": state.admission.accepted},
            "requests": {
                "in_flight": state.in_flight,
                "total": net["REQUESTS"]["total"],
                "per_second": net["REQUESTS"]["rps"],
                "errors": self._dispatcher.errors,
            },
            "network": {
                name.lower(): {"total": net[name]["total"], "per_second": net[name]["rps"]}
                for name in ("SENT", "RECEIVED")
            },
            "wal": {
                "mode": state.config.wal_mode,
                "rows": self._log.position(),
                "bytes": self._log.size,
                "since_snapshot": self._log.size_since_checkpoint,
                "failures": self._log.failures,
            },
            "snapshots": {
                "is_running": self._checkpointer.is_running,
                "taken": self._checkpointer.taken,
                "failed": self._checkpointer.failed,
                "last_duration": self._checkpointer.last_duration,
                "last_rows": self._checkpointer.last_rows,
                "kept": len(box.kept_snapshots()),
            },
            "loop": {"latency": self._lag.last, "latency_max": self._lag.recent},
        }

    def queues(self, limit: int, after: str | None) -> Steps[list[Record]]:
        """Return the figures of queues in the order of their names, in slices.

        Parameters:
            limit: the maximum number.
            after: the name after which to begin.
        """
        queues = yield from self._queues.all_steps()
        found: list[Record] = []
        for queue in queues.after(after):
            if len(found) >= limit:
                break
            found.append(describe_queue(queue))
            yield
        return found

    def sessions(self, limit: int) -> Steps[list[Record]]:
        """Return the open sessions, and others that still hold tasks, with the tasks that each has taken.

        Parameters:
            limit: the maximum number of tasks shown for each; all are counted, up to `HELD_MAX`.
        """
        held: dict[int | None, _Held] = {}
        left = HELD_MAX
        queues = yield from self._queues.all_steps()
        for queue in queues:
            yield
            for task in walk(queue, TaskState.TAKEN, left):
                yield
                if task is not None:
                    left -= 1
                    held.setdefault(task.session, _Held(limit)).add(queue.name, task)
                if left < 1:
                    break
            if left < 1:
                break
        facade = self._box.session
        found: list[Record] = []
        for session in list(facade.sessions.values()):
            yield
            if session is facade.background:
                continue
            found.append(
                {
                    "id": session.id,
                    "user": session.user.name,
                    "peer": session.peer,
                    "type": session.kind,
                    "since": session.opened,
                    "waiting": len(session.on_close),
                    **held.pop(session.id, _Held(limit)).record(),
                }
            )
        for session_id, tasks in held.items():
            yield
            gone = {"id": session_id, "user": None, "peer": None, "type": None, "since": None, "waiting": 0}
            found.append({**gone, **tasks.record()})
        return found


class _Held:
    """The tasks that a session has taken: their number, and the oldest ones.

    Parameters:
        limit: the maximum number of tasks that are remembered.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        # The longest taken ones; the first one has been taken for the shortest time of these.
        self._oldest: list[tuple[float, int, Record]] = []

    def add(self, queue: str, task: TaskInfo) -> None:
        """Add a task."""
        self._count += 1
        shown = {
            "queue": queue,
            "id": task.id,
            "taken_at": task.taken_at,
            "touched_at": task.touched_at,
            "due": task.due,
        }
        entry = (-(task.taken_at or 0.0), -self._count, shown)
        if len(self._oldest) < self._limit:
            heapq.heappush(self._oldest, entry)
        else:
            heapq.heappushpop(self._oldest, entry)

    def record(self) -> Record:
        """Return the number, and the tasks that were taken first."""
        tasks = [task for _, _, task in sorted(self._oldest, reverse=True)]
        return {
            "taken": self._count,
            "oldest_taken_at": tasks[0]["taken_at"] if tasks else None,
            "tasks": tasks,
        }


def walk(
    queue: ManagedQueue,
    state: TaskState | None,
    most: int,
    after: int | str | None = None,
    older: float | None = None,
) -> Iterable[TaskInfo | None]:
    """Return tasks of a queue one by one; None for each that was looked at and is too young.

    A queue that cannot be walked (see `WalkedQueue`) returns up to `most` at once.
    """
    one_by_one: Callable[..., Iterable[TaskInfo | None]] | None = getattr(queue, "walk", None)
    if one_by_one is not None:
        return one_by_one(state, after=after, older=older)
    return queue.tasks(state, limit=most, after=after, older=older)


def describe_queue(queue: ManagedQueue) -> Record:
    """Return a queue's figures in values that can be packed."""
    return {
        "name": queue.name,
        "dialect": queue.dialect,
        "kind": queue.kind,
        "actions": sorted(queue.actions),
        "options": sorted(queue.options),
        "state": queue.state.value,
        "settings": dict(queue.settings),
        "dead_letters_of": queue.dead_letters_of,
        "tasks": {state.value: number for state, number in queue.counts().items()},
        "calls": dict(queue.calls()),
        "oldest_ready": queue.oldest_ready(),
        "waiting": queue.consumers_waiting(),
        "waits": _summary(queue.waits()),
        "services": _summary(queue.services()),
        "suspicious": [
            {"id": task_id, "connections": count} for task_id, count in suspicious_tasks(queue).items()
        ],
    }


def _summary(histogram: Histogram | None) -> Mapping[str, object] | None:
    if histogram is None:
        return None
    return {
        "count": histogram.count,
        "sum": histogram.sum,
        "bounds": histogram.bounds,
        "counts": histogram.counts,
    }


def describe_task(task: TaskInfo) -> Record:
    """Return a task in values that can be packed."""
    return {
        "id": task.id,
        "state": task.state.value,
        "data": task.data,
        "created": task.created,
        "due": task.due,
        "session": task.session,
        "taken_at": task.taken_at,
        "touched_at": task.touched_at,
        "details": dict(task.details),
    }
