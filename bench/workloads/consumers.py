"""Consumers of a tube: each takes and acknowledges one task at a time until all are done.

Requests are encoded in advance except for the task's id, and only the id is searched in the answers, so that
the consumers use little CPU time beside the server.
"""

from __future__ import annotations

import re
import select
import time
from typing import Final

from bench.client.iproto_frames import call_frame
from bench.client.requests import Requests
from bench.lib.process import Address
from bench.peers.iproto import IprotoConnection

_LENGTH: Final = 5
_TAKEN: Final = re.compile(rb"\x93(\xcc.|\xcd..|\xce.{4}|\xcf.{8}|[\x00-\x7f])\xa1t", re.DOTALL)
"""A taken task: an array of its id, state and data."""


class Consumer:
    """The connection of one consumer.

    Parameters:
        address: the server's host and port.
        tube: the tube's name.
    """

    def __init__(self, address: Address, tube: str) -> None:
        self.connection = IprotoConnection(address)
        self._take = Requests.alike(call_frame(f"queue.tube.{tube}:take", []), 1)
        # The id, the only argument, is at the end of the frame.
        self._ack = call_frame(f"queue.tube.{tube}:ack", [0])[_LENGTH:-1]
        self._has_task = False

    def take(self) -> None:
        """Request a task, waiting for one if there is none."""
        self.connection.begin(self._take)

    def receive(self) -> int:
        """Read what has arrived; acknowledge the taken task, or take the next one.

        Returns: the number of tasks completed by this, 0 or 1.

        Raises:
            RuntimeError: the answer to a take has no task.
        """
        if not self.connection.receive():
            return 0
        if self._has_task:
            self._has_task = False
            self.take()
            return 1
        found = _TAKEN.search(self.connection.answers)
        if found is None:
            raise RuntimeError(f"no task was taken: {self.connection.answers!r}")
        request = self._ack + found[1]
        frame = b"\xce" + len(request).to_bytes(_LENGTH - 1, "big") + request
        self._has_task = True
        self.connection.begin(Requests.alike(frame, 1))
        return 0


def consume(address: Address, tube: str, consumers: int, tasks: int) -> float:
    """Take and acknowledge tasks with several concurrent consumers.

    Parameters:
        address: the server's host and port.
        tube: the tube's name.
        consumers: the number of consumers.
        tasks: the number of tasks.

    Returns: the seconds until all tasks were acknowledged.
    """
    connections = [Consumer(address, tube) for _ in range(consumers)]
    by_number = {each.connection.socket.fileno(): each for each in connections}
    with select.epoll() as epoll:
        for number in by_number:
            epoll.register(number, select.EPOLLIN)
        begun = time.perf_counter()
        for each in connections:
            each.take()
        while tasks > 0:
            for number, _ in epoll.poll():
                tasks -= by_number[number].receive()
        seconds = time.perf_counter() - begun
    for each in connections:
        each.connection.close()
    return seconds
