"""Delivery latency of tasks to waiting consumers: steady producers, consumers with one request each.

A task's latency starts when the task was due to be put, not when this process sent it: a server that is slow
for a while is slow for all tasks due meanwhile. It ends when a consumer has the task. The delay of a delayed
task is subtracted.
"""

from __future__ import annotations

import re
import select
import time
from dataclasses import dataclass
from typing import Final

from bench.client.connection import Connection
from bench.client.latency import Latencies
from bench.client.load import PAYLOAD
from bench.peers.contender import Server
from bench.workloads.rate import SHARES

_PRODUCERS: Final = 10
_TAKE_TIMEOUT: Final = 1
_RECEIVE: Final = 2**16
_LATE: Final = 20.0
"""Seconds after which missing tasks are considered lost."""

_NUMBER: Final = re.compile(rb"#(\d{8})#")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One measurement.

    Attributes:
        contender: the contender's name.
        round: the number of the round, from 0.
        per_second: the rate of puts.
        consumers: the number of waiting consumers.
        delay: the delay of each task, in seconds.
        tasks: the number of tasks.
        latencies_ms: p50, p99 and p99.9 in milliseconds.
        server_us: microseconds of CPU time per task (put, take and ack), in the server's processes.
        load_us: the same in the load generator.
    """

    contender: str
    round: int
    per_second: int
    consumers: int
    delay: int
    tasks: int
    latencies_ms: list[float]
    server_us: float
    load_us: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """The load of producers and consumers.

    Attributes:
        per_second: the rate of puts.
        seconds: the duration.
        consumers: the number of waiting consumers.
        delay: the delay of each task, in seconds.
    """

    per_second: int
    seconds: float
    consumers: int
    delay: int = 0

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return int(self.per_second * self.seconds)


def deliver(server: Server, traffic: Traffic, round_number: int = 0) -> Delivery:
    """Measure once.

    Parameters:
        server: the server.
        traffic: the load.
        round_number: the number of the round, from 0.

    Raises:
        RuntimeError: A task was not delivered.
    """
    run = _DeliveryRun(server, traffic)
    try:
        server_cpu, cpu = server.process.cpu_seconds(), time.process_time()
        run.run()
        server_cpu, cpu = server.process.cpu_seconds() - server_cpu, time.process_time() - cpu
    finally:
        run.close()
    return Delivery(
        contender=server.name,
        round=round_number,
        per_second=traffic.per_second,
        consumers=traffic.consumers,
        delay=traffic.delay,
        tasks=traffic.tasks,
        latencies_ms=run.latencies.milliseconds(*SHARES),
        server_us=server_cpu / traffic.tasks * 1e6,
        load_us=cpu / traffic.tasks * 1e6,
    )


class _DeliveryRun:
    """Producers and consumers."""

    def __init__(self, server: Server, traffic: Traffic) -> None:
        self.latencies = Latencies()
        self._traffic = traffic
        self._dialect = server.contender.dialect
        self._take = self._dialect.takes(1, _TAKE_TIMEOUT)
        self._puts = self._dialect.puts([_payload(number) for number in range(traffic.tasks)], traffic.delay)
        self._acknowledged = 0
        self._producers = [Connection(server.address, self._dialect) for _ in range(_PRODUCERS)]
        self._consumers = [Connection(server.address, self._dialect) for _ in range(traffic.consumers)]
        self._with_task: set[int] = set()
        self._by_number = {each.socket.fileno(): each for each in (*self._producers, *self._consumers)}
        self._producing = {each.socket.fileno() for each in self._producers}
        self._poll = select.epoll()
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)

    def run(self) -> None:
        """Put each task when it is due, until all are acknowledged."""
        for consumer in self._consumers:
            consumer.begin(self._take)
        tasks, interval = self._traffic.tasks, 1 / self._traffic.per_second
        put, self._begun = 0, time.perf_counter()
        end = self._begun + tasks * interval + self._traffic.delay + _LATE
        while self._acknowledged < tasks:
            now = time.perf_counter()
            if now > end:
                raise RuntimeError(f"{tasks - self._acknowledged} of {tasks} tasks were not delivered")
            while put < tasks and self._begun + put * interval <= now:
                frame = self._puts.span(put, put + 1)
                self._producers[put % _PRODUCERS].socket.sendall(frame)
                put += 1
            next_at = self._begun + put * interval if put < tasks else end
            # Its own timeout has milliseconds only.
            select.select([self._poll], [], [], max(next_at - time.perf_counter(), 0))
            for number, _ in self._poll.poll(0):
                if number in self._producing:
                    self._by_number[number].socket.recv(_RECEIVE)
                else:
                    self._consume(number, interval)

    def close(self) -> None:
        """Close all connections."""
        self._poll.close()
        for connection in self._by_number.values():
            connection.close()

    def _consume(self, number: int, interval: float) -> None:
        consumer = self._by_number[number]
        if not consumer.receive():
            return
        if number in self._with_task:
            self._with_task.remove(number)
            self._acknowledged += self._dialect.done_in(consumer.answers)
            consumer.begin(self._take)
            return
        tasks = self._dialect.tasks_in(consumer.answers)
        if not tasks:
            consumer.begin(self._take)
            return
        found = _NUMBER.search(consumer.answers)
        assert found is not None, "somebody else has put tasks"
        due = self._begun + int(found[1]) * interval + self._traffic.delay
        self.latencies.add(time.perf_counter() - due)
        self._with_task.add(number)
        consumer.begin(self._dialect.acks(tasks))


def _payload(number: int) -> bytes:
    return b"#%08d#" % number + b"x" * (PAYLOAD - 10)
