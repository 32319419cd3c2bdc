"""Well-behaved clients: many connections, each of which puts, takes and acknowledges a task at fixed times.

They run in a process of their own. A request's time starts when the request was due, or when the previous
answer arrived if that was later, not when this process sent it: the measurement has no coordinated omission.
"""

from __future__ import annotations

import heapq
import math
import os
import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from typing import Final, Self

import msgpack

from bench.client.iproto_frames import LENGTH_SIZE, call_frame
from bench.client.login import auth_frame

_GREETING: Final = 128
_RECEIVE: Final = 2**16
_TYPE, _SYNC, _DATA = 0x00, 0x01, 0x30
PAYLOAD: Final = "x" * 100
_END: Final = 0.0
"""Tells the process to end the run."""


@dataclass(frozen=True, slots=True)
class Times:
    """Response times.

    Attributes:
        seconds: the times of all answers, sorted.
        errors: one line for each error.
    """

    seconds: list[float]
    errors: list[str]

    def milliseconds(self, share: float) -> float:
        """Return the time within which a share of the answers came; infinity if there are none."""
        if not self.seconds:
            return math.inf
        return self.seconds[min(int(len(self.seconds) * share), len(self.seconds) - 1)] * 1000


class SteadyClients:
    """A process of well-behaved clients, as a context manager.

    Parameters:
        address: the server's host and port.
        connections: the number of connections.
        interval: seconds between two tasks of a connection; the connections are spread over the interval.
        is_real_time: whether the process has real-time priority.
        login: the name and password of their user; None for guest.
    """

    def __init__(
        self,
        address: tuple[str, int],
        connections: int,
        interval: float,
        *,
        is_real_time: bool = False,
        login: tuple[str, str] | None = None,
    ) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (address, connections, interval, is_real_time, login, theirs)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def run(self, seconds: float) -> Times:
        """Run the clients for some seconds, and return the response times."""
        self._pipe.send(seconds)
        return self._times()

    def begin(self) -> None:
        """Run the clients until `end`."""
        self._pipe.send(math.inf)

    def end(self) -> Times:
        """Let the clients finish their tasks, and return the response times since `begin`."""
        self._pipe.send(_END)
        return self._times()

    def _times(self) -> Times:
        times = self._pipe.recv()
        assert isinstance(times, Times)
        return times

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pipe.close()
        self._process.join()


def _serve(
    address: tuple[str, int],
    connections: int,
    interval: float,
    is_real_time: bool,
    login: tuple[str, str] | None,
    pipe: Pipe[Times | None, float],
) -> None:
    if is_real_time:
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    clients = [_Client(address, login) for _ in range(connections)]
    pipe.send(None)
    with suppress(EOFError):
        while True:
            seconds = pipe.recv()
            # Clients that failed have ended before they were told to.
            if seconds != _END:
                pipe.send(_run(clients, interval, seconds, pipe))


def _run(clients: list[_Client], interval: float, seconds: float, pipe: Pipe[Times | None, float]) -> Times:
    poll = select.epoll()
    by_socket = {client.socket.fileno(): number for number, client in enumerate(clients)}
    for descriptor in (*by_socket, pipe.fileno()):
        poll.register(descriptor, select.EPOLLIN)
    begun = time.perf_counter()
    end = begun + seconds
    share = interval / len(clients)
    due = [(begun + number * share, number) for number in range(len(clients))]
    times: list[float] = []
    errors: list[str] = []
    active = 0
    while due or active:
        now = time.perf_counter()
        while due and due[0][0] <= now:
            moment, number = heapq.heappop(due)
            clients[number].begin(moment)
            active += 1
        wait = max(due[0][0] - time.perf_counter(), 0) if due else 5.0
        events = poll.poll(wait)
        if not events and not due:
            errors.append(f"{active} clients have no answer after {wait:g} s")
            break
        for descriptor, _ in events:
            if descriptor == pipe.fileno():
                end = pipe.recv()
                due.clear()
                continue
            number = by_socket[descriptor]
            client = clients[number]
            try:
                is_done = client.advance(times)
            except (OSError, ValueError) as error:
                errors.append(str(error))
                poll.unregister(descriptor)
                active -= 1
                continue
            if is_done:
                active -= 1
                moment = client.begun + interval
                if moment < end:
                    heapq.heappush(due, (moment, number))
    poll.close()
    return Times(sorted(times), errors)


class _Client:
    """One connection and its state."""

    def __init__(self, address: tuple[str, int], login: tuple[str, str] | None) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        greeting = self.socket.recv(_GREETING, socket.MSG_WAITALL)
        if login is not None:
            self.socket.sendall(auth_frame(greeting, *login))
            length = self.socket.recv(LENGTH_SIZE, socket.MSG_WAITALL)
            self.socket.recv(int.from_bytes(length[1:], "big"), socket.MSG_WAITALL)
        self._rest = b""
        self._sync = 0
        self._step = 0
        self._since = 0.0
        self._task: object = None
        self.begun = 0.0

    def begin(self, moment: float) -> None:
        """Put a task that was due at a moment."""
        self.begun = self._since = moment
        self._step = 0
        self._send("queue.put", PAYLOAD)

    def advance(self, times: list[float]) -> bool:
        """Read an answer and send the next request.

        Returns:
            True if the task is acknowledged.

        Raises:
            OSError: The connection is closed.
            ValueError: The answer is wrong.
        """
        data = self.socket.recv(_RECEIVE)
        if not data:
            raise ConnectionError("the server has closed the connection")
        data = self._rest + data
        end = 5 + int.from_bytes(data[1:5], "big")
        self._rest = data
        if len(data) < end:
            return False
        now = time.perf_counter()
        times.append(now - self._since)
        self._since = now
        self._rest = data[end:]
        task = self._task_in(data[5:end])
        self._step += 1
        if self._step == 1:
            self._send("queue.take")
        elif self._step == 2:
            self._send("queue.ack", task)
        else:
            return True
        return False

    def _task_in(self, answer: bytes) -> object:
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(answer)
        header, body = unpacker.unpack(), unpacker.unpack()
        if header[_TYPE] or header[_SYNC] != self._sync or self._rest:
            raise ValueError(f"request {self._sync} was answered {header} {body}")
        if not body[_DATA]:
            raise ValueError("there was no task")
        return body[_DATA][0]["id"]

    def _send(self, procedure: str, *arguments: object) -> None:
        self._sync += 1
        self.socket.sendall(call_frame(procedure, arguments, self._sync))
