"""A server whose listening sockets the service manager has bound."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from iproto_server.testing.logged_process import LoggedProcess
from tests.iproto_client import IprotoClient
from tests.server.conftest import APPLICATION
from tests.server.process.notify_socket import start_service

TIMEOUT = 30.0
Start = Callable[..., LoggedProcess]


def listening(address: str | tuple[str, int] = ("127.0.0.1", 0)) -> socket.socket:
    """A listening socket; a path is that of a unix socket."""
    bound = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    bound.bind(address)
    bound.listen()
    return bound


def address_of(bound: socket.socket) -> str:
    name = bound.getsockname()
    return f"unix:{name}" if isinstance(name, str) else f"{name[0]}:{name[1]}"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that get sockets, by name."""
    with ExitStack() as running:

        def start(names: str, *sockets: socket.socket, options: tuple[str, ...] = ()) -> LoggedProcess:
            process = start_service(
                [APPLICATION, "--work-dir", tmp_path, *options],
                environment={"LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": names},
                sockets=sockets,
            )

            def end() -> None:
                if process.running:
                    process.kill()

            running.callback(end)
            return process

        yield start


def test_a_socket_outlives_the_servers_that_serve_it(start: Start) -> None:
    with listening() as bound:
        first = start("iproto", bound)
        first.wait_for("ready to accept requests")
        with IprotoClient.at(address_of(bound)) as client:
            assert client.call("echo", 1).data == [[1]]
            assert client.call("box.info").data[0]["listen"] == address_of(bound)
        assert first.terminate() == 0
        assert [line for line in first.lines if "listening on" in line] == [
            line for line in first.lines if line.endswith(f"listening on {address_of(bound)}")
        ]
        # A client that comes between two servers waits.
        with socket.create_connection(bound.getsockname(), timeout=TIMEOUT) as waiting:
            second = start("iproto", bound)
            assert waiting.recv(9) == b"Tarantool"
            assert second.terminate() == 0


def test_the_file_of_a_unix_socket_stays(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with listening(str(path)) as bound:
        process = start("", bound)
        process.wait_for("ready to accept requests")
        with IprotoClient.at(address_of(bound)) as client:
            assert client.call("echo", 1).data == [[1]]
        assert process.terminate() == 0
        assert path.is_socket()


def test_each_name_has_its_protocol(start: Start) -> None:
    with listening() as http, listening() as older, listening() as iproto, listening() as metrics:
        process = start("http:iproto-1.5:iproto:metrics", http, older, iproto, metrics)
        process.wait_for("ready to accept requests")
        process.wait_for(rf"listening on {address_of(older)}, protocol of Tarantool 1\.5$")
        with IprotoClient.at(address_of(iproto)) as client:
            assert client.call("echo", 1).data == [[1]]
        for bound, path in ((http, "health"), (metrics, "metrics")):
            with urllib.request.urlopen(f"http://{address_of(bound)}/{path}", timeout=TIMEOUT) as answer:
                assert answer.status == 200
        assert process.terminate() == 0


def test_a_given_address_wins(start: Start) -> None:
    with listening() as bound:
        process = start("iproto", bound, options=("--listen", "127.0.0.1:0"))
        process.wait_for(
            rf"warn the passed socket {address_of(bound)} \(iproto\) is not used, because --listen is given"
        )
        own = process.wait_for(r"listening on (\S+)")[1]
        assert own != address_of(bound)
        process.wait_for("ready to accept requests")
        with IprotoClient.at(own) as client:
            assert client.call("echo", 1).data == [[1]]
        assert process.terminate() == 0


def refusal(process: LoggedProcess) -> str:
    """The one line of a server that does not start."""
    assert process.wait() == 2
    [line] = [line for line in process.lines if line.startswith("iproto-server: ")]
    assert "Traceback" not in process.output
    return line.removeprefix("iproto-server: ")


def test_one_that_other_machines_can_reach_needs_users(start: Start, tmp_path: Path) -> None:
    with listening(("0.0.0.0", 0)) as bound:
        assert refusal(start("iproto", bound)).startswith("other machines can reach the server")


def test_one_that_does_not_listen_is_refused(start: Start) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert refusal(start("jobs", bound)) == (
            'LISTEN_FDS: descriptor 3, "jobs": it does not listen: use Accept=no'
        )


def test_several_need_names(start: Start) -> None:
    with listening() as one, listening() as two:
        assert refusal(start("iproto:jobs", one, two)).startswith(
            f'LISTEN_FDS: descriptor 4, "jobs", which listens on {address_of(two)}: among several sockets'
        )
