"""When a life ends: some time after an event, both drawn from the seed."""

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
"""Seconds between two looks for a file that is to appear."""

LOOK_FOR = 3.0
"""Seconds after which a life ends although the file has not appeared."""

CHECKPOINT_IN_PROGRESS = 120


class Event(StrEnum):
    """What a life's end comes after."""

    LOAD = "load"
    """A number of acknowledgements."""

    SNAPSHOT = "snapshot"
    """Somebody asked for a snapshot."""

    CHECKPOINT = "checkpoint"
    """A snapshot that the server makes by itself has begun."""

    ROTATION = "rotation"
    """A new log has begun."""

    STOP = "stop"
    """A number of acknowledgements; then the server is asked to stop, not killed."""


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
"""What the lives end with, one after the other."""

SNAPSHOT_EVENTS: Final = frozenset({Event.SNAPSHOT, Event.CHECKPOINT})
"""What there is only if there are snapshots under load."""


class Pace:
    """How long things take here.

    Attributes:
        start: Seconds from the launch until it serves.
        recovery: Seconds of these that it reads its files and sets itself up.
        snapshots: Seconds that a snapshot takes, by the rate limit.
    """

    def __init__(self) -> None:
        self.start = 0.5
        self.recovery = 0.2
        self.snapshots: dict[float, float] = {}

    def snapshot(self, settings: Settings) -> float:
        """Seconds that a snapshot takes."""
        limit = settings.snap_io_rate_limit
        return self.snapshots.get(limit, 0.1 + (1 / limit if limit else 0))


@dataclass(frozen=True, slots=True)
class Moment:
    """The end of a life.

    Attributes:
        event: What it comes after.
        acknowledgements: How many of them come before that.
        snapshots: How many snapshots are asked for, and waited for, before that.
        share: When it comes: 0 at once, 1 about when what has begun ends.
        is_sudden: Whether the last of a number of acknowledgements and the kill are one moment.
    """

    event: Event
    acknowledgements: int
    snapshots: int
    share: float
    is_sudden: bool

    @classmethod
    def draw(cls, chance: Random, event: Event, *, with_snapshots: bool) -> Moment:
        """Any moment after an event."""
        acknowledgements = int(10 ** chance.uniform(1.3, 3.3))
        snapshots = chance.choice((0, 0, 1, 2)) if with_snapshots else 0
        return cls(event, acknowledgements, snapshots, chance.uniform(0, 1.3), chance.random() < 0.7)

    async def come(self, meter: Meter, control: Pipeline, server: Server, pace: Pace) -> None:
        """Wait for it. A sudden one is the end, too.

        Args:
            meter: What the clients have done.
            control: A connection for requests of its own.
            server: The server.
            pace: How long things take.
        """
        for _ in range(self.snapshots):
            await meter.more(self.acknowledgements // (self.snapshots + 1))
            begin = monotonic()
            await _snapshot(control, meter)
            pace.snapshots[server.settings.snap_io_rate_limit] = monotonic() - begin
        acknowledgements = self.acknowledgements // (self.snapshots + 1)
        if self.event is Event.LOAD and self.is_sudden:
            # A server that answers before it has written must not find the time to write.
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
    """Wait until there is a file that was not there before, or until that takes too long."""
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
    """Options under which an event can happen."""
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
