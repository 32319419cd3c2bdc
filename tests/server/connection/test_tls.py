"""TLS addresses: requests, clients that misbehave, certificates, passwords in clear."""

from __future__ import annotations

import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import tarantool
import uvloop
from cryptography import x509

from iproto_server import Application
from iproto_server.config.address import Address
from iproto_server.server.connection import listener
from tests.command_line import run
from tests.config.certificates import Certificates
from tests.conftest import StartServer
from tests.iproto_client import AUTH, CALL, FUNCTION_NAME, ID, PING, TUPLE, USER_NAME, IprotoClient
from tests.running_server import RunningServer
from tests.server.in_process import ServerInProcess

APPLICATIONS = ["tests.server.application:app", "tests.server.accounts:app"]
PAP = "pap-sha256"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[RunningServer]:
    """A server with TLS, whose passwords are for pap-sha256."""
    options = ["--auth-type", PAP, "--write-high-water", "64K"]
    directory = tmp_path_factory.mktemp("tls")
    with RunningServer(directory, APPLICATIONS, options, listen=certificates.listen()) as server:
        yield server


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[RunningServer]:
    """A server that wants to see its clients' certificates."""
    listen = certificates.listen(ssl_ca_file=certificates.authority)
    with RunningServer(tmp_path_factory.mktemp("strict"), APPLICATIONS, listen=listen) as server:
        yield server


@pytest.fixture
def client(server: RunningServer, certificates: Certificates) -> Iterator[IprotoClient]:
    with connect(server, certificates) as client:
        yield client


def connect(
    server: RunningServer, certificates: Certificates, certificate: Path | None = None
) -> IprotoClient:
    return IprotoClient(server.host, server.port, tls=certificates.context(certificate))


def with_python(server: RunningServer, certificates: Certificates, **more: object) -> tarantool.Connection:
    return tarantool.Connection(
        server.host, server.port, transport="ssl", ssl_ca_file=str(certificates.authority), **more
    )


class TestRequests:
    def test_are_answered_after_the_greeting(self, client: IprotoClient) -> None:
        assert client.greeting.startswith(b"Tarantool 2.")
        assert client.request(PING).ok
        assert client.call("echo", 1, "two").data == [[1, "two"]]

    def test_may_be_many_at_once_and_large(self, client: IprotoClient) -> None:
        payload = "x" * 300_000
        syncs = [client.send(CALL, {FUNCTION_NAME: "echo", TUPLE: [payload]}) for _ in range(10)]
        answers = [client.receive() for _ in syncs]
        assert [answer.sync for answer in answers] == syncs
        assert all(answer.data == [[payload]] for answer in answers)

    def test_that_wait_are_answered_later(self, server: RunningServer, certificates: Certificates) -> None:
        with connect(server, certificates) as waiting, connect(server, certificates) as other:
            waiting.send(CALL, {FUNCTION_NAME: "park", TUPLE: [60]})
            assert waiting.request(PING).ok
            assert other.call("wake").ok
            assert waiting.receive().data == ["woken"]

    def test_of_who_does_not_read_wait_until_it_does(self, client: IprotoClient) -> None:
        syncs = [client.send(CALL, {FUNCTION_NAME: "big", TUPLE: [200_000]}) for _ in range(100)]
        assert [client.receive().sync for _ in syncs] == syncs

    def test_malformed_ones_are_answered_before_the_end(self, client: IprotoClient) -> None:
        client.send_bytes(b"\xa1x")
        assert client.receive().error_code == 20
        assert client.closed_by_server()

    def test_the_peer_is_that_of_the_socket(self, client: IprotoClient) -> None:
        host, port = client.socket.getsockname()
        assert client.call("who").data[2] == f"{host}:{port}"

    def test_who_says_goodbye_or_breaks_off_is_forgotten(
        self, server: RunningServer, certificates: Certificates
    ) -> None:
        for is_polite in (True, False):
            gone = connect(server, certificates)
            gone.send(CALL, {FUNCTION_NAME: "park", TUPLE: [60]})
            assert gone.request(PING).ok
            if is_polite:
                assert isinstance(gone.socket, ssl.SSLSocket)
                gone.socket.unwrap()
            gone.close()
        with connect(server, certificates) as client:
            assert client.request(PING).ok


class TestAddresses:
    def test_plain_and_encrypted_ones_stand_side_by_side(
        self, tmp_path: Path, certificates: Certificates
    ) -> None:
        options = [
            *("--listen", f"unix:{tmp_path}/plain.sock"),
            *("--listen", certificates.listen(f"unix:{tmp_path}/tls.sock")),
        ]
        with RunningServer(tmp_path, APPLICATIONS, options, listen=certificates.listen()) as server:
            server.process.wait_for(r"listening on unix:\S+/tls.sock, TLS")
            with (
                connect(server, certificates) as tls,
                IprotoClient(f"{tmp_path}/plain.sock", 0) as plain,
                IprotoClient(f"{tmp_path}/tls.sock", 0, tls=certificates.context()) as both,
            ):
                assert tls.request(PING).ok
                assert plain.request(PING).ok
                assert both.request(PING).ok
                assert [each.call("who").data[2] for each in (plain, both)] == ["unix/:", "unix/:"]

    def test_the_server_stops_while_clients_are_connected(
        self, start_server: StartServer, certificates: Certificates
    ) -> None:
        server = start_server(APPLICATIONS, listen=certificates.listen())
        with connect(server, certificates) as client:
            client.send(CALL, {FUNCTION_NAME: "park", TUPLE: [60]})
            assert client.request(PING).ok
            server.stop()
            assert client.receive().data == []
            assert client.closed_by_server()


class TestClientsThatMisbehave:
    @pytest.mark.parametrize("data", [b"\xce\x00\x00\x00\x05\x82\x00\x40\x01\x01", b"GET / HTTP/1.1\r\n\r\n"])
    def test_who_speaks_plain_hears_nothing_in_plain_and_harms_nobody(
        self, server: RunningServer, client: IprotoClient, data: bytes
    ) -> None:
        with socket.create_connection((server.host, server.port), timeout=20) as plain:
            plain.sendall(data)
            answer = b""
            try:
                while received := plain.recv(4096):
                    answer += received
            except ConnectionResetError:
                pass
        assert b"Tarantool" not in answer
        assert client.request(PING).ok

    def test_who_never_shakes_hands_is_let_go_and_never_had_a_session(
        self, tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(listener, "HANDSHAKE_TIMEOUT", 0.2)
        address = Address.parse_listen(certificates.listen())
        with ServerInProcess(
            tmp_path, [Application("none")], loop=uvloop.new_event_loop(), listen=(address,)
        ) as in_process:
            host, _, port = in_process.server.box.listen[0].rpartition(":")
            with (
                socket.create_connection((host, int(port)), timeout=20) as silent,
                socket.create_connection((host, int(port)), timeout=20) as half,
                IprotoClient(host, int(port), tls=certificates.context()) as good,
            ):
                half.sendall(b"\x16\x03\x01\x02\x00\x01")
                assert good.request(PING).ok
                assert len(in_process.server.state.connections) == 1
                assert silent.recv(1) == b""
                assert half.recv(1) == b""
                assert good.request(PING).ok


class TestCertificates:
    def test_who_shows_one_of_the_authority_gets_in(
        self, strict: RunningServer, certificates: Certificates
    ) -> None:
        with connect(strict, certificates, certificates.client) as client:
            assert client.request(PING).ok

    def test_who_shows_none_or_a_strangers_does_not(
        self, strict: RunningServer, certificates: Certificates
    ) -> None:
        for certificate in (None, certificates.stranger):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                connect(strict, certificates, certificate)

    def test_tarantool_python_shows_its_own(self, strict: RunningServer, certificates: Certificates) -> None:
        connection = with_python(
            strict,
            certificates,
            ssl_cert_file=str(certificates.client),
            ssl_key_file=str(certificates.key_of(certificates.client)),
        )
        assert connection.call("add", (1, 2)).data == [3]
        connection.close()


class TestPasswordsInClear:
    def test_id_tells_the_method(self, client: IprotoClient) -> None:
        assert client.request(ID, {0x54: 1, 0x55: []}).body[0x5B] == PAP

    @pytest.mark.parametrize("auth_type", [None, PAP])
    def test_tarantool_python_logs_in(
        self, server: RunningServer, certificates: Certificates, auth_type: str | None
    ) -> None:
        connection = with_python(server, certificates, user="alice", password="secret", auth_type=auth_type)
        assert connection.call("who").data[1] == "alice"
        connection.close()

    def test_the_method_changes_for_new_passwords_only(
        self, start_server: StartServer, certificates: Certificates
    ) -> None:
        server = start_server(APPLICATIONS, listen=certificates.listen())
        with connect(server, certificates) as client:
            assert client.call("box.cfg", {"auth_type": "md5"}).error_code == 59
            assert client.call("box.cfg", {"auth_type": PAP}).ok
            client.call("box.schema.user.create", "bob", {"password": "x"})
            for user, proof in (("alice", [PAP, "secret"]), ("bob", ["chap-sha1", bytes(20)])):
                assert client.request(AUTH, {USER_NAME: user, TUPLE: proof}).error_code == 47
            assert client.request(AUTH, {USER_NAME: "bob", TUPLE: [PAP, "x"]}).ok
            assert client.request(ID, {0x54: 1, 0x55: []}).body[0x5B] == PAP
        old = with_python(server, certificates, user="alice", password="secret", auth_type="chap-sha1")
        assert old.call("who").data[1] == "alice"
        old.close()

    def test_a_wrong_one_or_another_method_does_not_fit(self, client: IprotoClient) -> None:
        def failure(*proof: object) -> tuple[int, str]:
            return client.request(AUTH, {USER_NAME: "alice", TUPLE: list(proof)}).failure

        wrong = (47, "User not found or supplied credentials are invalid")
        assert failure(PAP, "wrong") == wrong
        assert failure(PAP, "") == wrong
        assert failure("chap-sha1", bytes(20)) == wrong
        assert failure(PAP, 5) == (20, "Invalid MsgPack - authentication request body")
        assert client.call("who").data[1] == "guest"

    def test_they_are_not_heard_where_others_can_read_them(self, tmp_path: Path) -> None:
        options = ["--auth-type", PAP, "--listen", f"unix:{tmp_path}/a.sock"]
        request = {USER_NAME: "alice", TUPLE: [PAP, "secret"]}
        with RunningServer(tmp_path, APPLICATIONS, options) as server:
            server.process.wait_for(r"listening on unix:")
            with IprotoClient(server.host, server.port) as tcp, IprotoClient(f"{tmp_path}/a.sock", 0) as unix:
                assert tcp.request(AUTH, request).failure == (
                    5,
                    f"Authentication method '{PAP}' does not support unencrypted connection",
                )
                assert unix.request(AUTH, request).ok
                assert unix.call("who").data[1] == "alice"


class TestReadingAgain:
    """What is in the files when the applications are reloaded counts from then on."""

    @pytest.fixture
    def own(self, tmp_path: Path) -> Certificates:
        """Certificates that the test may exchange."""
        own = Certificates(tmp_path)
        own.key_of(own.server).chmod(0o600)
        return own

    @staticmethod
    def serial_number(server: RunningServer) -> int:
        """The number of the certificate that the server shows."""
        shown = ssl.get_server_certificate((server.host, server.port))
        return x509.load_pem_x509_certificate(shown.encode()).serial_number

    def test_new_connections_are_shown_the_new_certificate_and_old_ones_last(
        self, start_server: StartServer, tmp_path: Path, own: Certificates
    ) -> None:
        server = start_server(APPLICATIONS, listen=own.listen())
        assert "can read or change it" not in server.process.output
        before = self.serial_number(server)
        with connect(server, own) as client:
            renewed = Certificates(tmp_path)
            renewed.key_of(renewed.server).chmod(0o644)
            assert self.serial_number(server) == before
            server.process.signal(signal.SIGHUP)
            server.process.wait_for("read the certificates again")
            after = x509.load_pem_x509_certificate(renewed.server.read_bytes()).serial_number
            assert self.serial_number(server) == after != before
            assert client.request(PING).ok
        with connect(server, renewed) as client:
            assert client.request(PING).ok
        assert f'{renewed.key_of(renewed.server)}" has mode 0644: every user' in server.process.output

    @pytest.mark.parametrize("spoilt", ["server.crt", "server.key"])
    def test_where_they_cannot_be_used_those_before_stay(
        self, start_server: StartServer, tmp_path: Path, own: Certificates, spoilt: str
    ) -> None:
        server = start_server(APPLICATIONS, listen=own.listen())
        before = self.serial_number(server)
        (tmp_path / spoilt).write_text("no certificate")
        with connect(server, own) as client:
            # That is no matter of the applications: they are reloaded.
            assert client.call("package.reload").data == [2]
        server.process.wait_for("cannot read the certificates again, the previous ones stay in force: listen")
        assert self.serial_number(server) == before
        with connect(server, own) as client:
            assert client.request(PING).ok

    def test_a_server_without_tls_reads_none(self, start_server: StartServer) -> None:
        server = start_server(APPLICATIONS)
        with IprotoClient.at(server.address) as client:
            assert client.call("package.reload").data == [2]
        assert "certificates" not in server.process.output


def test_files_that_cannot_be_used_keep_the_server_from_starting(
    tmp_path: Path, certificates: Certificates
) -> None:
    missing = tmp_path / "missing"
    listen = certificates.listen("127.0.0.1:3301", ssl_key_file=missing)
    done = run("serve", "--work-dir", tmp_path, "--listen", listen)
    reason = f'listen 127.0.0.1:3301: ssl_key_file "{missing}": No such file or directory'
    assert (done.status, done.errors) == (2, [reason])
