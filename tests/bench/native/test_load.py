"""The hot loop in C: what it sends and counts, and what it says about servers that misbehave."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread

import pytest

from bench import native
from bench.native.load import Framing, NativeLoad

pytestmark = pytest.mark.process  # the first load runs the compiler

ANSWER = b"\xce\0\0\0\x03abc"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's and a server's socket."""
    client, server = socket.socketpair()
    with client, server:
        yield client, server


def run(
    client: socket.socket, requests: Sequence[bytes], in_flight: int = 2, timeout: float = 30.0
) -> tuple[bytes, list[tuple[float, int]]]:
    """Send requests on one connection. Returns: the answers and latencies."""
    load = NativeLoad(Framing.IPROTO, [client.fileno()], in_flight)
    try:
        bounds = [0]
        for request in requests:
            bounds.append(bounds[-1] + len(request))
        seconds, cpu_seconds = load.run([b"".join(requests)], [bounds], timeout)
        assert seconds > 0
        assert cpu_seconds > 0
        return load.answers(0), load.latencies()
    finally:
        load.close()


def test_no_more_requests_are_in_flight_than_allowed(pair: tuple[socket.socket, socket.socket]) -> None:
    client, server = pair
    seen: list[tuple[bytes, bool]] = []

    def serve() -> None:
        for _ in range(3):
            request = server.recv(4, socket.MSG_WAITALL)
            seen.append((request, bool(select.select([server], [], [], 0)[0])))
            server.sendall(ANSWER)

    thread = Thread(target=serve)
    thread.start()
    answers, latencies = run(client, [b"1--2", b"2--3", b"3--4"], in_flight=1)
    thread.join()
    assert answers == ANSWER * 3
    assert [count for _, count in latencies] == [1] * 3
    assert seen == [(b"1--2", False), (b"2--3", False), (b"3--4", False)]


def test_a_request_is_sent_as_the_server_takes_it(pair: tuple[socket.socket, socket.socket]) -> None:
    # Far more than the system keeps for a connection.
    client, server = pair
    request = bytes(range(256)) * 2**13
    received = bytearray()

    def serve() -> None:
        while len(received) < 4 * len(request):
            received.extend(server.recv(2**16))
        server.sendall(ANSWER * 4)

    thread = Thread(target=serve)
    thread.start()
    answers, latencies = run(client, [request] * 4, in_flight=4)
    thread.join()
    assert bytes(received) == request * 4
    assert answers == ANSWER * 4
    assert sum(count for _, count in latencies) == 4


def test_nothing_to_send_is_done_at_once(pair: tuple[socket.socket, socket.socket]) -> None:
    assert run(pair[0], []) == (b"", [])


def test_a_server_that_does_not_answer_is_a_failure(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].sendall(ANSWER)
    with pytest.raises(RuntimeError, match=r"^2 of 3 requests were not answered$"):
        run(pair[0], [b"1", b"2", b"3"], timeout=0.01)


def test_a_closed_connection_is_a_failure(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].close()
    with pytest.raises(ConnectionError, match="the server has closed the connection"):
        run(pair[0], [b"1"])


@pytest.mark.parametrize("answers", [b"\x81\0\0\0\0", ANSWER * 2])
def test_malformed_and_unasked_answers_are_failures(
    answers: bytes, pair: tuple[socket.socket, socket.socket]
) -> None:
    pair[1].sendall(answers)
    with pytest.raises(ValueError, match="a malformed answer, or more answers than requests"):
        run(pair[0], [b"1"])


def test_a_closed_socket_is_refused() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        NativeLoad(Framing.IPROTO, [-1], 1)


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BUILT", tmp_path)
    monkeypatch.setenv("CC", "no-such-compiler -O9")
    with pytest.raises(RuntimeError, match=r"need a C compiler, and there is none \(no-such-compiler\)"):
        native.program("echo")


def test_a_failing_compiler_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BUILT", tmp_path)
    monkeypatch.setenv("CC", "cc -include no-such-header.h")
    with pytest.raises(RuntimeError, match=r"(?s)cannot build .*echo\.c:.*no-such-header\.h"):
        native.program("echo")
    assert list(tmp_path.iterdir()) == []


def test_the_same_source_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BUILT", tmp_path)
    built = native.program("echo")
    before = built.stat().st_mtime_ns
    assert native.program("echo") == built
    assert built.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == [built]
