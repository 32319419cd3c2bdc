"""Fixtures of tubes: our server and the real module, which behave alike, and a box with a manual clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server import ManualClock
from tests.queue_lua_compat.real_tubes import tubes_application, worlds
from tests.queue_lua_compat.tubes.tubes_server import Client, TubesServer
from tests.queue_lua_compat.tubes.world import World
from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

TUBES_APPLICATION = "queue_lua_compat.tubes:app"


@pytest.fixture(scope="session", params=worlds("ours", "the real module"))
def world_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer | RealTarantool]:
    """Start a server of tubes."""
    directory: Path = tmp_path_factory.mktemp("tubes")
    if request.param == "ours":
        applications = [TUBES_APPLICATION, "tests.differential.super_guest:app"]
        with RunningServer(directory, applications) as ours:
            yield ours
    else:
        # Every index of every tube takes some memory, even if it is empty.
        options = {"memtx_memory": "256 * 1024 * 1024"}
        with RealTarantool(directory, tubes_application(), options) as theirs:
            yield theirs


@pytest.fixture
def world(world_server: RunningServer | RealTarantool) -> Iterator[World]:
    """Provide a server of tubes without clients. Tests with it must hold for both servers."""
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
