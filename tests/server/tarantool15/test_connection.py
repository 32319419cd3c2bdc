"""Connections of Tarantool 1.5's clients are as all others: log, slow readers, limits, rights, stopping."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from iproto_server.config.address import Address
from iproto_server.config.config import ConfigError, load_config
from tests.command_line import refused
from tests.config.certificates import Certificates
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.protocol.tarantool15.box15_client import (
    CALL,
    PING,
    RETURN_TUPLE,
    Client15,
    call_body,
    frame,
    insert_body,
    operation,
    u32,
)
from tests.running_server import RunningServer
from tests.server.in_process import ServerInProcess
from tests.server.tarantool15.application15 import PLAIN, app

APPLICATION = "tests.server.tarantool15.application15:app"
OPTIONS = ["--listen-1-5", "127.0.0.1:0"]
SECONDARY, MEMORY_ISSUE, WAL_IO = 3, 7, 39
MEBIBYTE = 1 << 20
INSERT = 13

Start = Callable[..., ServerInProcess]


def client_of(server: RunningServer) -> Client15:
    found = server.process.wait_for(r"listening on 127.0.0.1:(\d+), protocol of Tarantool 1.5")
    return Client15("127.0.0.1", int(found[1]))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server whose disk the test rules."""
    with ExitStack() as running:

        def start(**options: Any) -> ServerInProcess:
            address = Address("127.0.0.1", 0)
            return running.enter_context(ServerInProcess(tmp_path, [app], listen_1_5=(address,), **options))

        yield start


@pytest.fixture
def connect() -> Iterator[Callable[[ServerInProcess], Client15]]:
    with ExitStack() as clients:

        def connect(server: ServerInProcess) -> Client15:
            address = list(server.server.listeners)[-1].address
            return clients.enter_context(Client15(address.host, address.port))

        yield connect


Connect = Callable[[ServerInProcess], Client15]


class TestLog:
    def test_what_cannot_be_written_is_refused_and_undone(self, start: Start, connect: Connect) -> None:
        server = start()
        client = connect(server)
        assert client.insert(PLAIN, b"before").count == 1
        server.disk.fault = errno.ENOSPC
        refused = client.insert(PLAIN, b"after", flags=RETURN_TUPLE)
        assert (refused.code, refused.status, refused.message) == (WAL_IO, 2, "Failed to write to disk")
        assert client.update(PLAIN, [b"before"], operation(0, 0, b"moved")).code == WAL_IO
        assert client.delete(PLAIN, b"before").code == WAL_IO
        assert client.call("put", b"after", b"").code == WAL_IO
        assert client.select(PLAIN, []).tuples == [[b"before"]]
        server.disk.fault = None
        assert client.update(PLAIN, [b"before"], operation(0, 0, b"moved")).count == 1
        assert client.select(PLAIN, []).tuples == [[b"moved"]]

    def test_in_one_batch_those_who_wrote_are_refused_and_the_others_answered(
        self, start: Start, connect: Connect
    ) -> None:
        server = start()
        client = connect(server)
        server.disk.fault = errno.ENOSPC
        requests = [
            frame(PING, b"", 1),
            frame(INSERT, insert_body(PLAIN, b"a"), 2),
            frame(CALL, call_body(b"echo", b"x"), 3),
            frame(CALL, call_body(b"put", b"b", b""), 4),
        ]
        client.send_bytes(b"".join(requests))
        answers = [client.receive() for _ in requests]
        assert [(answer.kind, answer.request_id, answer.code) for answer in answers] == [
            (PING, 1, 0),
            (INSERT, 2, WAL_IO),
            (CALL, 3, 0),
            (CALL, 4, WAL_IO),
        ]

    def test_a_call_that_waits_has_stored_what_it_stored_before(self, start: Start, connect: Connect) -> None:
        server = start()
        client, other = connect(server), connect(server)
        server.disk.fault = errno.ENOSPC
        waiting, ping = client.send(CALL, call_body(b"store.and.wait", b"a")), client.send(PING)
        # Which of them is answered first depends on whether they have come together.
        first = client.receive()
        server.disk.fault = None
        other.call("wake")
        codes = {answer.request_id: answer.code for answer in (first, client.receive())}
        assert codes == {waiting: WAL_IO, ping: 0}

    def test_with_fsync_a_change_is_answered_when_the_disk_has_it(
        self, start: Start, connect: Connect
    ) -> None:
        server = start(wal_mode="fsync")
        writer, reader = connect(server), connect(server)
        server.disk.may_sync.clear()
        server.disk.is_syncing.clear()
        writer.send(INSERT, insert_body(PLAIN, b"a"))
        assert server.disk.is_syncing.wait(30)
        assert reader.select(PLAIN, []).count == 1
        writer.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            writer.receive()
        writer.socket.settimeout(20)
        server.disk.may_sync.set()
        assert writer.receive().count == 1

    def test_or_refused_when_it_has_not(self, start: Start, connect: Connect) -> None:
        server = start(wal_mode="fsync")
        writer = connect(server)
        server.disk.sync_fault = errno.EIO
        assert writer.insert(PLAIN, b"a").code == WAL_IO
        server.disk.sync_fault = None
        assert writer.select(PLAIN, []).count == 0

    def test_what_was_answered_is_there_after_a_restart(self, tmp_path: Path, connect: Connect) -> None:
        options: dict[str, Any] = {"listen_1_5": (Address("127.0.0.1", 0),)}
        with ServerInProcess(tmp_path, [app], **options) as server:
            assert connect(server).insert(PLAIN, b"key", b"\xff", u32(1)).count == 1
        with ServerInProcess(tmp_path, [app], **options) as server:
            assert connect(server).select(PLAIN, []).tuples == [[b"key", b"\xff", u32(1)]]


class TestLimits:
    def test_who_does_not_read_is_not_read_from_and_nobody_else_notices(
        self, start_server: StartServer
    ) -> None:
        server = start_server([APPLICATION], [*OPTIONS, "--write-high-water", "1M"])
        with client_of(server) as slow, client_of(server) as other:
            slow.socket.setblocking(False)
            # Each asks for a mebibyte. Once the server stops reading, no more requests fit into the sockets.
            requests = frame(CALL, call_body(b"big", str(MEBIBYTE).encode())) * 500_000
            sent = 0
            with suppress(BlockingIOError):
                while sent < len(requests):
                    sent += slow.socket.send(requests[sent : sent + 65536])
                    assert other.call("echo", b"1").tuples == [[b"1"]]
            assert 0 < sent < len(requests)

    def test_the_slow_reader_gets_everything_when_it_reads(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], [*OPTIONS, "--write-high-water", "64K"])
        with client_of(server) as slow:
            requests = [frame(CALL, call_body(b"big", b"100000"), number) for number in range(200)]
            slow.send_bytes(b"".join(requests))
            assert [slow.receive().request_id for _ in range(200)] == list(range(200))

    def test_no_more_requests_than_net_msg_max_are_in_flight(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], [*OPTIONS, "--net-msg-max", "10"])
        with client_of(server) as many, client_of(server) as other:
            many.send_bytes(b"".join(frame(CALL, call_body(b"gate.wait"), number) for number in range(100)))
            while other.call("gate.most").tuples[0][0] < u32(10):
                """A task starts with the loop's next iteration."""
            assert other.call("gate.most").tuples == [[u32(10), u32(10)]]
            other.call("gate.open")
            assert sorted(many.receive().request_id for _ in range(100)) == list(range(100))

    def test_a_body_may_have_as_many_bytes_as_a_frame_and_no_more(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], [*OPTIONS, "--max-frame", "2000"])
        spare = 2000 - len(call_body(b"echo", b"x" * 300)) + 300
        with client_of(server) as client:
            assert client.call("echo", b"x" * spare).tuples == [[b"x" * spare]]
            client.send(CALL, call_body(b"echo", b"x" * (spare + 1)))
            assert client.closed_by_server()

    def test_an_answer_to_a_select_has_no_more_bytes_either(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], [*OPTIONS, "--max-frame", "2000"])
        with client_of(server) as client:
            assert client.insert(PLAIN, b"key", b"x" * 900).count == 1
            assert client.select(PLAIN, [b"key"], [b"key"]).count == 2
            answer = client.select(PLAIN, [b"key"], [b"key"], [b"key"])
            assert (answer.code, answer.status) == (MEMORY_ISSUE, 1)
            assert client.select(PLAIN, [b"key"], [b"key"], [b"key"], limit=2).count == 2
            assert client.select(PLAIN, *[[]] * 125, offset=2**32 - 1).count == 0
            assert client.select(PLAIN, *[[]] * 126, offset=2**32 - 1).code == MEMORY_ISSUE


class TestRights:
    def test_who_may_not_is_told_so(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], OPTIONS)
        with client_of(server) as client:
            client.insert(PLAIN, b"key")
            assert client.call("lose.rights").code == 0
            for answer in (
                client.insert(PLAIN, b"new"),
                client.delete(PLAIN, b"key"),
                client.update(PLAIN, [b"key"], operation(0, 0, b"x")),
                client.select(PLAIN, []),
                client.call("echo"),
            ):
                assert (answer.code, answer.status) == (SECONDARY, 2)
            assert answer.message == "Execute access to function 'echo' is denied for user 'nobody'"
            assert client.request(PING).kind == PING

    def test_a_server_that_is_read_only_says_so(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], [*OPTIONS, "--read-only"])
        with client_of(server) as client:
            answer = client.insert(PLAIN, b"key")
            assert (answer.code, answer.message) == (
                SECONDARY,
                "Can't modify data because this instance is in read-only mode.",
            )
            assert client.delete(PLAIN, b"key").code == SECONDARY
            assert client.select(PLAIN, []).count == 0

    def test_an_address_that_others_can_reach_is_not_opened_to_guest(self, tmp_path: Path) -> None:
        assert "--allow-guest" in refused(tmp_path, APPLICATION, "--listen-1-5", "0.0.0.0:0", status=2)


class TestConnecting:
    def test_who_is_refused_by_on_connect_hears_why(self, start_server: StartServer, tmp_path: Path) -> None:
        (tmp_path / "closed.py").write_text(
            "from iproto_server import Application, BoxError\n"
            "app = Application('closed')\n"
            "def refuse():\n"
            "    raise BoxError.procedure('not today')\n"
            "app.setup(lambda box: box.session.on_connect(refuse))\n"
        )
        server = start_server(["closed:app"], OPTIONS, work_dir=tmp_path)
        with client_of(server) as client:
            answer = client.receive()
            assert (answer.kind, answer.request_id) == (0, 0)
            assert (answer.code, answer.message) == (51, "Lua error: not today")
            assert client.closed_by_server()

    def test_several_addresses_and_a_unix_socket(self, start_server: StartServer, tmp_path: Path) -> None:
        more = ["--listen-1-5", "127.0.0.1:0", "--listen-1-5", "unix:old.sock"]
        server = start_server([APPLICATION], [*OPTIONS, *more], work_dir=tmp_path)
        server.process.wait_for(r"listening on unix:\S*old.sock, protocol of Tarantool 1.5")
        ports = re.findall(r"listening on 127.0.0.1:(\d+), protocol", server.process.output)
        assert len(set(ports)) == 2
        for port in ports:
            with Client15("127.0.0.1", int(port)) as client:
                assert client.request(PING).kind == PING
        with socket.socket(socket.AF_UNIX) as old:
            old.connect(str(tmp_path / "old.sock"))
            old.sendall(frame(PING, b"", 5))
            assert old.recv(100) == frame(PING, b"", 5)

    def test_tls(self, start_server: StartServer, tmp_path: Path) -> None:
        certificates = Certificates(tmp_path)
        server = start_server([APPLICATION], ["--listen-1-5", certificates.listen()])
        port = int(server.process.wait_for(r":(\d+), TLS, protocol of Tarantool 1.5")[1])
        with Client15("127.0.0.1", port) as client:
            client.socket = certificates.context(None).wrap_socket(client.socket, server_hostname="127.0.0.1")
            assert client.call("echo", b"a").tuples == [[b"a"]]

    def test_clients_of_iproto_are_told_of_their_own_addresses_only(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], OPTIONS)
        with IprotoClient.at(server.address) as client:
            assert client.call("box.info").data[0]["listen"] == server.address

    @pytest.mark.parametrize(
        ("arguments", "environment", "file"),
        [
            ({"listen_1_5": ("127.0.0.1:1",)}, {}, ""),
            ({}, {"IPROTO_SERVER_LISTEN_1_5": "127.0.0.1:1"}, ""),
            ({}, {}, 'listen_1_5 = "127.0.0.1:1"'),
            ({}, {}, 'listen_1_5 = ["127.0.0.1:1"]'),
        ],
    )
    def test_the_option_stands_where_all_others_do(
        self, tmp_path: Path, arguments: dict[str, object], environment: dict[str, str], file: str
    ) -> None:
        (tmp_path / "server.toml").write_text(file)
        config = load_config(arguments, environment, tmp_path / "server.toml")
        assert config.listen_1_5 == (Address("127.0.0.1", 1),)
        assert config.listen == (Address("127.0.0.1", 3301),)

    def test_an_address_that_is_none_is_refused(self) -> None:
        with pytest.raises(ConfigError, match=r"^--listen-1-5: "):
            load_config({"listen_1_5": ("nonsense:port",)})


class TestStopping:
    def test_calls_that_wait_are_answered_without_a_value(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], OPTIONS)
        with client_of(server) as client:
            waiting = client.send(CALL, call_body(b"park", b"60"))
            assert client.request(PING).kind == PING
            server.stop()
            answer = client.receive()
            assert (answer.request_id, answer.code, answer.tuples) == (waiting, 0, [])
            assert client.closed_by_server()
