"""Random calls to tubes of our server and of the queue module: the same answers, the same rows.

The module is that of github.com/tarantool/queue, in a checkout that TARANTOOL_QUEUE_CHECKOUT names, on a
real Tarantool and in our Lua. `python -m tests.differential.tubes --requests 50000` sends more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note

from tests.differential.tubes.campaign import Campaign
from tests.differential.tubes.conversation import Step, conversations
from tests.differential.tubes.lockstep import Lockstep, Pair
from tests.differential.tubes.servers import Kind
from tests.plugins.profiles import examples
from tests.programs import require_program
from tests.queue_lua_compat.real_tubes import tubes_application

REQUESTS = 300


@pytest.fixture(scope="module", autouse=True)
def _module() -> None:
    require_program("tarantool", "tarantool")
    tubes_application()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Our server, and theirs."""
    with Pair(Kind.PYTHON, Kind.TARANTOOL, tmp_path_factory.mktemp("tubes")) as servers:
        yield servers


@given(conversation=conversations)
@examples(80)
def test_random_conversations_are_answered_alike(
    pair: Pair, conversation: tuple[str, dict[str, Any], list[Step]]
) -> None:
    kind, options, steps = conversation
    talk = Lockstep(pair, note)
    talk.begin(kind, options)
    for step in steps:
        if not talk.go_on(step):
            break


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(Kind.PYTHON, Kind.LUA), (Kind.LUA, Kind.TARANTOOL), (Kind.PYTHON, Kind.TARANTOOL)],
    ids=lambda kind: str(kind),
)
def test_servers_whose_directories_change_hands_answer_alike(
    ours: Kind, theirs: Kind, tmp_path: Path
) -> None:
    report = Campaign(ours, theirs, 2026, tmp_path).run(REQUESTS)
    assert not report.findings, str(report)
    assert report.requests >= REQUESTS
    assert report.passings
