"""Cycles of put, take and ack in each type of tube, of this project and of the queue module on Tarantool."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgpack

from bench.client.iproto_frames import call_frame
from bench.client.load import PAYLOAD, Load, Phase
from bench.client.requests import Requests
from bench.peers.iproto import Iproto
from bench.peers.queue_server import QueueServer
from bench.workloads.rate import Rate, Shape

SECTION: Final = "tubes"
DRIVERS: Final = ("fifo", "fifottl", "utube", "utubettl")
SHAPES: Final = (Shape(10, 100), Shape(100, 1))
BLOCK: Final = 1_000
"""Tasks that are put, taken and acknowledged at a time, each in a sub-queue of its own if there are any."""

_NAME_SIZE: Final = 12
_NUMBER: Final = rb"([\x00-\x7f]|\xcc.|\xcd..|\xce.{4}|\xcf.{8})"
_TAKEN: Final = re.compile(rb"\x30(?:\xdd\x00\x00\x00\x01|\x91)\x93" + _NUMBER + rb"\xa1t", re.DOTALL)
"""The data of an answer to `take`: one task of an id, a state and data."""


@dataclass(frozen=True)
class TubeDialect(Iproto):
    """Calls of a tube's methods.

    Attributes:
        tube: its name.
        has_sub_queues: whether each task of a block is put into a sub-queue of its own.
    """

    tube: str
    has_sub_queues: bool

    def puts(self, payloads: Sequence[bytes], delay: int = 0) -> Requests:
        """`put`.

        Raises:
            ValueError: A delay was requested, which some types of tubes do not have.
        """
        if delay:
            raise ValueError("not all tubes have delays")
        procedure = f"queue.tube.{self.tube}:put"
        if not self.has_sub_queues:
            return Requests.of(call_frame(procedure, [payload.decode()]) for payload in payloads)
        # The beginnings of random data are as good as numbers to tell the sub-queues of a block apart.
        return Requests.of(
            call_frame(procedure, [payload.decode(), {"utube": payload[:_NAME_SIZE].decode()}])
            for payload in payloads
        )

    def takes(self, count: int, timeout: int = 0) -> Requests:
        """`take`."""
        return Requests.alike(call_frame(f"queue.tube.{self.tube}:take", [timeout]), count)

    def acks(self, tasks: Sequence[bytes]) -> Requests:
        """`ack` of tasks, by the ids in their answers."""
        return Requests.of(
            call_frame(f"queue.tube.{self.tube}:ack", [msgpack.unpackb(task)]) for task in tasks
        )

    def tasks_in(self, answers: bytes) -> list[bytes]:
        """Return the ids of the tasks, as msgpack."""
        return _TAKEN.findall(answers)


def rate(server: QueueServer, driver: str, shape: Shape, number: int, blocks: int) -> Rate:
    """Measure cycles in a new tube, after a block that does not count.

    Parameters:
        server: a server of queues.
        driver: the tube's type.
        shape: the shape of the load.
        number: the number of the round, from 0.
        blocks: the number of blocks.
    """
    tube = f"{driver}_{shape.connections}_{number}"
    server.contender.create_tube(server.connection, tube, driver, {})
    dialect = TubeDialect(tube, has_sub_queues=driver.startswith("utube"))
    server.process.forget_peak()
    phases: list[Phase] = []
    server_seconds = 0.0
    with Load(server.address, dialect, shape.connections, shape.in_flight) as load:
        steps: list[Callable[[], Phase]] = [lambda: load.put(BLOCK), lambda: load.take(BLOCK), load.ack]
        for block in range(blocks + 1):
            for work in steps:
                before = server.process.cpu_seconds()
                phase = work()
                if block:
                    server_seconds += server.process.cpu_seconds() - before
                    phases.append(phase)
    tasks = blocks * BLOCK
    seconds, load_seconds = (
        sum(phase.seconds for phase in phases),
        sum(phase.cpu_seconds for phase in phases),
    )
    return Rate(
        section=SECTION,
        contender=server.contender.name,
        wal_mode="write",
        shape=str(shape),
        payload=PAYLOAD,
        operation=driver,
        round=number,
        requests=tasks,
        per_second=tasks / seconds,
        server_us=server_seconds / tasks * 1e6,
        load_us=load_seconds / tasks * 1e6,
        load_share=load_seconds / seconds,
        latencies_ms=None,
        peak=server.process.peak(),
    )
