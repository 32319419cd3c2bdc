"""Cost of policies: `python -m bench.scenarios.queues.policies` measures at full size."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.scenarios.queues.policies import SETTINGS, PutsWithOptions, main, measure, shown
from bench.workloads.rate import Shape


@pytest.mark.process
@pytest.mark.slow
def test_all_settings_are_measured_in_each_round(tmp_path: Path) -> None:
    measured = measure(tmp_path, [Shape(2, 10)], rounds=2, tasks=100)
    cycles = [rate.contender for rate in measured if rate.operation == "cycle"]
    names = [setting.name for setting in SETTINGS]
    assert cycles == [*names, *reversed(names)]
    text = shown(measured)
    assert all(name in text for name in names)


def test_each_put_has_a_key_of_its_own() -> None:
    payloads = [bytes([letter]) * 100 for letter in b"abc"]
    frames = PutsWithOptions({"unique_for": 60}, has_key=True).puts(payloads).data
    assert [frames.count(payload[:24]) for payload in payloads] == [5, 5, 5]  # four times in the payload


def test_a_delay_is_refused() -> None:
    with pytest.raises(ValueError, match="no delay"):
        PutsWithOptions({}, has_key=False).puts([b"x"], delay=5)


def test_a_wrong_shape_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--shape", "many"])
    assert "is not of the form 10x100" in capsys.readouterr().err
