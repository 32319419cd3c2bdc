"""The Graphite sender over UDP, and its lines, times and pauses."""

from __future__ import annotations

import logging
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.config.address import Address
from iproto_server.metrics import graphite_sender
from iproto_server.metrics.graphite import GraphiteReporter, first_delay, format_line, metric_path, next_delay
from iproto_server.metrics.graphite_sender import (
    DATAGRAM_SIZE,
    MAX_BACKOFF,
    STABLE_SECONDS,
    TcpSender,
    UdpSender,
    backoff,
    pack_datagrams,
)
from tests.metrics.receiver import (
    Clock,
    Receiver,
    Run,
    Sleeps,
    connect,
    free_port,
    reporter,
    until,
)


class TestLines:
    def test_a_line_is_name_value_and_seconds(self) -> None:
        assert format_line("queue.stats", "total", 3, 1700000000) == b"queue.stats.total 3 1700000000\n"

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0, b"0"),
            (-5, b"-5"),
            (2**64, b"18446744073709551616"),
            (True, b"1"),
            (2.0, b"2"),
            (0.25, b"0.25"),
            (1e300, b"1e+300"),
        ],
    )
    def test_values(self, value: int | float, text: bytes) -> None:
        assert format_line("p", "n", value, 1) == b"p.n " + text + b" 1\n"

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    def test_what_graphite_cannot_store_is_left_out(self, value: float) -> None:
        assert format_line("p", "n", value, 1) == b""

    @pytest.mark.parametrize(
        ("name", "path"),
        [
            ("server.requests.call", b"p.server.requests.call"),
            ("two words", b"p.two_words"),
            ("a\nb 1 2\n", b"p.a_b_1_2_"),
            ("../../etc/passwd", b"p._._etc_passwd"),
            ("a..b.", b"p.a.b"),
            (".", b"p._"),
            ("", b"p._"),
            ("tag;dc=1", b"p.tag_dc_1"),
            ("очередь", b"p._______"),
            ("x" * 300, b"p." + b"x" * 200),
        ],
    )
    def test_names_cannot_break_the_line_or_leave_carbons_directory(self, name: str, path: bytes) -> None:
        assert metric_path("p", name) == path


class TestTimes:
    @pytest.mark.parametrize(("now", "delay"), [(100.0, 0.5), (100.25, 0.25), (100.5, 0.0), (100.75, 0.75)])
    def test_samples_are_taken_in_the_middle_of_a_second(self, now: float, delay: float) -> None:
        assert first_delay(now, 1.0) == delay

    def test_and_of_any_other_interval(self) -> None:
        assert first_delay(100.0, 10.0) == pytest.approx(5.0)

    @pytest.mark.parametrize(
        ("late", "delay"), [(0.0, 1.0), (0.01, 0.99), (-0.01, 1.01), (0.4, 0.6), (3.1, 0.9)]
    )
    def test_a_late_or_early_sample_does_not_move_the_next(self, late: float, delay: float) -> None:
        assert next_delay(100.5 + late, 1.0) == pytest.approx(delay)


class TestBackoff:
    def test_it_doubles_up_to_a_bound(self) -> None:
        longest = [backoff(attempt, lambda low, high: high) for attempt in range(10)]
        assert longest == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]
        assert backoff(100_000, lambda low, high: high) == MAX_BACKOFF

    def test_half_of_it_is_random(self) -> None:
        assert backoff(3, lambda low, high: low) == 2.0


class UdpReceiver:
    """A UDP receiver on a socket of its own; datagrams wait in the kernel until they are read."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self._socket.settimeout(10)
        self.address = Address("127.0.0.1", self._socket.getsockname()[1])

    def read(self) -> bytes:
        return self._socket.recv(65536)

    def close(self) -> None:
        self._socket.close()


class TestUdp:
    def test_lines_are_packed_into_datagrams_and_never_cut(self) -> None:
        lines = [b"x" * 99 + b"\n"] * 30 + [b"y" * 2000 + b"\n"] + [b"z\n"]
        datagrams = pack_datagrams(lines)
        assert b"".join(datagrams) == b"".join(lines)
        assert [len(datagram) for datagram in datagrams] == [DATAGRAM_SIZE, DATAGRAM_SIZE, 200, 2001, 2]
        assert all(datagram.endswith(b"\n") for datagram in datagrams)
        assert pack_datagrams([]) == []

    def test_samples_arrive(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver = Clock(), UdpReceiver()
            sender = UdpSender(receiver.address, clock=clock)
            sending = reporter(sender, clock)
            sending.start()
            await until(lambda: sender.connected)
            assert sending.tick()
            assert receiver.read() == (
                b"queue.stats.total 1 1700000000\nqueue.stats.ready 2 1700000000\n"
                b"queue.stats.waiting 0 1700000000\nqueue.stats.taken 1 1700000000\n"
            )
            await sending.stop()
            assert receiver.read().startswith(b"queue.stats.total 2 ")
            receiver.close()

        run(scenario())

    def test_a_dead_receiver_is_one_line_in_the_log_and_found_when_it_comes(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scenario() -> None:
            clock, port = Clock(), free_port(socket.SOCK_DGRAM)
            sender = UdpSender(Address("127.0.0.1", port), clock=clock)
            sending = reporter(sender, clock)
            sending.start()
            await until(lambda: sender.connected)
            for _ in range(20):
                sending.tick()
                clock.now += 1
            assert [record.message for record in caplog.records] == ["graphite receiver lost"]
            receiver = UdpReceiver(port)
            sending.tick()
            assert receiver.read().startswith(b"queue.stats.total 21 ")
            clock.now += STABLE_SECONDS
            assert sending.tick()
            assert caplog.records[-1].message == "graphite receiver is back"
            await sending.stop()
            receiver.close()

        caplog.set_level(logging.INFO, logger="iproto_server.graphite")
        run(scenario())

    def test_the_next_address_of_the_name_is_taken_when_one_refuses(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def scenario() -> None:
            receiver, dead = UdpReceiver(), free_port(socket.SOCK_DGRAM)

            async def resolve(address: Address, kind: socket.SocketKind) -> list[graphite_sender.Resolved]:
                return [
                    (socket.AF_INET, ("127.0.0.1", dead)),
                    (socket.AF_INET, ("127.0.0.1", receiver.address.port)),
                ]

            monkeypatch.setattr(graphite_sender, "resolve", resolve)
            sender = UdpSender(Address("carbon", 2003))
            sending = reporter(sender, Clock())
            sending.start()
            await until(lambda: sender.connected)
            for _ in range(3):
                sending.tick()
            assert receiver.read().startswith(b"queue.stats.total 2 ")
            assert receiver.read().startswith(b"queue.stats.total 3 ")
            await sending.stop()
            receiver.close()

        run(scenario())

    def test_the_name_is_looked_up_again(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        async def scenario() -> None:
            first, second, sleeps = UdpReceiver(), UdpReceiver(), Sleeps()
            addresses = [first.address.port]

            async def resolve(address: Address, kind: socket.SocketKind) -> list[graphite_sender.Resolved]:
                return [(socket.AF_INET, ("127.0.0.1", port)) for port in addresses]

            monkeypatch.setattr(graphite_sender, "resolve", resolve)
            sender = UdpSender(Address("carbon", 2003), sleep=sleeps)
            sending = reporter(sender, Clock())
            sending.start()
            await sleeps.asked_for(1)
            assert sending.tick()
            addresses[:] = [second.address.port]
            sleeps.let_pass()
            await sleeps.asked_for(2)
            assert sending.tick()
            assert first.read().startswith(b"queue.stats.total 1 ")
            assert second.read().startswith(b"queue.stats.total 2 ")
            await sending.stop()
            first.close()
            second.close()

        run(scenario())


def test_counters_that_raise_are_logged_once_and_cost_a_sample(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        working = False

        def collect() -> list[tuple[str, int | float]]:
            return [("x", 1 if working else 1 // 0)]

        receiver = Receiver()
        sender = TcpSender(receiver.address)
        sending = GraphiteReporter(
            Address("unused"), "tcp", "p", 3600.0, collect, clock=Clock(), sender=sender
        )
        sending.start()
        connection = await connect(receiver, sender)
        assert not sending.tick()
        assert not sending.tick()
        assert sending.dropped == 2
        assert [record.message for record in caplog.records] == ["collecting counters for graphite failed"]
        working = True
        assert sending.tick()
        assert await connection.read_lines(1) == [b"p.x 1 1700000000"]
        await sending.stop()
        connection.close()
        receiver.close()

    run(scenario())


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**64), 2**64))
def test_numbers_parse_back(value: float) -> None:
    _, text, _ = format_line("p", "depth", value, 1).split()
    assert (int(text) if isinstance(value, int) else float(text)) == value
