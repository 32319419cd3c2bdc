"""Cost of metrics: `python -m bench.scenarios.server.metrics` measures at full size."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.peers.contender import Server
from bench.peers.database import Ours
from bench.scenarios.server.metrics import OursWithMetrics, main, measure, read_each_second, shown
from bench.workloads.rate import Shape


def test_both_servers_are_measured_in_each_round(tmp_path: Path) -> None:
    measured = measure(tmp_path, [Shape(2, 10)], rounds=2, tasks=100)
    cycles = [rate.contender for rate in measured if rate.operation == "cycle"]
    assert cycles == [Ours.name, OursWithMetrics.name, OursWithMetrics.name, Ours.name]
    assert "2 × 10" in shown(measured)


def test_the_metrics_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.scenarios.server.metrics.EVERY", 0.01)
    with Server(OursWithMetrics(), tmp_path / "data") as server:
        with read_each_second(server) as reader:
            while reader.reads < 3:
                assert reader.is_alive()
        assert reader.failure is None


def test_metrics_that_cannot_be_read_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.scenarios.server.metrics.EVERY", 0.01)
    with Server(OursWithMetrics(), tmp_path / "data") as server:
        process = server.process
        with pytest.raises(OSError), read_each_second(server) as reader:
            process.stop()
            reader.join()


def test_a_wrong_shape_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--shape", "10y100"])
    assert "'10y100' is not of the form 10x100" in capsys.readouterr().err
