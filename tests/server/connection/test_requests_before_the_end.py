"""Requests that arrive before a client's end are carried out, and the session ends after them."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from iproto_server.config.address import Address
from iproto_server.server.connection import connection as module
from iproto_server.server.connection import fair_scheduler
from tests.config.certificates import Certificates
from tests.conftest import StartServer
from tests.iproto_client import (
    BEGIN,
    CALL,
    COMMIT,
    FUNCTION_NAME,
    REQUEST_TYPE,
    STREAM_ID,
    SYNC,
    TUPLE,
    IprotoClient,
    frame,
)
from tests.protocol.tarantool15.box15_client import CALL as CALL_15
from tests.protocol.tarantool15.box15_client import Client15, call_body, u32
from tests.protocol.tarantool15.box15_client import frame as frame_15
from tests.server.connection.producers import Producers
from tests.server.connection.service import (
    NET_MSG_MAX,
    Client,
    Service,
    call,
    close,
    half_close,
    reset,
    serve,
    shut,
)

ENDS = [shut, reset, half_close]
KINDS = ["uvloop", "asyncio", "unix", "tls", "tls on asyncio", "1.5"]


class Served:
    """A service on a kind of transport.

    Parameters:
        service: the service.
        connect: connects to it.
        step: makes a request that calls `step`.
    """

    def __init__(self, service: Service, connect: Callable[[], Client], step: Callable[[int], bytes]) -> None:
        self.service = service
        self.connect = connect
        self.step = step

    def steps(self, *numbers: int) -> bytes:
        return b"".join(map(self.step, numbers))


def step(number: int) -> bytes:
    return frame(CALL, {FUNCTION_NAME: "step", TUPLE: [number]}, sync=number)


def step_15(number: int) -> bytes:
    return frame_15(CALL_15, call_body(b"step", u32(number)), number)


@pytest.fixture(params=KINDS)
def served(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    kind: str = request.param
    options: dict[str, Any] = {}
    places = [Address("127.0.0.1")]
    tls: ssl.SSLContext | None = None
    if kind.startswith("tls"):
        certificates = Certificates(tmp_path)
        tls = certificates.context()
        places.append(Address.parse_listen(certificates.listen()))
    if kind == "unix":
        places.append(Address(path=str(tmp_path / "socket")))
    if kind == "1.5":
        options["listen_1_5"] = (Address("127.0.0.1"),)
    with serve(
        tmp_path, "asyncio" if kind.endswith("asyncio") else "uvloop", listen=tuple(places), **options
    ) as service:
        port = list(service.running.server.listeners)[-1].address.port

        def connect() -> Client:
            if kind == "1.5":
                return Client15("127.0.0.1", port)
            if kind == "unix":
                return IprotoClient(str(tmp_path / "socket"), 0)
            return IprotoClient("127.0.0.1", port, tls=tls)

        yield Served(service, connect, step_15 if kind == "1.5" else step)


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many requests that come together, one is carried out in each iteration of the loop."""
    monkeypatch.setattr(fair_scheduler, "SHARE", 0.0)
    monkeypatch.setattr(fair_scheduler, "SHARE_ALONE", 0.0)


def send(client: Client, data: bytes) -> None:
    client.socket.sendall(data)


def read_to_the_end(client: Client, end: Callable[[Client], None]) -> None:
    """Read all answers, if anybody does."""
    if end is half_close:
        while client.socket.recv(65536):
            """There is more."""


def numbers(service: Service) -> list[int]:
    return [number for number, _ in service.steps]


@pytest.mark.usefixtures("one_at_a_time")
@pytest.mark.parametrize("end", ENDS)
class TestAllTransports:
    def test_what_waited_for_its_turn_is_carried_out_and_then_the_session_ends(
        self, served: Served, end: Callable[[Client], None]
    ) -> None:
        service, client = served.service, served.connect()
        ended: list[int] = []
        service.ended = lambda: ended.append(len(service.steps))
        send(client, served.steps(*range(1, 201)))
        service.until(lambda: len(service.steps) > 0)
        end(client)
        read_to_the_end(client, end)
        assert service.gone.acquire(timeout=20)
        assert numbers(service) == list(range(1, 201))
        assert ended == [200]
        close(client)

    def test_what_is_in_the_systems_buffers_is_read_and_carried_out(
        self, served: Served, end: Callable[[Client], None]
    ) -> None:
        service, client = served.service, served.connect()
        send(client, served.steps(0))
        service.barrier.wait(20)
        for first in range(1, 601, 100):
            send(client, served.steps(*range(first, first + 100)))
        end(client)
        service.barrier.wait(20)
        read_to_the_end(client, end)
        assert service.gone.acquire(timeout=20)
        assert numbers(service) == [0, *range(1, 601)]
        close(client)

    def test_what_follows_more_calls_than_may_be_in_flight_is_carried_out(
        self, served: Served, end: Callable[[Client], None]
    ) -> None:
        service, client = served.service, served.connect()
        name = b"wait" if isinstance(client, Client15) else "wait"
        wait = (
            frame_15(CALL_15, call_body(name), 7)
            if isinstance(name, bytes)
            else frame(CALL, {FUNCTION_NAME: name, TUPLE: []}, sync=7)
        )
        send(client, served.steps(0))
        service.barrier.wait(20)
        send(client, b"".join(wait * NET_MSG_MAX + served.step(number) for number in range(1, 51)))
        end(client)
        service.barrier.wait(20)
        read_to_the_end(client, end)
        assert service.gone.acquire(timeout=20)
        assert numbers(service) == [0, *range(1, 51)]
        assert service.waiting() == 0
        close(client)


class TestUnreadAnswers:
    def test_requests_behind_answers_that_nobody_reads_are_carried_out_after_a_reset(
        self, tmp_path: Path
    ) -> None:
        with serve(tmp_path, write_high_water=65536) as service:
            client = IprotoClient.at(service.running.server.box.listen[0], receive_buffer=4096)
            for _ in range(20):
                call(client, "big", 1_000_000)
            client.send_bytes(b"".join(map(step, range(1, 101))))
            service.until_held()
            reset(client)
            assert service.gone.acquire(timeout=20)
            assert numbers(service) == list(range(1, 101))

    def test_they_are_when_the_client_is_closed_as_idle(self, tmp_path: Path) -> None:
        with serve(tmp_path, write_high_water=65536, idle_timeout=3600.0) as service:
            client = IprotoClient.at(service.running.server.box.listen[0], receive_buffer=4096)
            for _ in range(20):
                call(client, "big", 1_000_000)
            client.send_bytes(b"".join(map(step, range(1, 101))))
            service.until_held()
            state = service.running.server.state

            hours = itertools.count()

            def is_closed() -> bool:
                state.idle.check(next(hours) * 3601.0)
                return state.idle.closed == 1

            service.until(is_closed)
            assert service.gone.acquire(timeout=20)
            assert numbers(service) == list(range(1, 101))
            assert state.idle.closed == 1

    def test_no_descriptor_is_kept(self, tmp_path: Path) -> None:
        with serve(tmp_path) as service:
            descriptors = len(list(Path("/proc/self/fd").iterdir()))
            for _ in range(10):
                client = service.running.connect()
                call(client, "step", 0)
                service.barrier.wait(20)
                client.send_bytes(b"".join(map(step, range(1, 51))))
                reset(client)
                service.barrier.wait(20)
                assert service.gone.acquire(timeout=20)
            assert len(service.steps) == 510
            assert len(list(Path("/proc/self/fd").iterdir())) < descriptors + 5


@pytest.mark.usefixtures("one_at_a_time")
class TestStreams:
    @staticmethod
    def request(kind: int, body: dict[int, Any] | None = None) -> bytes:
        header: bytes = msgpack.packb({REQUEST_TYPE: kind, SYNC: 1, STREAM_ID: 1})
        packed: bytes = header + msgpack.packb(body or {})
        return b"\xce" + len(packed).to_bytes(4, "big") + packed

    def called(self, name: str, *arguments: object) -> bytes:
        return self.request(CALL, {FUNCTION_NAME: name, TUPLE: list(arguments)})

    @pytest.mark.parametrize("end", ENDS)
    @pytest.mark.parametrize("waits", ["wait", "hours"])
    def test_requests_behind_a_call_that_waits_are_carried_out(
        self, tmp_path: Path, end: Callable[[Client], None], waits: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "END_GRACE", 0.01)
        with serve(tmp_path) as service:
            client = service.running.connect()
            client.send_bytes(
                self.called(waits) + b"".join(self.called("step", number) for number in range(1, 4))
            )
            service.until(lambda: service.running.server.state.in_flight == 4)
            end(client)
            if waits == "hours":
                service.until(lambda: service.running.server.state.admission.connections == 1)
                assert service.steps == []
                service.end_work()
            assert service.gone.acquire(timeout=20)
            assert numbers(service) == [1, 2, 3]
            assert service.running.server.state.in_flight == 0
            assert service.running.server.state.parked == 0
            close(client)

    def test_a_transaction_is_committed_if_its_commit_had_arrived_and_undone_if_not(
        self, tmp_path: Path
    ) -> None:
        with serve(tmp_path) as service:
            client = service.running.connect()
            client.send_bytes(
                self.request(BEGIN)
                + self.called("keep", 1)
                + self.request(COMMIT)
                + self.request(BEGIN)
                + self.called("keep", 2)
                + b"".join(map(step, range(1, 20)))
            )
            reset(client)
            assert service.gone.acquire(timeout=20)
            assert len(service.steps) == 19
            assert service.running.connect().call("kept").data == [[[1]]]


@pytest.mark.usefixtures("one_at_a_time")
class TestTheServersStop:
    def test_what_has_been_received_is_carried_out_and_answered(self, tmp_path: Path) -> None:
        with serve(tmp_path) as service:
            client = service.running.connect()
            client.send_bytes(b"".join(map(step, range(1, 101))))
            service.until(lambda: len(service.steps) > 0)
            service.running.stop()
            assert [client.receive().sync for _ in range(100)] == list(range(1, 101))
            assert client.closed_by_server()
            assert numbers(service) == list(range(1, 101))


@pytest.mark.parametrize("name", ["tutorial", "legacy", "tubes"])
def test_a_take_among_the_requests_of_a_client_that_is_gone_keeps_no_task(
    start_server: StartServer, name: str
) -> None:
    put, take, arguments = {
        "tutorial": (("queue.put", "task"), "queue.take", []),
        "legacy": (("queue.put", 0, "t", 0, 0, 3600, 0, "task"), "queue.take", [0, "t"]),
        "tubes": (("queue.tube.t:put", "task"), "queue.tube.t:take", []),
    }[name]
    server = start_server([f"queue_lua_compat.{name}:app"])
    with IprotoClient.at(server.address) as other:
        if name == "tubes":
            assert other.call("queue.create_tube", "t", "fifo").ok
        client = IprotoClient.at(server.address)
        puts = frame(CALL, {FUNCTION_NAME: put[0], TUPLE: list(put[1:])}, sync=1) * 20
        takes = frame(CALL, {FUNCTION_NAME: take, TUPLE: [*arguments, 0]}, sync=2) * 10
        client.send_bytes(puts + takes + puts)
        client.close()
        for _ in range(40):
            # Those that the client has taken are given back at its end.
            assert other.call(take, *arguments, 20).data != []
        assert other.call(take, *arguments, 0).data == []


@pytest.mark.parametrize("kind", ["tcp", "unix", "tls"])
def test_producers_that_do_not_read_lose_nothing(tmp_path: Path, kind: str) -> None:
    """`python -m tests.server.connection.producers` does it with a thousand."""
    with Producers(tmp_path, kind) as producers:
        assert producers.run(30, 50) == 30 * 50
