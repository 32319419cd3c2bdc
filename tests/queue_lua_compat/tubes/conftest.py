"""Servers of tubes: two worlds that must be alike, and a box whose time the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server import ManualClock
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer
from tests.queue_lua_compat.tubes.world import World
from tests.real_tarantool import RealTarantool
from tests.real_tubes import tubes_application, worlds
from tests.running_server import RunningServer

TUBES_APPLICATION = "queue_lua_compat.tubes:app"


@pytest.fixture(scope="session", params=worlds("ours", "the real module"))
def world_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer | RealTarantool]:
    """A server of tubes."""
    directory: Path = tmp_path_factory.mktemp("tubes")
    if request.param == "ours":
        applications = [TUBES_APPLICATION, "tests.differential.super_guest:app"]
        with RunningServer(directory, applications) as ours:
            yield ours
    else:
        # Every index of every tube takes some, however empty it is.
        options = {"memtx_memory": "256 * 1024 * 1024"}
        with RealTarantool(directory, tubes_application(), options) as theirs:
            yield theirs


@pytest.fixture
def world(world_server: RunningServer | RealTarantool) -> Iterator[World]:
    """A server of tubes that nobody talks to yet. What a test says here is true of both."""
    world = World(world_server)
    yield world
    world.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(clock: ManualClock) -> TubesServer:
    return TubesServer(clock)


@pytest.fixture
def client(server: TubesServer) -> Client:
    return server.connect()
