"""The moment of a kill: a random time after a random event, both derived from the seed."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGKILL
from statistics import median
from time import monotonic
from typing import Final

from tests.crash.checks.finding import Kind
from tests.crash.loads.client import Meter
from tests.crash.scale import LONG, Scale
from tests.crash.servers.pipeline import Pipeline
from tests.crash.servers.subject import Server, Settings

LOOK_EVERY = 0.001
"""Seconds between two checks for a new file."""

LOOK_FOR = 3.0
"""Seconds after which a run ends although the file has not appeared."""

STARTS_MEASURED = 5
"""The number of starts that the typical one is the median of."""

CHECKPOINT_IN_PROGRESS = 120


class Event(StrEnum):
    """The event before the end of a run."""

    LOAD = "load"
    """A number of acknowledgements."""

    SNAPSHOT = "snapshot"
    """A snapshot was requested."""

    CHECKPOINT = "checkpoint"
    """An automatic snapshot has begun."""

    ROTATION = "rotation"
    """A new log has begun."""

    STOP = "stop"
    """A number of acknowledgements; then the server is stopped, not killed."""


EVENTS: Final = (
    Event.LOAD,
    Event.SNAPSHOT,
    Event.ROTATION,
    Event.SNAPSHOT,
    Event.STOP,
    Event.SNAPSHOT,
    Event.LOAD,
    Event.CHECKPOINT,
)
"""The events, one run after the other."""

SNAPSHOT_EVENTS: Final = frozenset({Event.SNAPSHOT, Event.CHECKPOINT})
"""Events that require snapshots under load."""


class Pace:
    """The typical durations on this machine.

    Parameters:
        scale: The size of the databases.

    Attributes:
        snapshots: Seconds of the last snapshot, by the rate limit.
    """

    def __init__(self, scale: Scale = LONG) -> None:
        self._scale = scale
        self._starts = deque([0.5], STARTS_MEASURED)
        self._recoveries = deque([0.2], STARTS_MEASURED)
        self.snapshots: dict[float, float] = {}

    def started(self, start: float, recovery: float) -> None:
        """Record a start."""
        self._starts.append(start)
        self._recoveries.append(recovery)

    @property
    def start(self) -> float:
        """Return the seconds from the launch until a server serves."""
        return median(self._starts)

    @property
    def recovery(self) -> float:
        """Return the part of these for recovery and setup."""
        return median(self._recoveries)

    def snapshot(self, settings: Settings) -> float:
        """Return the seconds of a snapshot."""
        limit = settings.snap_io_rate_limit
        expected = self._scale.snapshot + (self._scale.megabytes / limit if limit else 0)
        return self.snapshots.get(limit, expected)


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of a run.

    Attributes:
        event: The event before it.
        acknowledgements: The number of acknowledgements before that.
        snapshots: The number of requested and finished snapshots before that.
        share: The delay after the event: 0 for none, 1 for about the duration of what has begun.
        is_sudden: Whether the kill coincides with the last acknowledgement.
    """

    event: Event
    acknowledgements: int
    snapshots: int
    share: float
    is_sudden: bool

    @classmethod
    def draw(cls, chance: Random, event: Event, *, with_snapshots: bool, scale: Scale = LONG) -> Moment:
        """Choose a moment after an event."""
        acknowledgements = int(10 ** chance.uniform(*scale.acknowledgements))
        snapshots = chance.choice(scale.snapshots) if with_snapshots else 0
        return cls(event, acknowledgements, snapshots, chance.uniform(0, 1.3), chance.random() < 0.7)

    async def come(self, meter: Meter, control: Pipeline, server: Server, pace: Pace) -> None:
        """Wait for the moment. A sudden one also kills the server.

        Parameters:
            meter: The counters of all clients.
            control: A connection for requests of the test itself.
            server: The server.
            pace: The typical durations.
        """
        for _ in range(self.snapshots):
            await meter.more(self.acknowledgements // (self.snapshots + 1))
            await _snapshot(control, meter, server, pace)
        acknowledgements = self.acknowledgements // (self.snapshots + 1)
        if self.event is Event.LOAD and self.is_sudden:
            # A server that answers before it has written must not get the time to write.
            await meter.more(acknowledgements, partial(server.process.signal, SIGKILL))
            return
        await meter.more(acknowledgements)
        if self.event is Event.SNAPSHOT:
            asking = asyncio.create_task(_snapshot(control, meter, server, pace))
            await asyncio.wait((asking,), timeout=self.share * pace.snapshot(server.settings))
        elif self.event is Event.CHECKPOINT:
            await _appearance(server.directory, "*.snap.inprogress")
            await asyncio.sleep(self.share * pace.snapshot(server.settings))
        else:
            if self.event is Event.ROTATION:
                await _appearance(server.directory, "*.xlog")
            await asyncio.sleep(self.share / 50)


async def _snapshot(control: Pipeline, meter: Meter, server: Server, pace: Pace) -> None:
    """Request a snapshot, and measure it if it succeeds."""
    begin = monotonic()
    reply = await control.call("box.snapshot")
    if reply is None or reply.error_code == CHECKPOINT_IN_PROGRESS:
        return
    if reply.error_code:
        meter.complain(Kind.ANSWER, f"box.snapshot: error {reply.error_code} ({reply.data})")
    else:
        pace.snapshots[server.settings.snap_io_rate_limit] = monotonic() - begin
        meter.acknowledge("box.snapshot")


async def _appearance(directory: Path, pattern: str) -> None:
    """Wait until a new file appears, or until that takes too long."""
    there = _files(directory, pattern)
    deadline = monotonic() + LOOK_FOR
    appeared = asyncio.get_running_loop().create_future()

    def look() -> None:
        if appeared.done():
            return
        if _files(directory, pattern) <= there and monotonic() < deadline:
            appeared.get_loop().call_later(LOOK_EVERY, look)
        else:
            appeared.set_result(None)

    look()
    await appeared


def _files(directory: Path, pattern: str) -> set[Path]:
    return set(directory.glob(pattern))


def draw_settings(chance: Random, event: Event, *, with_snapshots: bool, scale: Scale = LONG) -> Settings:
    """Choose options under which an event can happen."""
    never = Settings().checkpoint_wal_threshold
    thresholds = scale.thresholds if with_snapshots else (never,)
    return Settings(
        wal_mode=chance.choice(("write", "fsync")),
        wal_max_size=chance.choice(scale.rotations if event is Event.ROTATION else scale.wal_max_sizes),
        checkpoint_count=chance.randrange(1, 4),
        checkpoint_wal_threshold=chance.choice(thresholds)
        if event is Event.CHECKPOINT
        else chance.choice((*thresholds, never)),
        snap_io_rate_limit=chance.choice(scale.snap_io_rate_limits),
    )
