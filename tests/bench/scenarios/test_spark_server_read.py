"""The benchmark of reading a running server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from bench.scenarios.spark.spark_server_read import (
    ASYNCTNT,
    NET_BOX,
    SPARKS,
    TARANTOOLCTL,
    Reading,
    Writing,
    main,
    tables,
)
from tests.programs import require_program

QUICKLY: Final = ("--page-rows", "100", "--warm-ups", "1")


def measured(tmp_path: Path, rows: int, peers: str, readers: Sequence[str], rounds: int = 1) -> list[Any]:
    """The readings of a run."""
    found = tmp_path / "found.json"
    command = ["--rows", str(rows), "--rounds", str(rounds), *QUICKLY, "--peers", peers]
    main([*command, "--readers", ",".join(readers), "--json", str(found), "--directory", str(tmp_path)])
    assert list(tmp_path.iterdir()) == [found]
    readings: list[Any] = json.loads(found.read_text())
    for each in readings:
        assert abs(each["rows"] - rows) <= each["beside"]["requests"] // 3
        assert each["alone"]["requests"] > 0
        assert each["memory_peak"] >= each["memory_before"] > 0
    return readings


@pytest.mark.process
@pytest.mark.parametrize("rows", [1000, 1050])
def test_all_rows_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: int) -> None:
    """Also if the last page is full."""
    readings = measured(tmp_path, rows, "ours", [ASYNCTNT], rounds=2)
    assert [(each["server"], each["reader"], each["round"]) for each in readings] == [
        ("ours", ASYNCTNT, 0),
        ("ours", ASYNCTNT, 1),
    ]
    assert capsys.readouterr().out.count("| ours | asynctnt |") == 2


@pytest.mark.process
@pytest.mark.real_tarantool
def test_tarantoolctl_reads_tarantool_only(tmp_path: Path) -> None:
    require_program("tarantoolctl", "tarantool")
    readings = measured(tmp_path, 1000, "ours,tarantool", [NET_BOX, TARANTOOLCTL])
    assert [(each["reader"], each["server"]) for each in readings] == [
        (NET_BOX, "ours"),
        (NET_BOX, "Tarantool"),
        (TARANTOOLCTL, "Tarantool"),
    ]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_spark_reads_with_one_core_and_with_two(tmp_path: Path) -> None:
    require_program("java", "default-jre-headless")
    readings = measured(tmp_path, 1000, "ours", list(SPARKS))
    assert [each["reader"] for each in readings] == list(SPARKS)
    assert all(each["reader_cpu"] > 0 for each in readings)


def test_tables_have_medians_and_the_largest_growth() -> None:
    readings = [
        Reading(
            server="ours",
            reader=ASYNCTNT,
            round=number,
            rows=1_000_000,
            seconds=seconds,
            server_cpu=0.1 * seconds,
            reader_cpu=0.5 * seconds,
            memory_before=100 * 2**20,
            memory_peak=(100 + number) * 2**20,
            stolen=0.01 * number,
            alone=Writing(600, 0.1, 0.2, 0.3),
            beside=Writing(600, 0.2, 0.4, 1.0 + number),
        )
        for number, seconds in enumerate([1.0, 2.0, 8.0])
    ]
    speeds, latencies = tables(readings)
    assert speeds.rows == [
        ["ours", ASYNCTNT, "500", "2.00", "0.200", "1.000", "100", "102", "2.0", "2.0%"],
    ]
    assert latencies.rows == [
        ["ours", ASYNCTNT, "0.10", "0.20", "0.20", "0.40", "0.30", "2.00", "3.00"],
    ]


def test_an_unknown_reader_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--readers", "telepathy"])
    assert "'telepathy' is none of" in capsys.readouterr().err
