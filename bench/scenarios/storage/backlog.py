"""Cost of a backlog of many tasks: memory, and the time of taking from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench.peers.contender import Server
from bench.scenarios.storage.recovery import fill
from bench.workloads.rate import Rate, Setting

FULL, EMPTY = "standing", "empty"
_WARM_UP: Final = 2000


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory of a server's processes without and with tasks.

    Attributes:
        contender: the contender's name.
        tasks: the number of tasks.
        before: bytes without tasks.
        after: bytes with the tasks.
    """

    contender: str
    tasks: int
    before: int
    after: int

    @property
    def per_task(self) -> float:
        """Bytes per task."""
        return (self.after - self.before) / self.tasks


def put_backlog(server: Server, tasks: int) -> Footprint:
    """Put tasks and leave them in the queue.

    Parameters:
        server: a server without tasks.
        tasks: the number of tasks.
    """
    with server.load(10, 100) as load:
        load.put(_WARM_UP)
        load.take(_WARM_UP)
        load.ack()
    before = server.process.memory()
    fill(server, tasks)
    return Footprint(server.name, tasks, before, server.process.memory())


def rates(setting: Setting, tasks: int) -> Iterator[Rate]:
    """Measure puts, takes and acknowledgements of tasks in a queue with a backlog.

    Parameters:
        setting: the server and the load.
        tasks: the number of tasks.
    """
    setting.server.process.forget_peak()
    with setting.server.load(setting.shape.connections, setting.shape.in_flight) as load:
        load.put(tasks, setting.payload)
        parts = [
            setting.measure("take", lambda: load.take(tasks)),
            setting.measure("ack", load.ack),
        ]
    yield from parts
    yield setting.cycle(parts)
