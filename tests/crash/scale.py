"""How long runs are, and how large databases."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True)
class Scale:
    """The limits of what is drawn for a run or a database.

    Attributes:
        acknowledgements: The powers of ten between which the number of acknowledgements lies.
        ballast: The numbers of rows of ballast.
        snap_io_rate_limits: MiB per second that a snapshot may write; 0 for any.
        wal_max_sizes: Bytes of a log.
        rotations: Bytes of a log in a run that ends after a rotation.
        thresholds: Bytes of logs after which there is a snapshot.
        snapshot: Seconds that a snapshot without a limit takes, before one is measured.
        megabytes: The size of a snapshot, before one is measured.
        snapshots: The numbers of finished snapshots in a run.
        verified: The share of the kills after which the server's own tool checks the files.
        long: The share of the runs that are on the scale `LONG`.
    """

    acknowledgements: tuple[float, float]
    ballast: tuple[int, ...]
    snap_io_rate_limits: tuple[float, ...]
    wal_max_sizes: tuple[int, ...]
    rotations: tuple[int, ...]
    thresholds: tuple[int, ...]
    snapshot: float
    megabytes: float
    snapshots: tuple[int, ...]
    verified: float
    long: float

    def of_run(self, chance: Random) -> Scale:
        """Choose the scale of a run."""
        return LONG if chance.random() < self.long else self


LONG: Final = Scale(
    acknowledgements=(1.3, 3.3),
    ballast=(6000,),
    snap_io_rate_limits=(0.0, 0.0, 1.0, 5.0),
    wal_max_sizes=(50_000, 500_000, 256 * 1024**2),
    rotations=(20_000, 100_000),
    thresholds=(30_000, 100_000, 500_000),
    snapshot=0.1,
    megabytes=1.0,
    snapshots=(0, 0, 1, 2),
    verified=0.25,
    long=0.0,
)
"""Runs of seconds, for servers that take long to start."""

SHORT: Final = Scale(
    acknowledgements=(0.0, 2.6),
    ballast=(0, 0, 1000, 1000, 2000),
    snap_io_rate_limits=(0.0, 0.0, 5.0, 20.0),
    wal_max_sizes=(20_000, 100_000, 256 * 1024**2),
    rotations=(4_000, 20_000),
    thresholds=(5_000, 15_000, 50_000),
    snapshot=0.02,
    megabytes=0.3,
    snapshots=(0, 0, 0, 1),
    verified=0.05,
    long=0.01,
)
"""Runs of some 10 to 300 milliseconds, and some long ones."""
