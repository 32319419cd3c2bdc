"""The server's own counters, as Graphite gets them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from iproto_server.protocol.constants import Key, RequestType
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient, frame
from tests.server.conftest import APPLICATION

INTERVAL = "0.1"


class Receiver:
    """Takes Graphite's lines over UDP, a sample in a datagram or more."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(10.0)
        self.address = "127.0.0.1:{1}".format(*self._socket.getsockname())

    def until(self, **wanted: float) -> dict[str, float]:
        """Wait for a sample that has these counters (dots written as "__"), and answer all of it."""
        expected = {name.replace("__", "."): value for name, value in wanted.items()}
        return next(sample for sample in self._samples() if sample.items() >= expected.items())

    def until_told(self, *names: str) -> dict[str, float]:
        """Wait for a sample that has these counters, whatever they are."""
        return next(sample for sample in self._samples() if sample.keys() >= set(names))

    def _samples(self) -> Iterator[dict[str, float]]:
        """What has been told since the first datagram that is waiting, after each."""
        sample: dict[str, float] = {}
        while True:
            for line in self._socket.recv(65536).decode().splitlines():
                name, value, _ = line.split(" ")
                sample[name.removeprefix("test.")] = float(value)
            yield sample

    def close(self) -> None:
        """Close."""
        self._socket.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def options(receiver: Receiver) -> list[str]:
    protocol = ["--graphite-protocol", "udp", "--graphite-prefix", "test"]
    return ["--graphite", receiver.address, *protocol, "--graphite-interval", INTERVAL]


@pytest.fixture
def address(start_server: StartServer, receiver: Receiver) -> str:
    return start_server([APPLICATION], options(receiver)).address


def test_requests_are_counted_by_type_and_errors_among_them(address: str, receiver: Receiver) -> None:
    with IprotoClient.at(address) as client:
        for _ in range(3):
            client.request(RequestType.PING)
        client.call("echo")
        client.call("no.such.procedure")
        client.request(99)
        client.request(RequestType.SELECT, {Key.SPACE_ID: 280, Key.LIMIT: 1, Key.KEY: []})
        receiver.until(
            server__requests__ping=3,
            server__requests__call=2,
            server__requests__select=1,
            server__requests__unknown=1,
            server__errors=2,
        )


def test_connections_that_are_there_and_that_ever_came(address: str, receiver: Receiver) -> None:
    with IprotoClient.at(address), IprotoClient.at(address):
        receiver.until(server__connections__current=2, server__connections__accepted=2)
    receiver.until(server__connections__current=0, server__connections__accepted=2)


def test_bytes_in_both_directions(address: str, receiver: Receiver) -> None:
    request = frame(RequestType.CALL, {Key.FUNCTION_NAME: "big", Key.TUPLE: [10_000]}, sync=1)
    with IprotoClient.at(address) as client:
        client.send_bytes(request)
        response = client.receive()
        sent = 5 + response.header_size + len(b"\x81\x30\xdd\x00\x00\x00\x01\xda\x00\x00") + 10_000
        receiver.until(server__bytes__received=len(request), server__bytes__sent=sent)


def test_rows_that_went_to_the_log(address: str, receiver: Receiver) -> None:
    with IprotoClient.at(address) as client:
        receiver.until(server__connections__current=1)
        before = receiver.until_told("server.wal.rows")["server.wal.rows"]  # it may be in the next datagram
        for number in range(5):
            client.call("box.space.log:replace", [number, "text"])
        client.call("refuse")  # what is undone is not logged
        receiver.until(server__wal__rows=before + 5)


def test_requests_that_wait(address: str, receiver: Receiver) -> None:
    with IprotoClient.at(address) as client:
        for _ in range(4):
            client.send(RequestType.CALL, {Key.FUNCTION_NAME: "park", Key.TUPLE: [60]})
        receiver.until(server__requests_in_flight=4)
    receiver.until(server__requests_in_flight=0)


def test_loop_lag_and_dropped_samples_are_told(address: str, receiver: Receiver) -> None:
    dropped = "server.graphite.dropped"
    first = receiver.until_told(dropped, "server.loop_lag.max", "server.loop_lag.last")
    assert first["server.loop_lag.max"] >= first["server.loop_lag.last"] >= 0
    # A sample is dropped if it is taken before the receiver's address was looked up, and none behind that.
    assert receiver.until_told(dropped)[dropped] == first[dropped]


def test_an_application_whose_counters_fail_costs_nothing_but_its_counters(
    start_server: StartServer, receiver: Receiver
) -> None:
    server = start_server(["tests.server.faults.hostile_application:app"], options(receiver))
    receiver.until(hostile=1)
    with IprotoClient.at(server.address) as client:
        client.call("fault.set", "metrics")
        receiver.until(server__requests__call=1)
        client.call("seen")
        receiver.until(server__requests__call=2)
    assert server.process.output.count("the counters of hostile failed") == 1
