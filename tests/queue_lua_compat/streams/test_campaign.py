"""A few random histories of each queue; `make queue-streams` runs any number."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.queue_lua_compat.streams.campaign import campaign
from tests.queue_lua_compat.streams.dialects import DIALECTS
from tests.queue_lua_compat.streams.history import History

HISTORIES = 8
THINGS = (
    "commit of changes",
    "rollback",
    "TRANSACTION_CONFLICT",
    "TRANSACTION_TIMEOUT",
    "disconnect",
    "lost log",
)


@pytest.mark.parametrize("kind", DIALECTS)
def test_a_queue_does_what_its_model_does(kind: str) -> None:
    report = campaign(kind, 1, histories=HISTORIES)
    assert report.finding is None, report.finding
    assert report.histories == HISTORIES
    # Everything of interest has happened.
    assert min(report.counts[thing] for thing in THINGS) > 0, report


@pytest.mark.parametrize("kind", ["tutorial", "legacy"])
def test_a_queue_that_forgets_an_owner_is_found_and_can_be_found_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from queue_lua_compat.task_owners import TaskOwners

    # A deliberate fault: ownership ignores transactions.
    monkeypatch.setattr(TaskOwners, "_undo", lambda *_: None)
    report = campaign(kind, 1, histories=20)
    assert report.finding is not None
    again = campaign(kind, report.seed, histories=1)
    assert again.finding is not None
    assert f"--seed {report.seed}" in again.finding
    assert again.counts != {}


def test_the_same_seed_makes_the_same_history() -> None:
    logs: list[list[str]] = []
    for _ in range(2):
        history = History("fifottl", 3)
        history.run(60)
        logs.append(history.log)
    assert logs[0] == logs[1]


def test_a_campaign_ends_in_time() -> None:
    ticks: Any = count()
    report = campaign("fifo", 1, seconds=3, steps=5, clock=lambda: next(ticks))
    assert report.histories == 2
    assert report.finding is None
