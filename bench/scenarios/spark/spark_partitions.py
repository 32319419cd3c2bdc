"""Sizes of partitions: the time of queries, and the processor time of all of Spark's processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Final

from bench.lib.table import table
from bench.scenarios.spark.spark_process import Role, Spark
from bench.scenarios.spark.spark_rounds import Reading, Rounds, measure_rounds
from bench.workloads.history import History

_MEBIBYTE: Final = 1024**2


def measure_partitions(
    spark: Spark, files: Mapping[str, History], tasks: int, sizes: Sequence[int], rounds: Rounds
) -> Iterator[Reading]:
    """Measure each mode with each size of partitions.

    Parameters:
        spark: the session.
        files: the files by mode.
        tasks: the number of tasks in the files.
        sizes: the sizes in bytes.
        rounds: how often.
    """
    cases = {
        mode: {size: partial(spark.run, mode, history.directory, size) for size in sizes}
        for mode, history in files.items()
    }
    for mode, found in measure_rounds(cases, rounds).items():
        rows = files[mode].rows_read(mode)
        for size in sizes:
            yield Reading.of(
                size, found, mode=mode, tasks=tasks, cores=spark.cores, rows=rows, partition_bytes=size
            )


def partitions_table(readings: Sequence[Reading]) -> str:
    """Format the measurements.

    Parameters:
        readings: the measurements.
    """
    return table(
        f"Sizes of partitions, {readings[0].cores} cores",
        ["mode", "tasks", "MiB", "seconds", "fastest", "CPU seconds", "of tasks", "stolen at most"],
        [
            [
                each.mode,
                f"{each.tasks:,}",
                f"{(each.partition_bytes or 0) / _MEBIBYTE:g}",
                f"{median(each.seconds):.2f}",
                f"{min(each.seconds):.2f}",
                f"{each.cpu():.2f}",
                f"{each.cpu(Role.TASK):.2f}",
                f"{max(each.stolen):.1%}",
            ]
            for each in readings
        ],
    )
