"""A process with a Spark session that runs queries on request, and what its processes use for each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from bench.lib.process_tree import ProcessTreeWatch, ProcessUsage
from bench.lib.query_process import QueryProcess

_TASK: Final = "pyspark.worker"
_PLANNING: Final = "pyspark.sql.worker."


class Role(StrEnum):
    """The tasks of Spark's processes.

    The last argument of Python's command line is the module that a worker runs: Spark starts a
    `pyspark.daemon` for each such module, which forks the workers.
    """

    TASK = "task worker"
    """Runs the tasks of a query."""

    PLANNING = "planning worker"
    """Finds out the columns (`create_data_source`) and the partitions (`plan_data_source_read`)."""

    JVM = "JVM"
    """The driver; in local mode, its threads are the executor."""

    DRIVER = "driver's Python"
    """The program that uses Spark."""

    @classmethod
    def of(cls, usage: ProcessUsage) -> Role:
        """Return the role of a process of Spark."""
        if Path(usage.command[0]).name == "java":
            return cls.JVM
        if usage.command[-1] == _TASK:
            return cls.TASK
        return cls.PLANNING if usage.command[-1].startswith(_PLANNING) else cls.DRIVER


@dataclass(frozen=True, slots=True)
class Run:
    """A query that has run.

    Attributes:
        seconds: its duration.
        cpu_seconds: the processor time of the processes of each role.
        peaks: the peak memory of the largest process of each role, in bytes.
        heap: the peak size of the heap of the JVM, in bytes, including garbage.
    """

    seconds: float
    cpu_seconds: Mapping[Role, float]
    peaks: Mapping[Role, int]
    heap: int

    @classmethod
    def of(cls, seconds: float, heap: int, usages: Iterable[ProcessUsage]) -> Self:
        """Summarize the usage of all processes.

        Parameters:
            seconds: the duration of the query.
            heap: the peak size of the heap, in bytes.
            usages: the usage of each process.
        """
        cpu_seconds = dict.fromkeys(Role, 0.0)
        peaks = dict.fromkeys(Role, 0)
        for usage in usages:
            role = Role.of(usage)
            cpu_seconds[role] += usage.cpu_seconds
            peaks[role] = max(peaks[role], usage.peak)
        return cls(seconds, cpu_seconds, peaks, heap)


class Spark(QueryProcess):
    """A process with a Spark session that runs queries on request, as a context manager.

    Parameters:
        cores: the number of cores for all its processes.
    """

    def __init__(self, cores: int) -> None:
        super().__init__([sys.executable, "-m", "bench.scenarios.spark.spark_queries", str(cores)])
        self.cores = cores

    def seconds(self, mode: str, path: Path) -> float:
        """Return the duration of a query in seconds; parameters and errors as of `run`."""
        return self.run(mode, path).seconds

    def run(self, mode: str, path: Path, partition_bytes: int | None = None) -> Run:
        """Run a query that reads all columns of all rows.

        Parameters:
            mode: of the data source, or `json`.
            path: the path to read.
            partition_bytes: the size of partitions; by default, all cores have equal work.

        Raises:
            EOFError: Spark has ended; its output says why.
            BrokenPipeError: Spark had ended before.
        """
        with ProcessTreeWatch(self.pid) as watch:
            answer = self.ask({"mode": mode, "path": str(path), "partition_bytes": partition_bytes})
        return Run.of(answer["seconds"], answer["heap"], watch.usages)
