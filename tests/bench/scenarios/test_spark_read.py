"""The benchmark of what Spark reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bench.lib.cpu_steal import Steal, steal_seconds
from bench.scenarios.spark_read import (
    CORES,
    MODES,
    STOLEN,
    Reading,
    Round,
    Spark,
    least_stolen,
    rows_read,
    tables,
    write_files,
)
from tests.programs import REPOSITORY, require_program


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
            ["ours", "snapshot", "1", "40;", "2.5"],
            ["ours", "snapshot", "2", "80;", "1.2"],
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


class TestRounds:
    """Others may have the processors meanwhile."""

    def rounds(self, *stolen: float) -> Iterator[Round]:
        return (Round({1: number, 2: number}, share) for number, share in enumerate(stolen))

    def test_come_again_until_little_is_stolen(self) -> None:
        rounds = self.rounds(0.3, STOLEN * 1.01, STOLEN, 0.0)
        assert least_stolen(partial(next, rounds), 4).seconds[1] == 2
        assert next(rounds).stolen == 0.0

    def test_come_so_often_at_most(self) -> None:
        """Then the one that was disturbed least counts, not the fastest one."""
        rounds = self.rounds(0.3, 0.1, 0.2, 0.0)
        assert least_stolen(partial(next, rounds), 3).seconds[1] == 1
        assert next(rounds).stolen == 0.0


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


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_measures_each_mode_with_one_core_and_with_two(tmp_path: Path) -> None:
    require_program("java", "default-jre-headless")
    found = tmp_path / "found.json"
    command = [
        sys.executable,
        "-m",
        "bench.scenarios.spark_read",
        "--alone",
        "--tasks",
        "500,1000",
        "--rounds",
        "2",
    ]
    done = subprocess.run(
        [*command, "--json", found, "--directory", tmp_path],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "two cores over one, changes, 1,000" in done.stdout, done.stderr
    readings = json.loads(found.read_text())
    assert list(tmp_path.iterdir()) == [found]
    assert {(each["tasks"], each["mode"], each["cores"], each["rows"]) for each in readings} == {
        (tasks, mode, cores, rows_read(mode, history))
        for tasks in (500, 1000)
        for mode, history in write_files(tmp_path / str(tasks), tasks).items()
        for cores in CORES
    }
    assert all(len(each["seconds"]) == len(each["stolen"]) == 2 for each in readings)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_spark_that_cannot_read_says_so(tmp_path: Path) -> None:
    require_program("java", "default-jre-headless")
    with Spark(1) as spark, pytest.raises(EOFError, match="has not read"):
        spark.seconds("snapshot", tmp_path)
