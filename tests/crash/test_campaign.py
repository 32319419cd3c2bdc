"""The crash test itself, for a minute. `make crash` runs it for as long as asked."""

from __future__ import annotations

from pathlib import Path
from random import SystemRandom

import pytest

from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType, XlogReader, XlogWriter
from tests.conftest import StartServer
from tests.crash.audit import Audit
from tests.crash.campaign import Campaign
from tests.crash.checker import Books
from tests.crash.finding import Kind
from tests.crash.moment import EVENTS, Event
from tests.crash.schema import ITEMS, item
from tests.crash.subject import OurServer, Tarantool
from tests.crash.world import Operation
from tests.iproto_client import INSERT, SPACE_ID, TUPLE, IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer

SECONDS = 35
APPLICATIONS = [QUEUE_APPLICATION, "tests.crash.application:app"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_lost(tmp_path: Path) -> None:
    report = Campaign(OurServer(), tmp_path, SystemRandom().randrange(10**6)).run(
        seconds=SECONDS, lives=len(EVENTS)
    )
    assert not report.findings, str(report)
    assert set(EVENTS) <= report.kills.keys()
    assert report.acknowledged.total() > 1000


class TestWithTarantool:
    """Tarantool 2.6.0 loses rows when there are snapshots under load, and only then."""

    pytestmark = pytest.mark.real_tarantool

    def test_its_loss_is_seen(self, tmp_path: Path) -> None:
        report = Campaign(Tarantool(), tmp_path, seed=1, events=[Event.SNAPSHOT]).run(lives=30)
        assert report.findings, str(report)

    def test_without_snapshots_nothing_is_lost(self, tmp_path: Path) -> None:
        report = Campaign(Tarantool(), tmp_path, seed=1, events=[Event.LOAD, Event.ROTATION]).run(lives=8)
        assert not report.findings, str(report)


def insert_items(server: RunningServer, books: Books, count: int) -> None:
    """Insert the first items of the first client, one after the other."""
    world = books.worlds[0]
    with IprotoClient.at(server.address) as client:
        for key in range(count):
            row = item(key, world.next_version((ITEMS.name, key)))
            body = {SPACE_ID: ITEMS.id, TUPLE: row}
            number = world.send(Operation("insert", INSERT, body, {(ITEMS.name, key): row}))
            assert client.request(INSERT, body).ok
            world.acknowledge(number)


@pytest.mark.parametrize("lost", [0, 1, 5])
def test_rows_cut_from_the_log_are_missed(start_server: StartServer, tmp_path: Path, lost: int) -> None:
    books = Books()
    server = RunningServer(tmp_path, APPLICATIONS)
    insert_items(server, books, 20)
    server.kill()

    log = list_files(tmp_path, FileType.LOG)[-1]
    with XlogReader.open(log) as reader:
        ends = [reader.good_end, *(block.end for block in reader.blocks())]
    with log.open("r+b", buffering=0) as file:
        XlogWriter(file, ends[-1 - lost]).cut_back(ends[-1 - lost])

    server = start_server(APPLICATIONS, work_dir=tmp_path)
    findings = books.check(Audit.of(server.host, server.port))
    assert [finding.kind for finding in findings] == [Kind.LOST] * lost
