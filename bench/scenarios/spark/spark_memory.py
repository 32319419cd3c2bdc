"""Peak memory of Spark's processes while they read files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.lib.table import table
from bench.scenarios.spark.spark_process import Role, Run, Spark
from bench.scenarios.spark.spark_rounds import say
from bench.workloads.history import History

_MEBIBYTE: Final = 1024**2


@dataclass(frozen=True, slots=True)
class Memory:
    """The peaks of a query, in bytes.

    Attributes:
        mode: the mode of the data source.
        tasks: the number of tasks in the files.
        cores: the number of Spark's cores, and of its task workers.
        task: the largest Python worker that runs tasks.
        planning: the largest Python worker of the driver, which finds out columns and partitions.
        jvm: the Java of the driver and, in local mode, of the executor.
        heap: the part of it that is the heap, including garbage.
    """

    mode: str
    tasks: int
    cores: int
    task: int
    planning: int
    jvm: int
    heap: int


def measure_memory(files: Mapping[str, History], tasks: int, cores: int) -> Iterator[Memory]:
    """Measure a query in each mode, each in a new Spark: processes keep memory for later queries.

    Parameters:
        files: the files by mode.
        tasks: the number of tasks in the files.
        cores: the number of cores.
    """
    for mode, history in files.items():
        with Spark(cores) as spark:
            found = _of(spark.run(mode, history.directory), mode, tasks, cores)
        say(f"memory, {mode}: {_mebibytes(found.task)} MiB in a task, {_mebibytes(found.jvm)} MiB in Java")
        yield found


def memory_table(found: Sequence[Memory]) -> str:
    """Format the peaks.

    Parameters:
        found: the peaks of all queries.
    """
    return table(
        "Peak memory of a query in a new Spark, in MiB",
        ["mode", "tasks", "cores", "task worker", "planning worker", "JVM", "its heap"],
        [
            [
                each.mode,
                f"{each.tasks:,}",
                str(each.cores),
                *map(_mebibytes, (each.task, each.planning, each.jvm, each.heap)),
            ]
            for each in found
        ],
    )


def _of(run: Run, mode: str, tasks: int, cores: int) -> Memory:
    peaks = run.peaks
    return Memory(mode, tasks, cores, peaks[Role.TASK], peaks[Role.PLANNING], peaks[Role.JVM], run.heap)


def _mebibytes(size: int) -> str:
    return f"{size / _MEBIBYTE:,.0f}"
