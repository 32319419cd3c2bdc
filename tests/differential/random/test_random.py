"""A short run of each group. `make diff` runs for any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

import pytest

from iproto_server import Box
from tests.differential.ddl.system_rows import INDEX, SPACE, a_space, an_index, insert, set_field
from tests.differential.random import application, campaign
from tests.differential.random.answer import Answer, Reply
from tests.differential.random.campaign import Campaign
from tests.differential.random.cases.starting import NotStarted
from tests.differential.random.comparison import Comparison
from tests.differential.random.groups import GROUPS
from tests.differential.random.request import Request
from tests.differential.random.servers import Servers
from tests.iproto_client import DELETE, KEY
from tests.programs import require_program

REQUESTS = 400
REQUESTS_OF_SMALL_SPACES = 3000
SEED = 2026
"""The requests are always the same; `make diff` has others."""


@pytest.fixture(autouse=True)
def _tarantool() -> None:
    require_program("tarantool", "tarantool")


@pytest.mark.parametrize("group", GROUPS)
def test_random_requests_are_answered_alike(group: str, tmp_path: Path) -> None:
    report = Campaign(group, SEED, tmp_path).run(REQUESTS)
    assert not report.findings, f"\n{report}"
    assert report.comparison.compared >= REQUESTS, str(report)
    assert report.comparison.refused < 0.95 * report.comparison.compared, str(report)


@pytest.mark.parametrize("seed", [SEED, SystemRandom().randrange(10**6)], ids=["fixed seed", "random seed"])
def test_small_spaces_have_the_same_rows_in_all_indexes(seed: int, tmp_path: Path) -> None:
    """More than of other requests: index faults take several steps."""
    report = Campaign("indexes", seed, tmp_path).run(REQUESTS_OF_SMALL_SPACES)
    print(report)
    assert not report.findings, f"\n{report}"
    assert report.comparison.compared >= REQUESTS_OF_SMALL_SPACES, str(report)


def test_a_unique_index_that_gets_fewer_nullable_parts_is_checked(tmp_path: Path) -> None:
    """Tarantool 2.6 does not refuse it, and then holds two rows of one key."""
    nullable = {"field": 1, "type": "unsigned", "is_nullable": True}
    case = [
        Request.of(insert(SPACE, a_space(700, name="t"))),
        Request.of(insert(INDEX, an_index(700, 0, "primary"))),
        Request.of(
            insert(INDEX, an_index(700, 1, "other", parts=[nullable, {"field": 0, "type": "unsigned"}]))
        ),
        *(Request.of(insert(700, [number, 5])) for number in (1, 2)),
        Request.of(set_field(INDEX, [700, 1], 5, [nullable])),
    ]
    servers = Servers(tmp_path)
    try:
        ours, theirs = servers.ask(case)
        assert servers.index_faults() == []
    finally:
        servers.stop()
    comparison = Comparison()
    assert comparison.compare(case, ours, theirs) is None
    assert ours[5].text == "Duplicate key exists in unique index 'other' in space 't'"
    assert (theirs[5].status, sum(comparison.deliberate.values())) == (0, 1)


class TestTheCheckOfIndexes:
    """After every DDL of a case, and at its end, our indexes are compared with the rows."""

    @pytest.fixture
    def box(self) -> Box:
        box = Box()
        application.set_up(box)
        space = box.schema.create_space("jobs")
        space.create_index("pk")
        space.create_index("by", parts=[(1, "unsigned")], unique=False)
        space.insert([1, 10])
        assert application.index_faults(box) == []
        return box

    def test_what_is_wrong_now_is_told(self, box: Box) -> None:
        index = box.catalog.space_by_name("jobs").index_by_name("by")
        index.clear()
        expected = [
            "space 'jobs': index 'by' does not lead to row [1]",
            "space 'jobs': index 'by' has 0 entries for 1 rows",
        ]
        assert application.index_faults(box) == expected

    def test_what_was_wrong_after_ddl_is_told_once(self, box: Box) -> None:
        index = box.catalog.space_by_name("jobs").index_by_name("by")
        entries = list(index.items())
        index.clear()
        box.schema.create_space("another")
        for key, value in entries:
            index.insert(key, value)
        version = box.catalog.schema_version
        assert application.index_faults(box) == [
            f"schema version {version}: space 'jobs': index 'by' does not lead to row [1]",
            f"schema version {version}: space 'jobs': index 'by' has 0 entries for 1 rows",
        ]
        assert application.index_faults(box) == []

    def test_it_is_a_difference(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fault = "space 'small': index 'index 1' is out of order"
        monkeypatch.setattr(Servers, "index_faults", lambda servers: [fault])
        report = Campaign("indexes", 1, tmp_path).run(1)
        (finding,) = report.findings
        assert f"ours:   {fault}" in str(finding)
        assert "theirs: no faults" in str(finding)


@pytest.mark.slow
def test_a_difference_is_made_small_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Servers.ask

    def ask_with_a_fault(servers: Servers, requests: Sequence[Request]) -> tuple[list[Reply], list[Reply]]:
        """A deliberate fault: our answer to a DELETE with a key of two parts has an extra byte."""
        ours, theirs = ask(servers, requests)
        for number, request in enumerate(requests):
            answer = ours[number]
            if request.kind == DELETE and isinstance(request.body, Mapping) and len(request.body[KEY]) == 2:
                assert isinstance(answer, Answer)
                ours[number] = replace(answer, body=answer.body + b"\0", status=0)
        return ours, theirs

    monkeypatch.setattr(Servers, "ask", ask_with_a_fault)
    report = Campaign("dml", 1, tmp_path).run(REQUESTS)
    (finding,) = report.findings
    assert len(finding.case) < 12, str(report)
    assert [request.kind for request in finding.case].count(DELETE) == 1
    assert f"make diff GROUP=dml SEED=1 REQUESTS={REQUESTS}" in str(report)
    assert "DELETE space=700" in str(report)


class TestRowsThatNobodyStartsFrom:
    """They stay in the log, so no other case uses the same servers."""

    FAULT = "a real Tarantool, from our log"

    def test_a_case_that_has_made_some_is_the_last_of_its_servers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Otherwise every simplified case would seem to have made them."""
        seen: list[Path] = []

        def fault_after(case: Sequence[Request], servers: Servers) -> NotStarted:
            seen.append(servers.our_files)
            return NotStarted(case, self.FAULT, "row")

        monkeypatch.setattr(campaign, "fault_after", fault_after)
        monkeypatch.setattr(campaign, "_CASES", 1)
        (finding,) = Campaign("system", 1, tmp_path).run(1).findings
        assert isinstance(finding, NotStarted)
        assert finding.before == ()
        assert len(seen) == len(set(seen)) > 2

    def test_the_case_before_is_told_if_it_takes_it_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cases: dict[Path, list[Sequence[Request]]] = {}

        def fault_after(case: Sequence[Request], servers: Servers) -> NotStarted | None:
            asked = cases.setdefault(servers.our_files, [])
            asked.append(case)
            return NotStarted(case, self.FAULT, "row") if len(asked) == 2 else None

        monkeypatch.setattr(campaign, "fault_after", fault_after)
        (finding,) = Campaign("system", 1, tmp_path).run(200).findings
        assert isinstance(finding, NotStarted)
        assert [finding.before, finding.case] in cases.values()
        assert str(finding).startswith("  before: admin: INSERT space=304")
