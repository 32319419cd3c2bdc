"""The HTTP server: health, limits, and clients that behave badly."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from iproto_server import Application
from iproto_server.config.address import Address
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.http import http_connection, pacing
from iproto_server.server.stats.readiness import Readiness
from iproto_server.storage.wal import WriteAheadLog
from tests.command_line import refused
from tests.config.certificates import Certificates
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.running_server import RunningServer
from tests.server.http.http_client import HTTP, TIMEOUT, http_port, metrics, request
from tests.server.in_process import ServerInProcess


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    return (*HTTP, "--log-level", "debug")


@pytest.fixture(scope="module")
def port(server: RunningServer) -> int:
    return http_port(server)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)


def answer_to(port: int, data: bytes) -> bytes:
    """Everything that the server sends until it closes the connection."""
    with closing(connected(port)) as client:
        client.sendall(data)
        return everything(client)


def everything(client: socket.socket) -> bytes:
    received = b""
    while True:
        try:
            piece = client.recv(65536)
        except ConnectionResetError:
            return received
        if not piece:
            return received
        received += piece


def test_it_is_alive_and_ready(port: int) -> None:
    alive, ready = request(port, "/health"), request(port, "/ready")
    assert (alive.status, json.loads(alive.text)) == (200, {"status": "alive"})
    assert (ready.status, json.loads(ready.text)) == (200, {"status": "ready"})
    assert alive.headers["content-type"] == "application/json"


def test_a_read_only_server_is_not_ready(start_server: StartServer) -> None:
    port = http_port(start_server(options=[*HTTP, "--read-only"]))
    ready = request(port, "/ready")
    assert (ready.status, json.loads(ready.text)) == (
        503,
        {"status": "not ready", "reason": "the server is read-only"},
    )
    assert request(port, "/health").status == 200


@pytest.mark.parametrize("path", ["/health", "/metrics", "/no/such/path"])
def test_pages_cannot_be_embedded_or_kept(port: int, path: str) -> None:
    headers = request(port, path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


@pytest.mark.parametrize(
    "path", ["/nosuch", "/metrics/", "/metrics/../etc/passwd", "/%2e%2e/x", "/health%00"]
)
def test_an_unknown_path(port: int, path: str) -> None:
    assert request(port, path).status in (404, 307)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
@pytest.mark.parametrize("path", ["/metrics", "/health", "/ready"])
def test_a_wrong_method(port: int, path: str, method: str) -> None:
    assert request(port, path, method).status == 405


def test_a_head_has_no_body(port: int) -> None:
    answer = request(port, "/health", "HEAD")
    assert (answer.status, answer.text) == (200, "")


def test_a_connection_stays_for_more_requests(port: int) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: a\r\n"
    received = answer_to(port, 2 * (head + b"\r\n") + head + b"Connection: close\r\n\r\n")
    assert received.count(b"HTTP/1.1 200 OK") == received.count(b'{"status":"alive"}') == 3


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",  # no Host
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100 + b"\r\n\r\n",  # TLS
        b"\xce\x00\x00\x00\x05\x82\x00\x40\x01\x01\r\n\r\n",  # IPROTO
        b"GET /" + b"x" * 24_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 24_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
    ],
)
def test_a_malformed_or_huge_request_ends_its_connection(
    port: int, server: RunningServer, data: bytes
) -> None:
    received = answer_to(port, data)
    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n") or received == b"", received
    assert request(port, "/health").status == 200
    assert " error " not in server.process.output


def test_headers_without_an_end_are_not_collected(port: int) -> None:
    with closing(connected(port)) as client:
        client.sendall(b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * (pacing.MAX_HEADERS // 6 + 1))
        assert everything(client).startswith(b"HTTP/1.1 400 ")


def test_a_body_is_not_wanted(port: int) -> None:
    head = b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000000\r\nConnection: close\r\n\r\n"
    assert answer_to(port, head).startswith(b"HTTP/1.1 405 ")


def test_a_websocket_is_not_spoken(port: int) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n\r\n"
    assert answer_to(port, head).startswith(b"HTTP/1.1 200 ")


def test_clients_that_are_slow_keep_no_others_away(start_server: StartServer) -> None:
    """The connection that has waited for its client the longest makes room, on its own address only."""
    server = start_server(options=[*HTTP, "--metrics-listen", "127.0.0.1:0"])
    port, of_metrics = http_port(server), http_port(server, "HTTP for metrics")
    with ExitStack() as clients:
        idle = [
            clients.enter_context(closing(connected(port))) for _ in range(http_connection.MAX_CONNECTIONS)
        ]
        for client in idle:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert client.recv(9) == b"HTTP/1.1 "
        scraped = metrics(of_metrics)
        assert scraped["iproto_server_http_connections_refused_total"] == {(): 0}
        slow = [clients.enter_context(closing(connected(port))) for _ in idle]
        for client in slow:
            client.sendall(b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
        for path in ("/health", "/ready", "/api/openapi.json"):
            assert request(port, path).status == 200
        # Clients of the database do not suffer from it.
        with IprotoClient.at(server.address) as other:
            assert other.request(64).ok
        scraped = metrics(of_metrics)
        assert scraped["iproto_server_http_connections_refused_total"][()] >= len(idle)
        assert everything(idle[0]).endswith(b'{"status":"alive"}')  # and closed
        assert everything(slow[0]).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert server.process.output.count("refused an HTTP connection") == 1


def test_the_half_that_sends_may_be_closed_before_the_answers(port: int) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
    with closing(connected(port)) as client:
        client.sendall(3 * head)
        client.shutdown(socket.SHUT_WR)
        assert everything(client).count(b'{"status":"alive"}') == 3
    with closing(connected(port)) as client:
        client.sendall(head[:-1])
        client.shutdown(socket.SHUT_WR)
        assert everything(client) == b""


@pytest.mark.parametrize(
    ("data", "then"),
    [
        (b"GET /metrics HTTP/1.0\r\n\r\n", b"nonsense\r\n\r\n"),
        (b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"nonsense\r\n\r\n"),
        (b"POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", b"zz\r\n"),
        (b"POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"x" * 100_000),
        (b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * pacing.MAX_HEADER_LINES, b"\r\n"),
    ],
)
def test_nonsense_after_a_request_leaves_no_trace(
    port: int, server: RunningServer, data: bytes, then: bytes
) -> None:
    with closing(connected(port)) as client:
        client.sendall(data)
        first = client.recv(10) if not data.startswith(b"GET /health") else b""
        with suppress(OSError):  # closed already
            client.sendall(then)
        received = first + everything(client)
    assert received.count(b"HTTP/1.1 ") == 1
    assert request(port, "/health").status == 200
    assert "Traceback" not in server.process.output
    assert " error " not in server.process.output


def test_tls(start_server: StartServer, tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    key = files.server.with_suffix(".key")
    address = f"127.0.0.1:0?transport=ssl&ssl_key_file={key}&ssl_cert_file={files.server}"
    server = start_server(options=["--http", address])
    port = http_port(server)
    context = ssl.create_default_context(cafile=files.authority)
    context.check_hostname = False
    assert request(port, "/ready", tls=context).status == 200
    assert answer_to(port, b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n") == b""


def test_a_unix_socket(start_server: StartServer, tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    server = start_server(options=["--http", f"unix:{path}?mode=0600"])
    server.process.wait_for("listening on unix:.*, HTTP$")
    with closing(socket.socket(socket.AF_UNIX)) as client:
        client.settimeout(TIMEOUT)
        client.connect(str(path))
        client.sendall(b"GET /ready HTTP/1.0\r\n\r\n")
        assert everything(client).endswith(b'{"status":"ready"}')
    server.stop()
    assert not path.exists()


def test_a_stop_closes_idle_connections_and_ends(start_server: StartServer) -> None:
    server = start_server(options=HTTP)
    port = http_port(server)
    with (
        closing(connected(port)) as idle,
        closing(connected(port)) as silent,
        closing(connected(port)) as half,
    ):
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        received = b""
        while not received.endswith(b'{"status":"alive"}'):
            received += idle.recv(65536)
        half.sendall(b"GET /hea")
        server.stop()
        for client in (idle, silent, half):
            assert everything(client) == b""


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--http", "0.0.0.0:0"], "http 0.0.0.0:0: other machines can reach it, so it needs TLS"),
        (["--http", "127.0.0.1:0", "--http-behind-proxy"], "other machines can reach the metrics"),
        (["--metrics-token-file", "missing"], "missing: No such file or directory"),
        (["--metrics-token-file", "short"], "has no token: at least 16 letters"),
        (["--metrics-token-file", "lines"], "has no token: at least 16 letters"),
        (["--metrics-token-file", "bytes"], "is not a text"),
        (["--http", "127.0.0.1:0?transport=ssl&ssl_key_file=a&ssl_cert_file=b"], 'ssl_key_file "'),
    ],
)
def test_what_is_refused_at_the_start(tmp_path: Path, options: Sequence[str], refusal: str) -> None:
    (tmp_path / "short").write_text("0123456789\n")
    (tmp_path / "lines").write_text("0123456789abcdef\n0123456789abcdef\n")
    (tmp_path / "bytes").write_bytes(b"\xff" * 20)
    told = refused(tmp_path, *options, status=2)
    assert refusal in told
    assert "0123456789" not in told


def test_an_address_in_use_is_refused(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as used:
        address = f"127.0.0.1:{used.getsockname()[1]}"
        told = refused(tmp_path / "new", "--http", address)
    assert told == f"cannot listen on {address}: Address already in use"
    assert not (tmp_path / "new").exists()


# -- deadlines, with the server in this process --


@pytest.fixture
def in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerInProcess]:
    """A server whose HTTP clients have little time."""
    for phase in http_connection._TIMEOUTS:
        monkeypatch.setitem(http_connection._TIMEOUTS, phase, 0.2)
    with ServerInProcess(tmp_path, [APPLICATION], http=Address("127.0.0.1", 0)) as server:
        yield server


def port_of(server: ServerInProcess) -> int:
    *_, listener = server.server.listeners
    return listener.address.port


APPLICATION = Application("test")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET /hea",
        b"GET /health HTTP/1.1\r\nHost: a\r\n",
        b"POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\na",
        b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n",  # idle after that
        b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /hea",
    ],
)
def test_a_slow_client_is_disconnected(in_process: ServerInProcess, data: bytes) -> None:
    answer_to(port_of(in_process), data)  # ends, because the server closes the connection


def test_a_client_that_does_not_read_is_disconnected(in_process: ServerInProcess) -> None:
    port = port_of(in_process)
    request_text = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
    with closing(connected(port)) as client:
        client.settimeout(TIMEOUT)
        # The server reads no further while it cannot send, and then cuts the connection.
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(1_000_000):
                client.sendall(request_text)
    assert request(port, "/health").status == 200


def test_a_stop_during_a_response(in_process: ServerInProcess) -> None:
    """The page that is being written is sent before the server stops."""
    with closing(connected(port_of(in_process))) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        first = client.recv(100)
        assert first.startswith(b"HTTP/1.1 200 ")


# -- readiness --


def test_a_log_that_cannot_be_written_is_not_ready_for_a_while() -> None:
    """Afterwards clients may try: only a change shows whether the log is writable again."""
    now = [100.0]
    log = SimpleNamespace(failures=2, is_failing=False)
    state = SimpleNamespace(is_stopping=False, box=SimpleNamespace(is_read_only=False))
    readiness = Readiness(cast(ServerState, state), cast(WriteAheadLog, log), lambda: now[0])
    assert readiness.problem() is None
    log.failures, log.is_failing = 3, True
    for now[0] in (100.0, 109.9):
        assert readiness.problem() == "the log cannot be written"
    now[0] = 110.0
    assert readiness.problem() is None
    log.failures = 4
    assert readiness.problem() == "the log cannot be written"
    log.is_failing = False
    assert readiness.problem() is None
    state.is_stopping = True
    assert readiness.problem() == "the server is stopping"
