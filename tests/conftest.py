"""Fixtures that every folder of tests may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.real_tarantool import RealTarantool
from tests.running_server import RunningServer

pytest_plugins = [
    "pytester",
    "iproto_server.testing",
    "tests.plugins.alone",
    "tests.plugins.durations",
    "tests.plugins.garbage",
    "tests.plugins.logs",
    "tests.plugins.markers",
    "tests.plugins.profiles",
]


class StartServer(Protocol):
    """Starts our server; it is stopped, and must exit with 0, when the test ends."""

    def __call__(
        self,
        applications: Sequence[str] = (),
        options: Sequence[str] = (),
        *,
        listen: str = "127.0.0.1:0",
        work_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> RunningServer: ...


class StartTarantool(Protocol):
    """Starts a real Tarantool, or skips the test where there is none; it runs until the test session ends."""

    def __call__(self, application: str = "", options: Mapping[str, str] | None = None) -> RealTarantool: ...


@pytest.fixture
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """A factory of servers of ours, each in a work directory of its own unless one is given."""
    with ExitStack() as running:

        def start(
            applications: Sequence[str] = (),
            options: Sequence[str] = (),
            *,
            listen: str = "127.0.0.1:0",
            work_dir: Path | None = None,
            environment: Mapping[str, str] | None = None,
        ) -> RunningServer:
            directory = work_dir or tmp_path_factory.mktemp("server")
            return running.enter_context(
                RunningServer(directory, applications, options, listen=listen, environment=environment)
            )

        yield start


@pytest.fixture(scope="session")
def real_tarantool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartTarantool]:
    """A factory of real Tarantool processes."""
    with ExitStack() as running:

        def start(application: str = "", options: Mapping[str, str] | None = None) -> RealTarantool:
            directory = tmp_path_factory.mktemp("tarantool")
            return running.enter_context(RealTarantool(directory, application, options))

        yield start
