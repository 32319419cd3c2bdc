"""Logs that are not like those of a busy queue: the time of queries, and the processor time per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.lib.table import table
from bench.scenarios.spark.spark_process import Role, Spark
from bench.scenarios.spark.spark_rounds import Reading, Rounds, measure_rounds
from bench.workloads.history import HistoryWriter
from bench.workloads.special_logs import LogKind, write_special_logs

LOG_MODES: Final = ("changes", "current")
"""The modes that read logs."""


class _Case(NamedTuple):
    kind: LogKind
    mode: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.mode}"


def measure_logs(
    sparks: Mapping[int, Spark],
    directory: Path,
    kinds: Sequence[LogKind],
    modes: Sequence[str],
    rows: int,
    rounds: Rounds,
) -> Iterator[Reading]:
    """Write logs, and measure each mode.

    Parameters:
        sparks: the sessions by their number of cores.
        directory: an empty directory for the files.
        kinds: the kinds of logs.
        modes: the modes of the data source.
        rows: the number of rows in the logs.
        rounds: how often.
    """
    writer = HistoryWriter(directory / "template")
    files = {kind: write_special_logs(writer, kind, directory / kind, rows) for kind in kinds}
    cases = {
        _Case(kind, mode): {
            cores: partial(spark.run, mode, files[kind].directory) for cores, spark in sparks.items()
        }
        for kind in kinds
        for mode in modes
    }
    for (kind, mode), found in measure_rounds(cases, rounds).items():
        read = files[kind].rows_read(mode)
        for cores in sparks:
            yield Reading.of(cores, found, mode=mode, tasks=rows, cores=cores, rows=read, logs=kind)


def logs_table(readings: Sequence[Reading]) -> str:
    """Format the measurements.

    Parameters:
        readings: the measurements.
    """
    return table(
        "Special logs; microseconds of processor time per row",
        [
            "logs",
            "mode",
            "rows",
            "cores",
            "thousand rows\nper second",
            "seconds",
            "in tasks",
            "planning",
            "JVM",
            "in all",
            "stolen\nat most",
        ],
        [
            [
                str(each.logs),
                each.mode,
                f"{each.rows:,}",
                str(each.cores),
                f"{each.rate / 1000:,.0f}",
                f"{median(each.seconds):.2f}",
                *(_per_row(each, role) for role in (Role.TASK, Role.PLANNING, Role.JVM)),
                _per_row(each, *Role),
                f"{max(each.stolen):.1%}",
            ]
            for each in readings
        ],
        texts=2,
    )


def _per_row(reading: Reading, *roles: Role) -> str:
    return f"{reading.cpu(*roles) * 1e6 / reading.rows:.2f}"
