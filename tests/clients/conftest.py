"""The servers and the client libraries; every test of this folder runs with each pair that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count

import pytest

from tests.clients import accounts
from tests.clients.asynctnt_driver import Asynctnt
from tests.clients.bridge import NetBox, NodeDriver
from tests.clients.driver import ClientError, Driver, OpenDriver, Target
from tests.clients.tarantool_python import TarantoolPython
from tests.conftest import StartTarantool
from tests.programs import require_seed
from tests.real_tarantool import queue_application
from tests.running_server import QUEUE_APPLICATION, RunningServer

OURS = "iproto-server"
THEIRS = "tarantool"

DRIVERS = [
    pytest.param(TarantoolPython, id="tarantool-python"),
    pytest.param(Asynctnt, id="asynctnt"),
    pytest.param(NetBox, id="net.box", marks=pytest.mark.real_tarantool),
    pytest.param(NodeDriver, id="node", marks=pytest.mark.node),
]

CreateSpace = Callable[[], str]


@pytest.fixture(scope="session", params=[OURS, pytest.param(THEIRS, marks=pytest.mark.real_tarantool)])
def queue_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, real_tarantool: StartTarantool
) -> Iterator[Target]:
    """A server with the tutorial's queue and the user of `accounts`: ours, then a real Tarantool."""
    if request.param == THEIRS:
        tarantool = real_tarantool(queue_application(require_seed("queue.lua")) + "\n" + accounts.LUA)
        yield Target(THEIRS, tarantool.host, tarantool.port)
        return
    applications = [QUEUE_APPLICATION, "tests.clients.accounts_application:app"]
    with RunningServer(tmp_path_factory.mktemp("clients"), applications) as server:
        yield Target(OURS, server.host, server.port)


@pytest.fixture
def target(queue_server: Target) -> Target:
    """The server, its queue empty."""
    admin = TarantoolPython(queue_server)
    admin.call("box.space.queue:truncate")
    admin.close()
    return queue_server


@pytest.fixture(params=DRIVERS)
def open_driver(request: pytest.FixtureRequest) -> Iterator[OpenDriver]:
    """Connects each of the client libraries in turn; what it connected is closed when the test ends."""
    with ExitStack() as connections:

        def connect(target: Target, user: str | None = None, password: str | None = None) -> Driver:
            driver: Driver = request.param(target, user, password)
            connections.callback(driver.close)
            return driver

        yield connect


@pytest.fixture
def driver(open_driver: OpenDriver, target: Target) -> Driver:
    """A connection as guest."""
    return open_driver(target)


_space_numbers = count(1)


@pytest.fixture
def people(target: Target) -> Iterator[str]:
    """The name of an empty space: id (primary), name (unique index), age (an index that is not unique)."""
    name = f"people_{next(_space_numbers)}"
    admin = TarantoolPython(target)
    create_space(admin, name, [["id", "unsigned"], ["name", "string"], ["age", "integer"]])
    admin.call(f"box.space.{name}:create_index", "primary", {"parts": ["id"]})
    admin.call(f"box.space.{name}:create_index", "name", {"parts": ["name"]})
    admin.call(f"box.space.{name}:create_index", "age", {"parts": ["age"], "unique": False})
    yield name
    admin.call(f"box.space.{name}:drop")
    admin.close()


def create_space(driver: Driver, name: str, space_format: list[list[str]]) -> None:
    """Create a space from a client.

    Tarantool 2.6 creates it and then fails to answer, for the object that the call returns holds functions.

    Args:
        driver: Any client of a guest with super.
        name: The new space's name.
        space_format: Its fields: names and types.
    """
    try:
        driver.call("box.schema.create_space", name, {"format": space_format})
    except ClientError as error:
        if error.message != "unsupported Lua type 'function'":
            raise
