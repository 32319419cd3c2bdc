"""Bad input of the operators' commands, and servers that do not answer."""

from __future__ import annotations

import base64
import json
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.cli import command
from iproto_server.text.payload_size import cut_payload
from iproto_server.tools.files.json_record import json_text
from iproto_server.tools.operators.shown import payload as payload_text
from tests.command_line import run
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer
from tests.server.http.http_client import HTTP, http_port, request
from tests.tools.operators.test_operator_commands import lines

TUBES = "queue_lua_compat.tubes:app"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("tubes"), [TUBES], ["--guest", "all"]) as running:
        with IprotoClient.at(running.address) as client:
            for name in ("jobs", "empty"):
                assert client.call("queue.create_tube", name, "fifottl").ok
        yield running


@pytest.fixture
def uri(server: RunningServer) -> str:
    return server.address


class TestBadJson:
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ('{"dealy": 1', "Expecting ',' delimiter"),
            ("[1, 2", "Expecting ',' delimiter"),
            ('"a', "Unterminated string"),
            ("{dealy: 1}", "Expecting property name"),
            (" {'a': 1}", "Expecting property name"),
            ('{"a": 1, "a": 2}', "a name occurs twice"),
            ('{"a": NaN}', "NaN is no number of JSON"),
            ("1e999", "the number 1e999 is too large"),
            ('"\\ud800"', "half of a surrogate pair"),
            ("[" * 100_000, "too many lists"),
        ],
    )
    def test_an_argument_that_is_broken_is_refused(self, text: str, problem: str) -> None:
        nowhere = "127.0.0.1:1"  # nothing is sent, so no server is needed
        for arguments in (
            ("call", nowhere, "queue.put", "x", text),
            ("configure", nowhere, "jobs", f"retry={text}"),
            ("schedule", nowhere, "nightly", "jobs", "* * * * *", text),
            ("schedule", nowhere, "nightly", "jobs", "* * * * *", "x", "--options", text),
        ):
            outcome = run(*arguments)
            assert outcome.status == 2, outcome
            assert problem in " ".join(outcome.errors)
            assert len(" ".join(outcome.errors)) < 1500

    @pytest.mark.parametrize("text", ["plain", "0123", "1.", "NaN", "Infinity", "-", "", "12ab", "'{'", "ж"])
    def test_what_does_not_look_like_json_is_a_string(self, uri: str, text: str) -> None:
        assert lines(run("call", uri, "queue.tube.jobs:put", "--", text))[0][2] == text


SILENT: Final = (
    ("connect", "URI"),
    ("call", "URI", "queue.stats"),
    ("status", "URI"),
    ("top", "URI", "--json", "--count", "1"),
    ("tasks", "URI", "jobs"),
    ("sessions", "URI"),
    ("backlog", "URI"),
    ("release", "URI", "jobs", "1"),
    ("bury", "URI", "jobs", "1"),
    ("delete", "URI", "jobs", "1"),
    ("move", "URI", "jobs", "failed", "1"),
    ("requeue", "URI", "jobs", "1"),
    ("kick", "URI", "jobs", "1"),
    ("pause", "URI", "jobs"),
    ("drain", "URI", "jobs"),
    ("resume", "URI", "jobs"),
    ("configure", "URI", "jobs", "release_limit=1"),
    ("schedule", "URI", "nightly", "jobs", "* * * * *"),
    ("unschedule", "URI", "nightly"),
    ("schedules", "URI"),
    ("play", "URI", "00000000000000000000.xlog"),
    ("backup", "URI", "/nonexistent/backup"),
)
"""Every command that talks to a server."""


@contextmanager
def listening(behave: Callable[[socket.socket], object]) -> Iterator[str]:
    """A block with the address of something that listens; it gets one client after another."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as clients:
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.is_set():
                with suppress(OSError):
                    behave(clients.enter_context(listener.accept()[0]))

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        is_over.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def silent(client: socket.socket) -> None:
    """Say nothing."""


def greeting(client: socket.socket) -> None:
    """Greet as Tarantool, and answer nothing."""
    salt = base64.b64encode(b"s" * 32).ljust(63) + b"\n"
    client.sendall(b"Tarantool 2.11.0 (Binary) 00000000-0000-0000-0000-000000000001".ljust(63) + b"\n" + salt)


def first_bytes(client: socket.socket) -> None:
    """Send some of a greeting, a byte at a time, and go on until the client has had enough."""
    with suppress(OSError):
        for byte in b"Tarantool 2.11.0":
            client.sendall(bytes([byte]))
            if select.select([client], [], [], 0.05)[0]:
                return


@pytest.mark.process  # the client library runs ldconfig to find what it needs
class TestServersThatDoNotAnswer:
    def test_the_table_has_every_command_with_a_time_limit(self) -> None:
        limited = {
            name
            for name in command.list_commands(click.Context(command))
            if any(each.name == "timeout" for each in _parameters(name))
        }
        assert limited == {arguments[0] for arguments in SILENT}
        with_address = {
            name
            for name in command.list_commands(click.Context(command))
            if any(each.metavar and "URI" in each.metavar for each in _parameters(name))
        }
        assert with_address <= limited

    @pytest.mark.parametrize("arguments", SILENT, ids=lambda arguments: arguments[0])
    def test_each_command_says_what_it_waited_for(self, arguments: tuple[str, ...]) -> None:
        with listening(silent) as address:
            outcome = run(*(address if each == "URI" else each for each in arguments), "--timeout", "0.2")
        assert outcome.status == 1
        assert outcome.errors == [
            f"no answer from {address}: waited 0.2 s for the greeting;"
            " is this the address of --listen, and not of --http or --metrics-listen?"
        ]

    @pytest.mark.parametrize(
        ("behave", "waited_for"),
        [(first_bytes, "the greeting; is this"), (greeting, "an answer to the first request")],
    )
    def test_the_time_is_for_all_of_the_connection(
        self, behave: Callable[[socket.socket], object], waited_for: str
    ) -> None:
        with listening(behave) as address:
            outcome = run("status", address, "--timeout", "0.3")
        assert outcome.status == 1
        assert outcome.errors[0].startswith(f"no answer from {address}: waited 0.3 s for {waited_for}")

    @pytest.mark.parametrize(
        ("sent", "reason"),
        [
            (b"", "Connection reset by peer; is this the address of --listen"),
            (
                b"HTTP/1.1 400 Bad Request\r\n\r\n",
                "Connection reset by peer; is this the address of --listen",
            ),
            (b"x" * 200, "the program that answers there is no Tarantool; is this the address of --listen"),
        ],
    )
    def test_what_listens_is_something_else(self, sent: bytes, reason: str) -> None:
        def answer(client: socket.socket) -> None:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)

        with listening(answer) as address:
            outcome = run("status", address)
        assert outcome.status == 1
        assert outcome.errors[0].startswith(f"cannot connect to {address}: {reason}")

    def test_an_answer_that_does_not_come(self, uri: str) -> None:
        outcome = run("call", uri, "queue.tube.empty:take", "30", "--timeout", "0.3")
        assert outcome.status == 1
        assert outcome.errors == [
            f"no answer from {uri}: waited 0.3 s for that of queue.tube.empty:take, which may be carried out"
            " nevertheless"
        ]

    @pytest.mark.parametrize("limit", ["nan", "inf", "-1", "0", "1e999", "x", "", "100000"])
    @pytest.mark.parametrize(("name", "option"), [("status", "--timeout"), ("top", "--interval")])
    def test_limits_that_are_none(self, name: str, option: str, limit: str) -> None:
        outcome = run(name, "127.0.0.1:1", option, limit)
        assert outcome.status == 2
        assert option in outcome.errors[-1]


def _parameters(name: str) -> list[click.Parameter]:
    found = command.get_command(click.Context(command), name)
    assert found is not None
    return found.params


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "problem"),
        [
            ("http://127.0.0.1:8081", "an address has no http://: give HOST:PORT or unix:PATH"),
            ("https://ann:secret@db:8081/", "an address has no https://: give HOST:PORT or unix:PATH"),
            ("tarantool://127.0.0.1:3301", "an address has no tarantool://"),
            ("", "the address is empty: give HOST:PORT or unix:PATH"),
            ("localhost", '"localhost" is not an address: expected PORT, HOST:PORT'),
            ("localhost:", "the port must be a number"),
            ("localhost:0", "the port is 0"),
            ("localhost:65536", "the port must be a number from 0 to 65535"),
            ("localhost:3301/x", "the port must be a number"),
            ("ann:secret@", "is not an address"),
            ("@localhost:3301", "there is no user before the @"),
            ("unix:", "a unix socket needs a path"),
        ],
    )
    @pytest.mark.parametrize("name", ["status", "backlog", "schedules"])
    def test_what_is_no_address(self, name: str, address: str, problem: str) -> None:
        outcome = run(name, address)
        assert outcome.status == 2
        assert problem in outcome.errors[-1]
        assert "secret" not in outcome.errors[-1]

    @pytest.mark.parametrize(
        "arguments", [("play", "URI", "x.xlog"), ("backup", "URI", "/nonexistent/backup")]
    )
    def test_an_address_of_http_for_files(self, arguments: tuple[str, ...]) -> None:
        outcome = run(*("http://127.0.0.1:8081" if each == "URI" else each for each in arguments))
        assert outcome.status == 2
        assert "an address has no http://" in outcome.errors[-1]


class TestLogins:
    @pytest.mark.parametrize("user", ["admin", "nosuch"])
    def test_a_wrong_password_is_no_lack_of_a_connection(self, uri: str, user: str) -> None:
        outcome = run("status", f"{user}:secret@{uri}")
        assert outcome.status == 1
        assert outcome.errors == [
            f"{uri} refuses the login of user {user}: User not found or supplied credentials are invalid"
        ]


class TestReadiness:
    def test_status_says_what_ready_says(self, start_server: StartServer) -> None:
        server = start_server(options=[*HTTP, "--read-only"])
        ready = json.loads(request(http_port(server), "/ready").text)
        [status] = lines(run("status", server.address, "--json"))
        assert (status["ready"], status["not_ready_reason"]) == (False, ready["reason"])
        assert re.search("ready +no: the server is read-only", run("status", server.address).output)

    def test_a_server_that_is_ready(self, uri: str) -> None:
        [status] = lines(run("status", uri, "--json"))
        assert (status["ready"], status["not_ready_reason"]) == (True, None)
        assert re.search("ready +yes", run("status", uri).output)


class TestPayloads:
    def test_a_table_gets_the_beginning_of_payloads(self, server: RunningServer, uri: str) -> None:
        payloads = ["ж" * 10_000, list(range(10_000)), {"a": ["x" * 10_000]}, "short"]
        with IprotoClient.at(server.address) as client:
            assert client.call("queue.create_tube", "large", "fifo").ok
            for payload in payloads:
                assert client.call("queue.tube.large:put", payload).ok
            cut = client.call("operator.tasks", "large", {"data_size": 100}).data[0]
            assert [len(json_text(task["data"])) < 1000 for task in cut] == [True] * 4
            assert cut[0]["data"] == "ж" * 101
            assert cut[3]["data"] == "short"
            for size in (0, -1, 1.5, True, "1", 2**40):
                answer = client.call("operator.tasks", "large", {"data_size": size})
                assert not answer.ok
        table = run("tasks", uri, "large").output
        assert table.count("…") == 3
        whole = lines(run("tasks", uri, "large", "--json"))
        assert [task["data"] for task in whole] == payloads

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=40) | st.binary(max_size=40),
            lambda inner: (
                st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5)
            ),
        ),
        st.integers(1, 30),
    )
    def test_a_cut_payload_shows_as_the_whole_one(self, value: object, width: int) -> None:
        cut = cut_payload(value, width)
        whole, shown = json_text(value), json_text(cut)
        if cut == value:
            assert shown == whole
        else:
            assert len(shown) > width
        assert len(shown) <= 40 * (width + 2)

    def test_only_what_is_shown_is_formatted(self) -> None:
        class Long(list[int]):
            looked_at = 0

            def __iter__(self) -> Iterator[int]:
                for number in range(10**9):
                    Long.looked_at += 1
                    yield number

        assert payload_text(Long([1]), 60).endswith("…")
        assert Long.looked_at < 100
