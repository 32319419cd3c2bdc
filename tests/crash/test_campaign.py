"""The crash test for a minute. `make crash` runs it for any time, with a new seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.campaign import Campaign
from tests.crash.checks.finding import Kind
from tests.crash.moment import EVENTS, Event
from tests.crash.servers.subject import LUA_APPLICATION, OurServer, Tarantool
from tests.running_server import QUEUE_APPLICATION

SEED = 2026
SECONDS = 60
APPLICATIONS = [QUEUE_APPLICATION, "tests.crash.servers.application:app"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_lost(tmp_path: Path) -> None:
    report = Campaign(OurServer(), tmp_path, SEED).run(seconds=SECONDS, lives=len(EVENTS))
    assert not report.findings, str(report)
    assert set(EVENTS) <= report.kills.keys(), str(report)
    assert report.acknowledged.total() > 1000, str(report)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_lost_with_lua(tmp_path: Path) -> None:
    report = Campaign(OurServer(LUA_APPLICATION), tmp_path, SEED).run(seconds=SECONDS, lives=len(EVENTS))
    assert not report.findings, str(report)
    assert report.acknowledged["queue.ack"] > 100, str(report)
    assert report.transactions["committed"], str(report)


class TestWithTarantool:
    """Tarantool 2.6.0 loses rows only if there are snapshots under load."""

    pytestmark = pytest.mark.real_tarantool

    def test_its_loss_is_seen(self, tmp_path: Path) -> None:
        report = Campaign(Tarantool(), tmp_path, seed=1, events=[Event.SNAPSHOT]).run(lives=60)
        # Either the loss is detected, or the server does not start because of it.
        seen = {Kind.LOST, Kind.HALF, Kind.COUNTER, Kind.SERVER}
        assert seen & {finding.kind for finding in report.findings}, str(report)

    def test_without_snapshots_nothing_is_lost(self, tmp_path: Path) -> None:
        report = Campaign(Tarantool(), tmp_path, seed=1, events=[Event.LOAD, Event.ROTATION]).run(lives=8)
        assert not report.findings, str(report)
