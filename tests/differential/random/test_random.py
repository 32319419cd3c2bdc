"""A short run of each group. `make diff` goes on for as long as asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.differential.random.answer import Answer, Reply
from tests.differential.random.campaign import Campaign
from tests.differential.random.groups import GROUPS
from tests.differential.random.request import Request
from tests.differential.random.servers import Servers
from tests.iproto_client import DELETE, KEY
from tests.programs import require_program

REQUESTS = 400
SEED = 2026
"""The same requests every time; others are for `make diff`."""


@pytest.fixture(autouse=True)
def _tarantool() -> None:
    require_program("tarantool", "tarantool")


@pytest.mark.parametrize("group", GROUPS)
def test_random_requests_are_answered_alike(group: str, tmp_path: Path) -> None:
    report = Campaign(group, SEED, tmp_path).run(REQUESTS)
    assert not report.findings, f"\n{report}"
    assert report.comparison.compared >= REQUESTS, str(report)
    assert report.comparison.refused < 0.95 * report.comparison.compared, str(report)


@pytest.mark.slow
def test_a_difference_is_made_small_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Servers.ask

    def ask_with_a_fault(servers: Servers, requests: Sequence[Request]) -> tuple[list[Reply], list[Reply]]:
        """As if our answer to a DELETE with a key of two parts had a byte too many."""
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
