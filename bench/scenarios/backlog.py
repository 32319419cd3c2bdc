"""What many tasks that stand in a queue cost: memory, and time of those that are taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench.peers.contender import Server
from bench.scenarios.rate import Rate, Setting
from bench.scenarios.recovery import fill

FULL, EMPTY = "standing", "empty"
_WARM_UP: Final = 2000


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory that a server's processes had without tasks and with them.

    Attributes:
        contender: who.
        tasks: how many there were then.
        before: bytes without.
        after: bytes with them.
    """

    contender: str
    tasks: int
    before: int
    after: int

    @property
    def per_task(self) -> float:
        """Bytes for one."""
        return (self.after - self.before) / self.tasks


def stand(server: Server, tasks: int) -> Footprint:
    """Put so many tasks, and leave them there.

    Parameters:
        server: which has none.
        tasks: how many.
    """
    with server.load(10, 100) as load:
        load.put(_WARM_UP)
        load.take(_WARM_UP)
        load.ack()
    before = server.process.memory()
    fill(server, tasks)
    return Footprint(server.name, tasks, before, server.process.memory())


def rates(setting: Setting, tasks: int) -> Iterator[Rate]:
    """Take and acknowledge tasks where others stand, as many of which are put first.

    Parameters:
        setting: who is measured, and how.
        tasks: how many are taken.
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
