"""Consumers of a tube, each of which takes a task and acknowledges it, in turn, until all are done.

Requests are made beforehand but for the task's id, and of the answers only that is looked for, so that this
process takes little time beside the server's.
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
"""A taken task: an array of its id, its state and its data."""


class Consumer:
    """One connection.

    Parameters:
        address: the server's host and port.
        tube: the tube's name.
    """

    def __init__(self, address: Address, tube: str) -> None:
        self.connection = IprotoConnection(address)
        self._take = Requests.alike(call_frame(f"queue.tube.{tube}:take", []), 1)
        # The id, the only argument, is the last thing in the frame.
        self._ack = call_frame(f"queue.tube.{tube}:ack", [0])[_LENGTH:-1]
        self._has_task = False

    def take(self) -> None:
        """Ask for a task, and wait for one if need be."""
        self.connection.begin(self._take)

    def go_on(self) -> int:
        """Receive what is there; acknowledge the task that was taken, or take the next.

        Returns: how many tasks are done now that were not: 0 or 1.

        Raises:
            RuntimeError: the answer to a take has no task.
        """
        if not self.connection.go_on():
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
    """Take and acknowledge tasks by several consumers at once.

    Parameters:
        address: the server's host and port.
        tube: the tube's name.
        consumers: how many.
        tasks: how many tasks there are.

    Returns: how many seconds it took.
    """
    everybody = [Consumer(address, tube) for _ in range(consumers)]
    by_number = {each.connection.socket.fileno(): each for each in everybody}
    with select.epoll() as epoll:
        for number in by_number:
            epoll.register(number, select.EPOLLIN)
        begun = time.perf_counter()
        for each in everybody:
            each.take()
        while tasks > 0:
            for number, _ in epoll.poll():
                tasks -= by_number[number].go_on()
        seconds = time.perf_counter() - begun
    for each in everybody:
        each.connection.close()
    return seconds
