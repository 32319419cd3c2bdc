"""Pairs of servers, one of them ours, which must answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import StartTarantool
from tests.differential.both import SUPER_GUEST, Both
from tests.differential.calls.box_calls import ID, T, rows
from tests.differential.ddl.system_rows import SPACE
from tests.iproto_client import IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool, queue_application
from tests.running_server import QUEUE_APPLICATION, RunningServer


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "differential" in item.path.parts:
            item.add_marker(pytest.mark.real_tarantool)


def start_both(
    tmp_path_factory: pytest.TempPathFactory, real_tarantool: StartTarantool
) -> Iterator[tuple[RunningServer, RealTarantool]]:
    """Start both servers without an effective application: the body of a fixture."""
    theirs = real_tarantool(GUEST_IS_SUPER)
    with RunningServer(tmp_path_factory.mktemp("differential"), [SUPER_GUEST]) as ours:
        yield ours, theirs


box_servers = pytest.fixture(scope="session", name="box_servers")(start_both)


@pytest.fixture
def both(box_servers: tuple[RunningServer, RealTarantool]) -> Iterator[Both]:
    """New connections to both servers, as guest. Name spaces after the test: the servers are shared."""
    ours, theirs = box_servers
    with (
        IprotoClient(ours.host, ours.port) as our_client,
        IprotoClient(theirs.host, theirs.port) as their_client,
    ):
        yield Both(our_client, their_client)


@pytest.fixture(scope="session")
def queue_servers(
    tmp_path_factory: pytest.TempPathFactory, real_tarantool: StartTarantool
) -> Iterator[tuple[RunningServer, RealTarantool]]:
    """Our server with the tutorial's queue, and a real Tarantool that runs the tutorial's own queue.lua."""
    theirs = real_tarantool(queue_application())
    with RunningServer(tmp_path_factory.mktemp("differential-queue"), [QUEUE_APPLICATION]) as ours:
        yield ours, theirs


@pytest.fixture
def both_queues(queue_servers: tuple[RunningServer, RealTarantool]) -> Iterator[Both]:
    """Connect to both queues, which are empty."""
    ours, theirs = queue_servers
    with (
        IprotoClient(ours.host, ours.port) as our_client,
        IprotoClient(theirs.host, theirs.port) as their_client,
    ):
        pair = Both(our_client, their_client)
        pair.call("box.space.queue:truncate")
        yield pair


@pytest.fixture
def make_space(both: Both) -> Iterator[Callable[..., None]]:
    """Create the space with the options, and drop it at the end if it still exists."""

    def make(**given: Any) -> None:
        both.prepare("box.schema.space.create", T, {"id": ID, **given})
        rows(both, SPACE, ID)

    yield make
    both.prepare(f"box.space.{T}:drop")
