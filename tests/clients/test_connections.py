"""Connecting, waiting, timeouts and reconnecting of the client libraries, and their treatment of strings."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import asynctnt
import msgpack
import pytest
import tarantool
from asynctnt.exceptions import (
    ErrorCode,
    TarantoolDatabaseError,
    TarantoolNotConnectedError,
    TarantoolSchemaError,
)
from tarantool import dbapi
from tarantool.error import NetworkError, SslError

from tests.clients.applications.accounts import PASSWORD, USER
from tests.clients.conftest import APPLICATIONS, OURS
from tests.clients.drivers.connections import AsynctntConnection, rows, with_asynctnt, with_python
from tests.clients.drivers.driver import Row, Target
from tests.config.certificates import Certificates
from tests.conftest import StartServer
from tests.running_server import RunningServer

_gates = count(1)


class Sockets(NamedTuple):
    """The addresses of one server.

    Parameters:
        path: Its unix socket.
        tls: Its TCP port, with TLS.
        certificates: Those it uses.
    """

    path: Path
    tls: Target
    certificates: Certificates


@pytest.fixture(scope="module")
def sockets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sockets]:
    directory = tmp_path_factory.mktemp("sockets")
    certificates = Certificates(directory)
    path = directory / "plain.sock"
    with RunningServer(
        directory, APPLICATIONS, ["--listen", f"unix:{path}"], listen=certificates.listen()
    ) as server:
        server.process.wait_for(r"ready to accept requests")
        yield Sockets(path, Target(OURS, server.host, server.port), certificates)


@pytest.fixture
def gate() -> str:
    """Return a name that no other test uses."""
    return f"connections_{next(_gates)}"


async def rows_when_it_is_back(connection: AsynctntConnection, space: str) -> list[Row]:
    """Return the rows of a space; empty until the connection notices that it was lost."""
    try:
        return rows(await connection.select(space))
    except (TarantoolNotConnectedError, TarantoolSchemaError):
        await asyncio.sleep(0.01)
        return []


class TestWaiting:
    async def test_asynctnt_gives_up_a_request_and_goes_on(self, target: Target, gate: str) -> None:
        async with with_asynctnt(target) as connection:
            with pytest.raises(asyncio.TimeoutError):
                await connection.call("features.wait", [gate], timeout=0.01)
            assert (await connection.call("features.echo", [1])).body == [1]
            # its late answer is ignored
            await connection.call("features.open", [gate])
            assert (await connection.call("features.echo", [2])).body == [2]

    async def test_asynctnt_has_a_timeout_for_all_requests(self, target: Target, gate: str) -> None:
        async with with_asynctnt(target, request_timeout=0.05) as connection:
            with pytest.raises(asyncio.TimeoutError):
                await connection.call("features.wait", [gate])
            await connection.call("features.open", [gate], timeout=10)

    async def test_asynctnt_sends_requests_while_others_wait(self, target: Target, gate: str) -> None:
        async with with_asynctnt(target) as connection:
            waiting = [connection.call("features.wait", [f"{gate}_{number}"]) for number in range(20)]
            for number in reversed(range(20)):
                await connection.call("features.open", [f"{gate}_{number}"])
                assert (await waiting[number]).body == ["open"]

    async def test_asynctnt_is_told_that_it_is_disconnected(self, target: Target, gate: str) -> None:
        async with with_asynctnt(target) as connection, with_asynctnt(target) as other:
            waiting = connection.call("features.wait", [gate])
            await connection.disconnect()
            with pytest.raises(TarantoolNotConnectedError):
                await waiting
            with pytest.raises(TarantoolNotConnectedError):
                await connection.ping()
            await other.call("features.open", [gate])
            await connection.connect()
            await connection.ping()

    def test_tarantool_python_gives_up_a_request(self, target: Target, gate: str) -> None:
        with with_python(target, socket_timeout=0.05) as connection, with_python(target) as other:
            with pytest.raises(NetworkError):
                connection.call("features.wait", gate)
            other.call("features.open", gate)

    @pytest.mark.filterwarnings("ignore")
    def test_tarantool_python_connects_anew_after_it_was_closed(self, target: Target) -> None:
        with with_python(target, user=USER, password=PASSWORD) as connection:
            connection.close()
            assert connection.is_closed()
            assert connection.call("box.session.user").data == [USER]


class TestComingBack:
    @pytest.mark.filterwarnings("ignore")  # the libraries warn at every attempt
    async def test_both_find_a_server_that_was_started_again(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        server = start_server(APPLICATIONS, work_dir=tmp_path)
        target = Target(OURS, server.host, server.port)
        login = {"user": USER, "password": PASSWORD}
        with (
            with_python(target, **login, reconnect_max_attempts=100, reconnect_delay=0.05) as synchronous,
            with_python(target, reconnect_max_attempts=1, reconnect_delay=0) as impatient,
        ):
            async with with_asynctnt(
                target, username=USER, password=PASSWORD, reconnect_timeout=0.05
            ) as connection:
                await connection.call("box.schema.create_space", ["kept", {"format": [{"name": "id"}]}])
                await connection.call("box.space.kept:create_index", ["primary"])
                await connection.call("box.space.kept:insert", [[1]])
                server.stop()
                with pytest.raises(NetworkError):
                    impatient.ping()
                start_server(APPLICATIONS, listen=f"{server.host}:{server.port}", work_dir=tmp_path)
                assert synchronous.call("box.session.user").data == [USER]
                while not (kept := await rows_when_it_is_back(connection, "kept")):
                    pass
                assert kept == [[1]]
                assert (await connection.call("box.session.user")).body == [USER]

    async def test_asynctnt_is_told_when_nobody_listens(self) -> None:
        connection = AsynctntConnection(host="127.0.0.1", port=1, reconnect_timeout=0)
        with pytest.raises(ConnectionRefusedError):
            await connection.connect()

    @pytest.mark.process  # the library runs ldconfig to find what it needs
    def test_tarantool_python_is_told_when_nobody_listens(self) -> None:
        with pytest.raises(NetworkError):
            tarantool.Connection("127.0.0.1", 1, reconnect_max_attempts=0)


class TestLoggingIn:
    async def test_asynctnt_is_told_why_it_may_not(self, target: Target) -> None:
        for user, password, code in (
            (USER, "wrong", ErrorCode.ER_PASSWORD_MISMATCH),
            # 2.6 reports unknown users and wrong passwords differently; 2.11 and later do not.
            (
                "nobody",
                "x",
                ErrorCode.ER_PASSWORD_MISMATCH if target.name == OURS else ErrorCode.ER_NO_SUCH_USER,
            ),
        ):
            connection = with_asynctnt(target, username=user, password=password)
            with pytest.raises(TarantoolDatabaseError) as raised:
                await connection.connect()
            assert raised.value.code == code

    def test_tarantool_python_may_name_the_method(self, target: Target) -> None:
        with with_python(target, user=USER, password=PASSWORD, auth_type="chap-sha1") as connection:
            assert connection.call("box.session.user").data == [USER]
        with pytest.raises(NetworkError, match="rot13"):
            tarantool.Connection(target.host, target.port, user=USER, password=PASSWORD, auth_type="rot13")

    def test_tarantool_python_becomes_somebody_later(self, target: Target) -> None:
        with with_python(target) as connection:
            assert connection.call("box.session.user").data == ["guest"]
            connection.authenticate(USER, PASSWORD)
            assert connection.call("box.session.user").data == [USER]
            with pytest.raises(tarantool.DatabaseError):
                connection.authenticate(USER, "wrong")

    def test_tarantool_python_may_ask_for_features(self, our_server: Target) -> None:
        with with_python(our_server, required_protocol_version=6, required_features=[0, 1, 2, 3, 4, 5, 6]):
            pass
        with pytest.raises(NetworkError, match="Server missing protocol features with id 7"):
            tarantool.Connection(our_server.host, our_server.port, required_features=[2, 7])
        with pytest.raises(NetworkError, match="protocol version 99 is required"):
            tarantool.Connection(our_server.host, our_server.port, required_protocol_version=99)


class TestTexts:
    TEXTS = ("", "plain", "déjà vu", "\u0000", "日本語", "🦊" * 100)

    def test_texts_and_bytes_are_told_apart(self, target: Target, values: str) -> None:
        with with_python(target) as connection:
            for value in (*self.TEXTS, b"", b"\xff\x00", b"ascii"):
                assert connection.replace(values, [1, value])[0] == [1, value]
                assert connection.select(values, 1)[0][1] == value

    async def test_by_asynctnt_too(self, target: Target, values: str) -> None:
        async with with_asynctnt(target) as connection:
            for value in (*self.TEXTS, b"", b"\xff\x00", b"ascii"):
                assert rows(await connection.replace(values, [1, value])) == [[1, value]]

    async def test_asynctnt_may_have_another_encoding(self, target: Target, values: str) -> None:
        async with with_asynctnt(target, encoding="cp1251") as connection:
            assert rows(await connection.insert(values, [1, "привет"])) == [[1, "привет"]]
        with with_python(target, encoding=None) as connection:
            assert connection.select(values, 1)[0] == [1, "привет".encode("cp1251")]

    def test_without_an_encoding_texts_are_bytes(self, target: Target, values: str) -> None:
        with with_python(target, encoding=None) as connection:
            for value in (b"\xff\xfe", b"plain"):
                assert connection.replace(values, [1, value])[0] == [1, value]
                assert connection.select(values, 1)[0] == [1, value]
            assert connection.call("features.echo", [b"x"]).data == [b"x"]

    def test_arrays_may_be_tuples(self, target: Target, values: str) -> None:
        with with_python(target, use_list=False) as connection:
            assert connection.insert(values, [1, [2, [3]]])[0] == (1, (2, (3,)))

    def test_a_packer_and_an_unpacker_of_one_s_own(self, target: Target, values: str) -> None:
        with with_python(
            target,
            packer_factory=lambda _: msgpack.Packer(default=lambda value: sorted(value)),
            unpacker_factory=lambda _: msgpack.Unpacker(use_list=False, strict_map_key=False),
        ) as connection:
            assert connection.insert(values, [1, {3, 1, 2}])[0] == (1, (1, 2, 3))

    def test_answers_of_the_first_call(self, target: Target) -> None:
        with with_python(target, call_16=True) as connection:
            assert connection.call("features.echo", [1, [2, 3]]).data == [[1], [2, 3]]

    async def test_answers_of_the_first_call_of_asynctnt(self, target: Target) -> None:
        async with with_asynctnt(target) as connection:
            assert (await connection.call16("features.echo", [1, [2, 3]])).body == [[1], [2, 3]]

    async def test_large_requests_and_answers(self, target: Target, values: str) -> None:
        text = "x" * 1_000_000
        async with with_asynctnt(target, initial_read_buffer_size=1024) as connection:
            assert rows(await connection.insert(values, [1, text])) == [[1, text]]
        with with_python(target) as connection:
            assert connection.select(values, 1)[0] == [1, text]

    async def test_numbers_at_the_ends_of_their_ranges(self, target: Target, values: str) -> None:
        numbers = [0, 127, 128, 2**32, 2**63 - 1, 2**63, 2**64 - 1, -1, -32, -33, -(2**63), 0.5, 1e300, -0.0]
        async with with_asynctnt(target) as connection:
            assert rows(await connection.insert(values, [1, numbers])) == [[1, numbers]]
        with with_python(target) as connection:
            assert connection.select(values, 1)[0] == [1, numbers]


class TestSockets:
    async def test_asynctnt_connects_to_a_unix_socket(self, sockets: Sockets) -> None:
        async with AsynctntConnection(
            host="unix/", port=str(sockets.path), username=USER, password=PASSWORD
        ) as connection:
            assert (await connection.call("box.session.user")).body == [USER]

    def test_tarantool_python_connects_to_a_unix_socket(self, sockets: Sockets) -> None:
        with closing(
            tarantool.Connection(None, str(sockets.path), user=USER, password=PASSWORD)
        ) as connection:
            assert connection.call("box.session.user").data == [USER]

    def test_tarantool_python_takes_a_socket_that_is_connected(self, our_server: Target) -> None:
        connected = socket.create_connection((our_server.host, our_server.port))
        with closing(tarantool.Connection(None, None, socket_fd=connected.detach())) as connection:
            assert connection.call("features.echo", [1]).data == [1]

    def test_pools_and_meshes_connect_with_tls(self, sockets: Sockets) -> None:
        tls: dict[str, Any] = {
            "host": sockets.tls.host,
            "port": sockets.tls.port,
            "transport": "ssl",
            "ssl_ca_file": str(sockets.certificates.authority),
        }
        with closing(tarantool.MeshConnection(addrs=[tls], user=USER, password=PASSWORD)) as mesh:
            assert mesh.call("box.session.user").data == [USER]
        with closing(tarantool.ConnectionPool([tls], refresh_delay=0.05)) as pool:
            assert pool.call("features.echo", [1], mode=tarantool.Mode.RW).data == [1]

    def test_who_speaks_plainly_to_tls_is_told_by_its_library(self, sockets: Sockets) -> None:
        with pytest.raises(NetworkError):
            tarantool.Connection(
                sockets.tls.host, sockets.tls.port, socket_timeout=0.2, reconnect_max_attempts=0
            )

    def test_who_speaks_tls_to_a_plain_address_is_told_by_its_library(self, our_server: Target) -> None:
        with pytest.raises(SslError):
            tarantool.Connection(our_server.host, our_server.port, transport="ssl", socket_timeout=5)


class TestDatabaseInterface:
    """PEP 249, except for SQL."""

    def test_a_connection_opens_and_closes(self, our_server: Target) -> None:
        connection = dbapi.connect(host=our_server.host, port=our_server.port)
        assert dbapi.apilevel == "2.0"
        connection.commit()
        with pytest.raises(connection.NotSupportedError):
            connection.rollback()
        connection.close()
        with pytest.raises(connection.InterfaceError):
            connection.cursor()

    def test_a_statement_is_refused_by_the_server(self, our_server: Target) -> None:
        connection = dbapi.connect(host=our_server.host, port=our_server.port)
        cursor = connection.cursor()
        with pytest.raises(connection.DatabaseError) as raised:
            cursor.execute("SELECT 1")
        assert raised.value.args == (5, "This server does not support EXECUTE requests")
        with pytest.raises(connection.InterfaceError):
            cursor.fetchone()
        connection.close()


async def test_asynctnt_knows_the_features(our_server: Target) -> None:
    async with asynctnt.Connection(host=our_server.host, port=our_server.port) as connection:
        features = connection.features
        assert features.streams
        assert features.transactions
        assert features.error_extension
        assert features.watchers
        assert features.pagination
        assert features.space_and_index_names
        assert features.watch_once
        assert connection.version >= (2, 11)
