"""The servers and the client libraries; every test runs with each combination that it requests."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count

import pytest

from tests.clients.applications import accounts, features
from tests.clients.drivers.asynctnt_driver import Asynctnt
from tests.clients.drivers.bridge import NetBox, NodeDriver, end_idle_processes
from tests.clients.drivers.driver import ClientError, Driver, OpenDriver, Target
from tests.clients.drivers.tarantool_python import TarantoolPython
from tests.conftest import StartTarantool
from tests.real_tarantool import queue_application
from tests.running_server import QUEUE_APPLICATION, RunningServer

OURS = "iproto-server"
THEIRS = "tarantool"
APPLICATIONS = [
    QUEUE_APPLICATION,
    "tests.clients.applications.accounts_application:app",
    "tests.clients.applications.features_application:app",
]

DRIVERS = [
    pytest.param(TarantoolPython, id="tarantool-python"),
    pytest.param(Asynctnt, id="asynctnt"),
    pytest.param(NetBox, id="net.box", marks=pytest.mark.real_tarantool),
    pytest.param(NodeDriver, id="node", marks=pytest.mark.node),
]

VALUES = [["id", "unsigned"], ["value", "any"]]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test on its own event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session", autouse=True)
def _bridges() -> Iterator[None]:
    yield
    end_idle_processes()


@pytest.fixture(scope="session")
def our_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Start our server with the tutorial's queue, the user of `accounts` and the procedures of `features`."""
    with RunningServer(tmp_path_factory.mktemp("clients"), APPLICATIONS) as server:
        yield Target(OURS, server.host, server.port)


@pytest.fixture(scope="session", params=[OURS, pytest.param(THEIRS, marks=pytest.mark.real_tarantool)])
def queue_server(request: pytest.FixtureRequest, real_tarantool: StartTarantool) -> Target:
    """Start a server with these applications: ours, then a real Tarantool."""
    if request.param == THEIRS:
        queue = queue_application()
        tarantool = real_tarantool("\n".join((queue, accounts.LUA, features.LUA)))
        return Target(THEIRS, tarantool.host, tarantool.port)
    ours: Target = request.getfixturevalue("our_server")
    return ours


@pytest.fixture
def target(queue_server: Target) -> Target:
    """Provide the server with an empty queue."""
    admin = TarantoolPython(queue_server)
    admin.call("box.space.queue:truncate")
    admin.close()
    return queue_server


@pytest.fixture(params=DRIVERS)
def open_driver(request: pytest.FixtureRequest) -> Iterator[OpenDriver]:
    """Connect each of the client libraries in turn; connections are closed at the end of the test."""
    with ExitStack() as connections:

        def connect(target: Target, user: str | None = None, password: str | None = None) -> Driver:
            driver: Driver = request.param(target, user, password)
            connections.callback(driver.close)
            return driver

        yield connect


@pytest.fixture
def driver(open_driver: OpenDriver, target: Target) -> Driver:
    """Connect as guest."""
    return open_driver(target)


_space_numbers = count(1)


@pytest.fixture
def people(target: Target) -> Iterator[str]:
    """Create an empty space: id (primary), name (unique index), age (non-unique index); return its name."""
    fields = [["id", "unsigned"], ["name", "string"], ["age", "integer"]]
    with new_space(target, "people", fields, {"name": {}, "age": {"unique": False}}) as name:
        yield name


@pytest.fixture
def values(target: Target) -> Iterator[str]:
    """Create an empty space: id (primary), value (any); return its name."""
    with new_space(target, "values", VALUES) as name:
        yield name


@pytest.fixture
def our_values(our_server: Target) -> Iterator[str]:
    """Create such a space in our server."""
    with new_space(our_server, "values", VALUES) as name:
        yield name


@contextmanager
def new_space(
    target: Target,
    prefix: str,
    fields: list[list[str]],
    secondary: Mapping[str, Mapping[str, object]] | None = None,
) -> Iterator[str]:
    """Create a space with a primary index of its first field, and drop it afterwards.

    Parameters:
        target: Where.
        prefix: Its name's beginning.
        fields: Its format: names and types.
        secondary: Fields with an index of their own, and the options of these.

    Yields:
        Its name.
    """
    name = f"{prefix}_{next(_space_numbers)}"
    admin = TarantoolPython(target)
    create_space(admin, name, fields)
    admin.call(f"box.space.{name}:create_index", "primary", {"parts": [fields[0][0]]})
    for field, options in (secondary or {}).items():
        admin.call(f"box.space.{name}:create_index", field, {"parts": [field], **options})
    try:
        yield name
    finally:
        admin.call(f"box.space.{name}:drop")
        admin.close()


def create_space(driver: Driver, name: str, space_format: list[list[str]]) -> None:
    """Create a space from a client.

    Tarantool 2.6 creates it, but cannot send the result of the call, an object with functions.

    Parameters:
        driver: Any client of a guest with super.
        name: The new space's name.
        space_format: Its fields: names and types.
    """
    try:
        driver.call("box.schema.create_space", name, {"format": space_format})
    except ClientError as error:
        if error.message != "unsupported Lua type 'function'":
            raise
