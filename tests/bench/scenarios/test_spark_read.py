"""The benchmark of what Spark reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.lib.cpu_steal import Steal, steal_seconds
from bench.lib.process_tree import ProcessUsage
from bench.scenarios.spark.spark_logs import LOG_MODES, logs_table
from bench.scenarios.spark.spark_memory import Memory, memory_table
from bench.scenarios.spark.spark_partitions import partitions_table
from bench.scenarios.spark.spark_process import Role, Run, Spark
from bench.scenarios.spark.spark_read import CORES, MODES, tables, write_files
from bench.scenarios.spark.spark_rounds import STOLEN, Reading, Round, Rounds, least_stolen, measure_rounds
from bench.workloads.special_logs import LogKind
from tests.programs import REPOSITORY, require_program


def run(seconds: float, **cpu_seconds: float) -> Run:
    """A query."""
    return Run(seconds, {Role[name]: value for name, value in cpu_seconds.items()}, {}, 0)


def reading(who: str, mode: str, cores: int, *seconds: float) -> Reading:
    """Of 1,000 tasks and 100,000 rows."""
    return Reading(who, mode, 1000, cores, 100_000, seconds)


class TestRatios:
    def test_are_of_rounds_that_came_after_each_other(self) -> None:
        """Not of the medians: the machine was slower in the second round, for both."""
        one, two = reading("ours", "changes", 1, 2.0, 8.0, 2.2), reading("ours", "changes", 2, 1.0, 4.0, 2.0)
        assert two.ratios(one) == pytest.approx([2.0, 2.0, 1.1])
        assert two.rate == pytest.approx(50_000)

    def test_are_of_a_peer_that_was_measured_once_as_well(self) -> None:
        assert reading("ours", "changes", 2, 1.0, 2.0).ratios(reading("peer", "changes", 2, 10.0)) == [
            10.0,
            5.0,
        ]

    def test_are_told_with_their_spread(self) -> None:
        ours = [reading("ours", mode, cores, 2.0 / cores, 3.0 / cores) for mode in MODES for cores in CORES]
        rates, ratios = tables(ours)
        assert [line.split() for line in rates.splitlines()[4:6]] == [
            ["ours", "snapshot", "1", "40;", "40;", "2.5"],
            ["ours", "snapshot", "2", "80;", "40;", "1.2"],
        ]
        assert ratios.splitlines()[-1].split(",")[-1].split() == [
            "1,000"[2:],
            "2.00",
            "2.00",
            "to",
            "2.00",
            "0.0%",
            "1.7",
        ]

    def test_are_told_with_what_was_stolen_most(self) -> None:
        readings = [
            Reading("ours", mode, 1000, cores, 1, [1.0, 1.0], [0.0, 0.02 * cores])
            for mode in MODES
            for cores in CORES
        ]
        _, ratios = tables(readings)
        assert ratios.splitlines()[-1].split()[-2:] == ["4.0%", "1.7"]

    def test_need_both_numbers_of_cores(self) -> None:
        """A large size may be measured with one of them, and in one mode."""
        (rates,) = tables([reading("ours", "changes", 2, 1.0)])
        assert rates.splitlines()[-1].split() == ["ours", "changes", "2", "100;", "50;", "1.0"]


class TestRounds:
    """Others may have the processors meanwhile."""

    def rounds(self, *stolen: float) -> Iterator[Round[int]]:
        return (Round({1: run(number)}, share) for number, share in enumerate(stolen))

    def test_come_again_until_little_is_stolen(self) -> None:
        rounds = self.rounds(0.3, STOLEN * 1.01, STOLEN, 0.0)
        assert least_stolen(partial(next, rounds), 4).runs[1].seconds == 2
        assert next(rounds).stolen == 0.0

    def test_come_so_often_at_most(self) -> None:
        """Then the one that was disturbed least counts, not the fastest one."""
        rounds = self.rounds(0.3, 0.1, 0.2, 0.0)
        assert least_stolen(partial(next, rounds), 3).runs[1].seconds == 1
        assert next(rounds).stolen == 0.0

    def test_alternate_between_the_queries_of_a_case(self) -> None:
        asked: list[tuple[str, int]] = []

        def query(case: str, cores: int) -> Run:
            asked.append((case, cores))
            return run(len(asked), TASK=1.0, JVM=0.5)

        cases = {case: {cores: partial(query, case, cores) for cores in CORES} for case in "ab"}
        found = measure_rounds(cases, Rounds(count=2, warm_ups=1, tries=1))
        assert asked == [
            *(("a", 1), ("a", 2), ("b", 1), ("b", 2)),
            *(("a", 2), ("a", 1), ("b", 2), ("b", 1)),
            *(("a", 1), ("a", 2), ("b", 1), ("b", 2)),
        ]
        of = Reading.of(2, found["b"], mode="changes", tasks=10, cores=2, rows=220)
        assert of.seconds == [7.0, 12.0]
        assert of.rate == pytest.approx(220 / 9.5)
        assert (of.cpu(), of.cpu(Role.TASK)) == (1.5, 1.0)


class TestUsage:
    @pytest.mark.parametrize(
        ("command", "role"),
        [
            (["/usr/lib/jvm/java-17/bin/java", "-cp", "x", "pyspark-shell"], Role.JVM),
            (["python", "-m", "pyspark.daemon", "pyspark.worker"], Role.TASK),
            (["python", "-m", "pyspark.daemon", "pyspark.sql.worker.plan_data_source_read"], Role.PLANNING),
            (["python", "-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source"], Role.PLANNING),
            (["python", "-m", "bench.scenarios.spark.spark_queries", "2"], Role.DRIVER),
        ],
    )
    def test_is_of_the_process_of_a_role(self, command: list[str], role: Role) -> None:
        assert Role.of(ProcessUsage(command, 0.0, 0)) is role

    def test_is_the_time_of_all_and_the_memory_of_the_largest(self) -> None:
        command = ["python", "-m", "pyspark.daemon", "pyspark.worker"]
        found = Run.of(1.0, 7, [ProcessUsage(command, 0.5, 10), ProcessUsage(command, 0.25, 20)])
        assert (found.cpu_seconds[Role.TASK], found.peaks[Role.TASK]) == (0.75, 20)
        assert (found.cpu_seconds[Role.JVM], found.peaks[Role.JVM], found.heap) == (0.0, 0, 7)


class TestTables:
    def test_memory_is_in_mebibytes(self) -> None:
        found = Memory("current", 1000, 2, 3 << 20, 5 << 19, 2000 << 20, 0)
        assert memory_table([found]).splitlines()[-1].split() == [
            *("current", "1,000", "2"),
            *("3", "2", "2,000", "0"),
        ]

    def test_sizes_of_partitions_have_the_processor_time_of_tasks_and_in_all(self) -> None:
        rounds = [Round({8 << 20: run(2.0, TASK=1.5, JVM=1.0)}, 0.0)]
        found = Reading.of(
            8 << 20, rounds, mode="changes", tasks=10, cores=2, rows=22, partition_bytes=8 << 20
        )
        assert partitions_table([found]).splitlines()[-1].split() == [
            *("changes", "10", "8"),
            *("2.00", "2.00", "2.50", "1.50", "0.0%"),
        ]

    def test_special_logs_have_the_processor_time_per_row(self) -> None:
        rounds = [Round({1: run(2.0, TASK=1.0, PLANNING=0.5, JVM=0.75)}, 0.0)]
        found = Reading.of(1, rounds, mode="changes", tasks=10**6, cores=1, rows=10**6, logs="upserts")
        assert logs_table([found]).splitlines()[-1].split() == [
            *("upserts", "changes", "1,000,000", "1", "500", "2.00"),
            *("1.00", "0.50", "0.75", "2.25", "0.0%"),
        ]


class TestSteal:
    def test_is_in_the_line_of_all_processors(self, tmp_path: Path) -> None:
        stat = tmp_path / "stat"
        ticks = os.sysconf("SC_CLK_TCK")
        stat.write_text(f"cpu  10 20 30 40 50 60 70 {3 * ticks} 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
        assert steal_seconds(stat) == 3

    def test_is_nothing_where_it_is_not_told(self, tmp_path: Path) -> None:
        assert steal_seconds(tmp_path / "stat") == 0

    def test_is_a_part_of_the_time_of_all_processors(self) -> None:
        stolen, clock = iter([7.0, 12.0]), iter([100.0, 110.0])
        assert Steal(partial(next, stolen), partial(next, clock), 2).share() == 0.25


def measured(tmp_path: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """Run the benchmark, without the peer. Returns: its output, and the figures."""
    require_program("java", "default-jre-headless")
    found = tmp_path / "found.json"
    command = [sys.executable, "-m", "bench.scenarios.spark.spark_read", "--alone", *options]
    done = subprocess.run(
        [*command, "--json", found, "--directory", tmp_path],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == [found]
    return done.stdout, json.loads(found.read_text())


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_measures_each_mode_with_one_core_and_with_two(tmp_path: Path) -> None:
    output, found = measured(
        tmp_path, "--tasks", "500,1000", "--rounds", "2", "--warm-ups", "1,0", "--no-memory"
    )
    assert "two cores over one, changes, 1,000" in output
    assert {(each["tasks"], each["mode"], each["cores"], each["rows"]) for each in found["readings"]} == {
        (tasks, mode, cores, history.rows_read(mode))
        for tasks in (500, 1000)
        for mode, history in write_files(tmp_path / str(tasks), tasks).items()
        for cores in CORES
    }
    assert all(len(each["seconds"]) == len(each["stolen"]) == 2 for each in found["readings"])


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_measures_the_memory_of_chosen_modes(tmp_path: Path) -> None:
    options = ["--tasks", "500", "--rounds", "1", "--warm-ups", "0", "--cores", "1", "--modes", "current"]
    output, found = measured(tmp_path, *options)
    assert "planning worker" in output
    (memory,) = found["memory"]
    assert (memory["mode"], memory["tasks"], memory["cores"]) == ("current", 500, 1)
    # Each has libraries, and Java has most.
    assert all(memory[name] > 32 << 20 for name in ("task", "planning", "heap"))
    assert memory["jvm"] > memory["heap"]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_measures_sizes_of_partitions(tmp_path: Path) -> None:
    options = ["--tasks", "500", "--rounds", "1", "--warm-ups", "0", "--partition-bytes", "4K,8M"]
    output, found = measured(tmp_path, *options)
    assert "Sizes of partitions, 2 cores" in output
    assert [(each["mode"], each["cores"], each["partition_bytes"]) for each in found["readings"]] == [
        (mode, 2, partition_bytes) for mode in MODES for partition_bytes in (4 << 10, 8 << 20)
    ]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_measures_special_logs(tmp_path: Path) -> None:
    options = ["--tasks", "2000", "--rounds", "1", "--warm-ups", "0", "--cores", "1"]
    output, found = measured(tmp_path, *options, "--logs", ",".join(LogKind))
    assert "microseconds of processor time per row" in output
    assert {(each["logs"], each["mode"], each["cores"]) for each in found["readings"]} == {
        (kind, mode, 1) for kind in LogKind for mode in LOG_MODES
    }
    assert all(1_990 < each["rows"] <= 2_100 for each in found["readings"])
    assert all(each["cpu_seconds"][0][Role.TASK] > 0 for each in found["readings"])


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_spark_that_cannot_read_says_so(tmp_path: Path) -> None:
    require_program("java", "default-jre-headless")
    with Spark(1) as spark, pytest.raises(EOFError, match="has not answered"):
        spark.run("snapshot", tmp_path)
