"""A plugin for pytest: servers for tests, so that a test suite needs no Tarantool.

pytest finds it when the package is installed (entry point `pytest11`); `pytest_plugins =
["iproto_server.testing"]` does no harm beside that. docs/TESTING.md tells how to use it. Nothing large is
imported before a test asks for a server. No assertion stands here (PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from iproto_server.testing.server import Application, Applications, IprotoServer
from iproto_server.testing.serving import ServerFailed

__all__ = ["IprotoServer", "ServerFailed", "StartIprotoServer"]

_MARKER = "iproto_server"

_SHOWN_LINES = 200
"""How much of a server's log stands in the report of a failed test."""


class StartIprotoServer(Protocol):
    """The fixture `start_iproto_server`: it starts a server, which is closed when the test ends.

    Parameters:
        apps: the applications; None: those of the marker, or of the fixture `iproto_server_apps`.
        work_dir: its directory; None: a new temporary one.
        environment: environment variables for it.
        options: as `IprotoServer` takes them; those of the marker and of the fixture
            `iproto_server_options` that are not given here are given, too.

    Returns:
        The server, running.

    Raises:
        ServerFailed: it does not start.
        TypeError, ValueError: as `IprotoServer`.
    """

    def __call__(
        self,
        apps: Applications | None = None,
        *,
        work_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        **options: object,
    ) -> IprotoServer: ...


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(apps=[...], **options): the applications and options of the test's iproto_server; "
        "for a class or a module, those of all its tests",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of all servers when a test fails."""
    report = yield
    if report.failed:
        for server in IprotoServer.opened:
            log = "\n".join(server.log.splitlines()[-_SHOWN_LINES:])
            report.sections.append((f"log of iproto-server on {server.address}", log))
    return report


@pytest.fixture(scope="session")
def iproto_server_apps() -> Sequence[Application]:
    """The applications of servers that are not told others. Override it, in any scope; as it is, none."""
    return ()


@pytest.fixture(scope="session")
def iproto_server_options() -> Mapping[str, object]:
    """The options of servers that are not told others. Override it, in any scope; as it is, none."""
    return {}


@pytest.fixture
def start_iproto_server(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    iproto_server_apps: Sequence[Application],
    iproto_server_options: Mapping[str, object],
) -> Iterator[StartIprotoServer]:
    """A function that starts servers. All are closed when the test ends."""
    asked: dict[str, object] = {"apps": iproto_server_apps, **iproto_server_options}
    for marker in reversed(list(request.node.iter_markers(_MARKER))):  # the nearest last: it wins
        if marker.args:
            pytest.fail(
                f"@pytest.mark.{_MARKER} takes keywords: apps=[...], and options; not {marker.args[0]!r}",
                pytrace=False,
            )
        asked.update(marker.kwargs)
    with ExitStack() as running:

        def start(
            apps: Applications | None = None,
            *,
            work_dir: Path | None = None,
            environment: Mapping[str, str] | None = None,
            **options: object,
        ) -> IprotoServer:
            __tracebackhide__ = True
            given = {"apps": apps, "work_dir": work_dir, "environment": environment}
            said = {name: value for name, value in given.items() if value is not None}
            wanted: dict[str, Any] = {**asked, **options, **said}
            if "work_dir" not in wanted:
                wanted["work_dir"] = tmp_path_factory.mktemp("iproto-server")
            return running.enter_context(IprotoServer(**wanted))

        yield start


@pytest.fixture
def iproto_server(start_iproto_server: StartIprotoServer) -> IprotoServer:
    """A server on a free port, with an empty directory and the applications and options the test asks for."""
    try:
        return start_iproto_server()
    except (ServerFailed, TypeError, ValueError) as error:
        reason = str(error)
    pytest.fail(reason, pytrace=False)
