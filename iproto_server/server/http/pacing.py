"""A limited share of the event loop for HTTP, whatever its clients send.

Clients need no login to have requests parsed, and a parser in Python takes microseconds for each byte of a
body that consists of tiny chunks. So connections are accepted and requests parsed in small steps.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import h11
from uvicorn.protocols.http.flow_control import FlowControl

from iproto_server.box.clock import Clock

TURN: Final = 0.00025
"""Seconds of processor time after which steps pause."""
PAUSE: Final = 3.0
"""Length of a pause, as a multiple of the processor time before it: HTTP uses a quarter at most."""
EVENTS: Final = 16
"""Maximum number of events of the parser in a step, such as chunks; a request is that many alone."""
MAX_HEADERS: Final = 16 * 1024
"""Maximum bytes of a request's line and headers."""
MAX_HEADER_LINES: Final = 100
"""Maximum number of lines of these."""

_END_OF_HEADERS: Final = re.compile(rb"\n\r?\n")

Step = Callable[[], object]


class Rank(IntEnum):
    """Which steps come first: short requests must not wait for long ones, nor for what is to be accepted."""

    REQUEST = 0
    ACCEPT = 1
    BODY = 2


class Pacing:
    """Runs steps by rank, and in the order in which they were asked for, with pauses after short turns.

    The time of a turn includes what its steps set off at once, such as the answers to requests.

    Parameters:
        clock: provides the timers.
        now: returns steady time in seconds.
        used: returns the processor time of the thread in seconds. (Other processes may slow a step down,
            which is no reason for a longer pause.)
    """

    def __init__(
        self,
        clock: Clock,
        now: Callable[[], float] = time.monotonic,
        used: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self._now = now
        self._used = used
        self._waiting: tuple[dict[Step, None], ...] = tuple({} for _ in Rank)
        self._is_busy = False
        self._free_at = 0.0

    def __len__(self) -> int:
        """The number of steps that wait."""
        return sum(map(len, self._waiting))

    def soon(self, step: Step, rank: Rank = Rank.ACCEPT) -> None:
        """Run a step after those of its rank that wait; if it waits already, nothing changes."""
        self._waiting[rank][step] = None
        self._schedule()

    def forget(self, step: Step) -> None:
        """Do not run a step that waits."""
        for waiting in self._waiting:
            waiting.pop(step, None)

    def _schedule(self) -> None:
        if any(self._waiting) and not self._is_busy:
            self._is_busy = True
            self._clock.call_later(max(0.0, self._free_at - self._now()), self._run)

    def _run(self) -> None:
        began = self._used()
        try:
            while waiting := next(filter(None, self._waiting), None):
                step = next(iter(waiting))
                del waiting[step]
                step()
                if self._used() - began >= TURN:
                    break
        finally:
            # Runs after the tasks that the step has created.
            self._clock.call_later(0, lambda: self._end(began))

    def _end(self, began: float) -> None:
        self._free_at = self._now() + PAUSE * (self._used() - began)
        self._is_busy = False
        self._schedule()


class PacedParser(h11.Connection):
    """h11's parser, which returns a limited number of events, and limits headers that arrive at once, too.

    Attributes:
        allowed: how many events it returns before it says that it needs data.
        is_held: whether it has said so for that reason.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEADERS)
        self.allowed = 0
        self.is_held = False

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.

        Raises:
            h11.RemoteProtocolError: the request is malformed, or its headers are too large.
        """
        if self.allowed <= 0:
            self.is_held = True
            return h11.NEED_DATA
        if self.their_state is h11.IDLE:
            self._check_headers()
        event = super().next_event()
        self.allowed -= EVENTS if isinstance(event, h11.Request) else 1
        return event

    @property
    def has_rest(self) -> bool:
        """Whether it has data that belong to no returned event."""
        return bool(self.trailing_data[0])

    def _check_headers(self) -> None:
        received = self.trailing_data[0]
        end = _END_OF_HEADERS.search(received)
        size = len(received) if end is None else end.start()
        if size > MAX_HEADERS or received.count(b"\n", 0, size) > MAX_HEADER_LINES:
            raise h11.RemoteProtocolError("the headers are too large", error_status_hint=431)


class PacedFlow(FlowControl):
    """uvicorn's flow control, which reads nothing while received data wait for their step.

    Parameters:
        transport: the transport.
        wanted: called when uvicorn wants to read; calls `read_on` if nothing waits.
    """

    def __init__(self, transport: asyncio.Transport, wanted: Callable[[], object]) -> None:
        super().__init__(transport)
        self._wanted = wanted

    def pause(self) -> None:
        """Read nothing, even if uvicorn has made the transport read on its own."""
        self.read_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, unless received data wait."""
        self._wanted()

    def read_on(self) -> None:
        """Read again."""
        super().resume_reading()
