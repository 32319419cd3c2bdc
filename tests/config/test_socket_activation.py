"""Sockets that the service manager has passed: which are taken, and what is served there."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from iproto_server.config import socket_activation
from iproto_server.config.address import Address
from iproto_server.config.config import Config, ConfigError, load_config
from iproto_server.config.socket_activation import PassedSockets, passed_sockets

FIRST = 500
"""The first passed descriptor; the process of the tests uses the lower ones itself."""

PID = 4711


class Passing:
    """Sockets at the descriptors from FIRST on."""

    def __init__(self) -> None:
        self.count = 0

    def put(self, descriptor: int) -> None:
        """Pass a copy of a descriptor."""
        os.dup2(descriptor, FIRST + self.count)
        self.count += 1

    def listen(self, host: str = "127.0.0.1", family: int = socket.AF_INET) -> int:
        """Pass a listening socket of TCP; return its port."""
        with socket.socket(family, socket.SOCK_STREAM) as bound:
            bound.bind((host, 0))
            bound.listen()
            self.put(bound.fileno())
            return int(bound.getsockname()[1])

    def listen_on_path(self, path: str) -> None:
        """Pass a listening unix socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
            bound.bind(path)
            bound.listen()
            self.put(bound.fileno())

    def variables(self, names: str | None = None, count: str | None = None) -> dict[str, str]:
        """The variables that the service manager sets."""
        variables = {"LISTEN_PID": str(PID), "LISTEN_FDS": count or str(self.count), "OTHER": "stays"}
        if names is not None:
            variables["LISTEN_FDNAMES"] = names
        return variables

    def found(self, names: str | None = None) -> PassedSockets:
        return passed_sockets(self.variables(names), PID)

    def refusal(self, names: str | None = None, count: str | None = None) -> str:
        """Why the sockets are refused."""
        with pytest.raises(ValueError) as caught:
            passed_sockets(self.variables(names, count), PID)
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Passing]:
    """Sockets to pass, closed at the end."""
    monkeypatch.setattr(socket_activation, "FIRST_DESCRIPTOR", FIRST)
    passing = Passing()
    yield passing
    for descriptor in range(FIRST, FIRST + passing.count):
        with suppress(OSError):
            os.close(descriptor)


class TestWhatIsServed:
    def test_names_say_it(self, passing: Passing, tmp_path: Path) -> None:
        ports = [passing.listen() for _ in range(3)]
        passing.listen_on_path(f"{tmp_path}/socket")
        config = load_config(sockets=passing.found("iproto:http:metrics:iproto-1.5"))
        assert config.listen == (Address("127.0.0.1", ports[0], descriptor=FIRST),)
        assert config.http == Address("127.0.0.1", ports[1], descriptor=FIRST + 1)
        assert config.metrics_listen == Address("127.0.0.1", ports[2], descriptor=FIRST + 2)
        assert config.listen_1_5 == (Address(path=f"{tmp_path}/socket", descriptor=FIRST + 3),)

    def test_several_of_one_name(self, passing: Passing) -> None:
        ports = [passing.listen(), passing.listen()]
        assert [each.port for each in load_config(sockets=passing.found("iproto:iproto")).listen] == ports

    @pytest.mark.parametrize("names", [None, "", "unknown", "iproto-server.socket", "iproto"])
    def test_a_single_socket_needs_no_name(self, passing: Passing, names: str | None) -> None:
        port = passing.listen()
        assert load_config(sockets=passing.found(names)).listen == (
            Address("127.0.0.1", port, descriptor=FIRST),
        )

    def test_other_addresses_keep_their_defaults(self, passing: Passing) -> None:
        passing.listen()
        assert load_config(sockets=passing.found("http")).listen == Config().listen

    def test_an_abstract_socket(self, passing: Passing) -> None:
        name = f"iproto-server-test-{os.getpid()}"
        passing.listen_on_path(f"\0{name}")
        [address] = load_config(sockets=passing.found()).listen
        assert (str(address), address.is_local) == (f"unix:@{name}", True)

    @pytest.mark.parametrize(
        ("given", "origin"),
        [
            ({"arguments": {"listen": ("127.0.0.1:1",)}}, "--listen"),
            ({"environment": {"IPROTO_SERVER_LISTEN": "127.0.0.1:1"}}, "IPROTO_SERVER_LISTEN"),
        ],
    )
    def test_a_given_option_wins_and_the_socket_is_closed(
        self, passing: Passing, given: dict[str, Any], origin: str
    ) -> None:
        port = passing.listen()
        sockets = passing.found("iproto")
        config = load_config(**given, sockets=sockets)
        assert config.listen == (Address("127.0.0.1", 1),)
        [unused] = sockets.unused
        assert (unused.name, unused.address.port, unused.origin) == ("iproto", port, origin)
        with pytest.raises(OSError):
            os.fstat(FIRST)


class TestGuest:
    """Its rights depend on the real addresses."""

    @pytest.mark.parametrize(("host", "is_open"), [("127.0.0.1", True), ("0.0.0.0", False)])
    def test_an_address_of_ipv4(self, passing: Passing, host: str, is_open: bool) -> None:
        passing.listen(host)
        assert load_config(sockets=passing.found()).is_open_to_guest is is_open

    @pytest.mark.parametrize(("host", "is_open"), [("::1", True), ("::", False)])
    def test_an_address_of_ipv6(self, passing: Passing, host: str, is_open: bool) -> None:
        try:
            passing.listen(host, socket.AF_INET6)
        except OSError as error:
            pytest.skip(f"no IPv6 here: {error}")
        assert load_config(sockets=passing.found()).is_open_to_guest is is_open

    def test_http_beyond_loopback_is_a_problem(self, passing: Passing) -> None:
        port = passing.listen("0.0.0.0")
        problem = load_config(sockets=passing.found("http")).http_problem
        assert problem is not None
        assert problem.startswith(f"http 0.0.0.0:{port}: other machines can reach it")


class TestTheEnvironment:
    def test_is_rid_of_the_variables_and_children_of_the_sockets(self, passing: Passing) -> None:
        passing.listen()
        os.set_inheritable(FIRST, True)
        environment = passing.variables("iproto")
        passed_sockets(environment, PID)
        assert environment == {"OTHER": "stays"}
        assert not os.get_inheritable(FIRST)

    def test_of_another_process_is_ignored(self, passing: Passing) -> None:
        passing.listen()
        environment = passing.variables("iproto")
        assert load_config(sockets=passed_sockets(environment, PID + 1)) == Config()
        assert environment == {"OTHER": "stays"}

    @pytest.mark.parametrize("variables", [{}, {"LISTEN_FDS": "1"}, {"LISTEN_PID": str(PID)}])
    def test_without_one_of_the_variables_nothing_is_passed(self, variables: dict[str, str]) -> None:
        assert load_config(sockets=passed_sockets(variables, PID)) == Config()

    @pytest.mark.parametrize(
        "count", ["x", "-1", "0", "1.5", " 1", "1 ", "٣", "99999999999999999999", "2147483647"]
    )
    def test_with_a_wrong_number_of_sockets(self, passing: Passing, count: str) -> None:
        passing.listen()
        assert passing.refusal(count=count) == f'LISTEN_FDS: "{count}" is not a positive number'

    @pytest.mark.parametrize("pid", ["", "x", "-1", "0"])
    def test_with_a_wrong_process(self, pid: str) -> None:
        with pytest.raises(ValueError, match=rf'^LISTEN_PID: "{pid}" is not a positive number$'):
            passed_sockets({"LISTEN_PID": pid, "LISTEN_FDS": "1"}, PID)

    def test_with_more_sockets_than_are_open(self, passing: Passing) -> None:
        passing.listen()
        assert passing.refusal("iproto:iproto", "2") == (
            f'LISTEN_FDS: descriptor {FIRST + 1}, "iproto": it is not open'
        )

    def test_with_a_wrong_number_of_names(self, passing: Passing) -> None:
        passing.listen()
        assert passing.refusal("iproto:http") == (
            "LISTEN_FDNAMES: the number of names, 2, is not that of sockets, 1"
        )


class TestRefusedSockets:
    def test_one_that_does_not_listen(self, passing: Passing) -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            passing.put(bound.fileno())
        assert passing.refusal() == f"LISTEN_FDS: descriptor {FIRST}: it does not listen: use Accept=no"

    @pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
    def test_one_of_datagrams(self, passing: Passing, family: int) -> None:
        with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
            passing.put(datagrams.fileno())
        assert passing.refusal("metrics") == (
            f'LISTEN_FDS: descriptor {FIRST}, "metrics": it is not a stream socket of TCP or unix:'
            " use ListenStream="
        )

    def test_a_file(self, passing: Passing) -> None:
        with open(os.devnull, "rb") as file:
            passing.put(file.fileno())
        assert passing.refusal() == f"LISTEN_FDS: descriptor {FIRST}: it is not a socket"

    @pytest.mark.parametrize(("names", "shown"), [("iproto:jobs", ', "jobs"'), ("iproto:", "")])
    def test_one_of_several_without_a_known_name(self, passing: Passing, names: str, shown: str) -> None:
        passing.listen()
        port = passing.listen()
        assert passing.refusal(names) == (
            f"LISTEN_FDS: descriptor {FIRST + 1}{shown}, which listens on 127.0.0.1:{port}: among several"
            " sockets it needs FileDescriptorName= with one of the names iproto, iproto-1.5, http, metrics"
        )

    @pytest.mark.parametrize("name", ["http", "metrics"])
    def test_two_for_http(self, passing: Passing, name: str) -> None:
        ports = [passing.listen(), passing.listen()]
        assert passing.refusal(f"{name}:{name}") == (
            f'LISTEN_FDS: 2 sockets are called "{name}", and only one may be:'
            f" 127.0.0.1:{ports[0]}, 127.0.0.1:{ports[1]}"
        )


def test_other_mistakes_are_still_found(passing: Passing) -> None:
    passing.listen()
    with pytest.raises(ConfigError, match=r"^--wal-mode: "):
        load_config({"wal_mode": "x"}, sockets=passing.found())
