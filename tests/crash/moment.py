"""The moment of a kill: a random time after a random event, both derived from the seed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGKILL
from time import monotonic
from typing import Final

from tests.crash.finding import Kind
from tests.crash.loads.client import Meter
from tests.crash.pipeline import Pipeline
from tests.crash.subject import Server, Settings

LOOK_EVERY = 0.001
"""Seconds between two checks for a new file."""

LOOK_FOR = 3.0
"""Seconds after which a run ends although the file has not appeared."""

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

    Attributes:
        start: Seconds from the launch until it serves.
        recovery: The part of these for recovery and setup.
        snapshots: Seconds of a snapshot, by the rate limit.
    """

    def __init__(self) -> None:
        self.start = 0.5
        self.recovery = 0.2
        self.snapshots: dict[float, float] = {}

    def snapshot(self, settings: Settings) -> float:
        """Return the seconds of a snapshot."""
        limit = settings.snap_io_rate_limit
        return self.snapshots.get(limit, 0.1 + (1 / limit if limit else 0))


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
    def draw(cls, chance: Random, event: Event, *, with_snapshots: bool) -> Moment:
        """Choose a moment after an event."""
        acknowledgements = int(10 ** chance.uniform(1.3, 3.3))
        snapshots = chance.choice((0, 0, 1, 2)) if with_snapshots else 0
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
            begin = monotonic()
            await _snapshot(control, meter)
            pace.snapshots[server.settings.snap_io_rate_limit] = monotonic() - begin
        acknowledgements = self.acknowledgements // (self.snapshots + 1)
        if self.event is Event.LOAD and self.is_sudden:
            # A server that answers before it has written must not get the time to write.
            await meter.more(acknowledgements, partial(server.process.signal, SIGKILL))
            return
        await meter.more(acknowledgements)
        if self.event is Event.SNAPSHOT:
            asking = asyncio.create_task(_snapshot(control, meter))
            await asyncio.wait((asking,), timeout=self.share * pace.snapshot(server.settings))
        elif self.event is Event.CHECKPOINT:
            await _appearance(server.directory, "*.snap.inprogress")
            await asyncio.sleep(self.share * pace.snapshot(server.settings))
        else:
            if self.event is Event.ROTATION:
                await _appearance(server.directory, "*.xlog")
            await asyncio.sleep(self.share / 50)


async def _snapshot(control: Pipeline, meter: Meter) -> None:
    reply = await control.call("box.snapshot")
    if reply is None or reply.error_code == CHECKPOINT_IN_PROGRESS:
        return
    if reply.error_code:
        meter.complain(Kind.ANSWER, f"box.snapshot: error {reply.error_code} ({reply.data})")
    else:
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


def draw_settings(chance: Random, event: Event, *, with_snapshots: bool) -> Settings:
    """Choose options under which an event can happen."""
    defaults = Settings()
    never = defaults.checkpoint_wal_threshold
    thresholds = (30_000, 100_000, 500_000) if with_snapshots else (never,)
    return Settings(
        wal_mode=chance.choice(("write", "fsync")),
        wal_max_size=chance.choice((20_000, 100_000))
        if event is Event.ROTATION
        else chance.choice((50_000, 500_000, defaults.wal_max_size)),
        checkpoint_count=chance.randrange(1, 4),
        checkpoint_wal_threshold=chance.choice(thresholds)
        if event is Event.CHECKPOINT
        else chance.choice((*thresholds, never)),
        snap_io_rate_limit=chance.choice((0.0, 0.0, 1.0, 5.0)),
    )
