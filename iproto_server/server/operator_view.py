"""What operators see of the server: its status, its queues, and who holds which task."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Final

from iproto_server.box import Box
from iproto_server.managed_queue import Histogram, ManagedQueue, TaskInfo, TaskState
from iproto_server.metrics.loop_lag import LoopLag
from iproto_server.native import IS_COMPILED
from iproto_server.program_version import PROGRAM_VERSION
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.checkpointer import Checkpointer
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.storage.wal import WriteAheadLog

HELD_MAX: Final = 20_000
"""The maximum number of taken tasks that `sessions` looks at, some 100 ms."""

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
    ) -> None:
        self._state = state
        self._box = box
        self._dispatcher = dispatcher
        self._log = log
        self._checkpointer = checkpointer
        self._lag = lag
        self._queues = queues

    def status(self) -> Record:
        """Return version, state, memory, traffic, files and event-loop latency. Times are in seconds."""
        box, state = self._box, self._state
        info = box.info()
        net = box.stat.net()
        return {
            "version": PROGRAM_VERSION,
            "protocol_version": box.version,
            "is_compiled": IS_COMPILED,
            "instance": info["uuid"],
            "pid": os.getpid(),
            "time": time.time(),
            "uptime": info["uptime"],
            "listen": list(box.listen),
            "read_only": box.is_read_only,
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

    def queues(self, limit: int, after: str | None) -> list[Record]:
        """Return the figures of queues in the order of their names.

        Parameters:
            limit: the maximum number.
            after: the name after which to begin.
        """
        found = [queue for queue in self._queues.all() if after is None or queue.name > after]
        return [describe_queue(queue) for queue in found[:limit]]

    def sessions(self, limit: int) -> list[Record]:
        """Return the open sessions, and others that still hold tasks, with the tasks that each has taken.

        Parameters:
            limit: the maximum number of tasks shown for each; all are counted, up to `HELD_MAX`.
        """
        held: dict[int | None, list[Record]] = {}
        left = HELD_MAX
        for queue in self._queues.all():
            for task in queue.tasks(TaskState.TAKEN, limit=left):
                left -= 1
                held.setdefault(task.session, []).append(
                    {"queue": queue.name, "id": task.id, "taken_at": task.taken_at, "due": task.due}
                )
            if left < 1:
                break
        facade = self._box.session
        found: list[Record] = [
            {
                "id": session.id,
                "user": session.user.name,
                "peer": session.peer,
                "type": session.kind,
                "since": session.opened,
                "waiting": len(session.on_close),
                **_held(held.pop(session.id, []), limit),
            }
            for session in facade.sessions.values()
            if session is not facade.background
        ]
        for session_id, tasks in held.items():
            gone = {"id": session_id, "user": None, "peer": None, "type": None, "since": None, "waiting": 0}
            found.append({**gone, **_held(tasks, limit)})
        return found


def _held(tasks: list[Record], limit: int) -> Record:
    tasks.sort(key=lambda task: task["taken_at"] or 0.0)
    return {
        "taken": len(tasks),
        "oldest_taken_at": tasks[0]["taken_at"] if tasks else None,
        "tasks": tasks[:limit],
    }


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
        "details": dict(task.details),
    }
