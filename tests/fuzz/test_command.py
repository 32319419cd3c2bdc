"""How the command divides its time and runs several targets at once."""

from __future__ import annotations

import threading

import pytest

from tests.fuzz.__main__ import run_all, share
from tests.fuzz.campaign import Report


@pytest.mark.parametrize(
    ("seconds", "targets", "jobs", "each"),
    [(7200, 18, 1, 400), (7200, 18, 2, 800), (60, 1, 1, 60), (60, 1, 2, 60), (5, 18, 1, 1)],
)
def test_targets_share_the_time(seconds: int, targets: int, jobs: int, each: int) -> None:
    assert share(seconds, targets, jobs) == each


def test_two_targets_run_at_once() -> None:
    both = threading.Barrier(2, timeout=60)

    def run(name: str) -> Report:
        both.wait()
        return Report(name, 1, 10, 0, 0, None, "")

    names = ["a", "b", "c", "d"]
    assert [report.name for report in run_all(names, run, 2)] == names


def test_a_report_says_whether_something_is_found() -> None:
    assert (
        str(Report("a", 1, 10, 2, 3, None, "")) == "a: seed 1, 10 inputs, 2 covered, corpus 3, nothing found"
    )
    text = str(Report("a", 1, 10, 2, 3, b"x", "the end"))
    assert "1 finding" in text
    assert "FOUND b'x'" in text
