"""The tubes and the older queue that the tests of operators' actions share."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import ManualClock
from tests.queue_lua_compat.managed.worlds import KINDS, World


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, clock: ManualClock) -> World:
    return World(request.param, clock)


@pytest.fixture
def client(world: World) -> Any:
    return world.connect()
