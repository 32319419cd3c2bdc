"""Counters reach Graphite, and no receiver, however bad, harms the server."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.config.address import Address
from iproto_server.metrics import graphite_sender
from iproto_server.metrics.graphite import GraphiteReporter, first_delay, format_line, metric_path, next_delay
from iproto_server.metrics.graphite_sender import (
    BUFFER_LIMIT,
    DATAGRAM_SIZE,
    MAX_BACKOFF,
    STABLE_SECONDS,
    STALL_SECONDS,
    TcpSender,
    UdpSender,
    backoff,
    pack_datagrams,
)

LINE = re.compile(rb"queue\.stats\.[a-z0-9_.]+ [0-9]+ 17000[0-9]+\n")

Run = Callable[[Awaitable[None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario on each kind of loop."""

    def start(scenario: Awaitable[None]) -> None:
        async def limited() -> None:
            async with asyncio.timeout(30):
                await scenario

        with asyncio.Runner(
            loop_factory=uvloop.new_event_loop if request.param == "uvloop" else None
        ) as runner:
            runner.run(limited())

    return start


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that another task or the kernel is about to bring."""
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came")


class Clock:
    """A clock that stands until it is moved; it serves as the wall clock and as the monotonic one."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Sleeps:
    """Stands in for the waits between attempts: notes them, and lets each pass when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._gate = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self._gate.acquire()

    async def asked_for(self, count: int) -> None:
        """Wait until a wait has begun for the count-th time."""
        await until(lambda: len(self.asked) == count)

    def let_pass(self, count: int = 1) -> None:
        for _ in range(count):
            self._gate.release()


class Receiver:
    """A TCP receiver that accepts, reads and closes only when the test says so."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Little room in the kernel, so that it is soon noticed when nobody reads.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen()
        self._socket.setblocking(False)
        self.address = Address("127.0.0.1", self._socket.getsockname()[1])

    async def accept(self) -> ReceivedConnection:
        sock, _ = await asyncio.get_running_loop().sock_accept(self._socket)
        sock.setblocking(False)
        return ReceivedConnection(sock)

    def close(self) -> None:
        self._socket.close()


class ReceivedConnection:
    """The receiver's end of a connection, and what it has read so far."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.data = b""

    async def read(self) -> bool:
        """Read something; False at the end."""
        chunk = await asyncio.get_running_loop().sock_recv(self._socket, 65536)
        self.data += chunk
        return bool(chunk)

    async def read_lines(self, count: int) -> list[bytes]:
        """Read until there are this many lines in all."""
        while self.data.count(b"\n") < count:
            assert await self.read(), "the connection was closed"
        return self.data.splitlines()

    async def read_to_end(self) -> bytes:
        while await self.read():
            pass
        return self.data

    def reset(self) -> None:
        """Close so that the other end gets "connection reset"."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        self._socket.close()


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Counters:
    """The queue's four counters, and as many others as a test wants."""

    def __init__(self, more: int = 0) -> None:
        self.total = 0
        self.more = more

    def __call__(self) -> Iterator[tuple[str, int | float]]:
        self.total += 1
        yield from (("total", self.total), ("ready", 2), ("waiting", 0), ("taken", 1))
        yield from ((f"counter{number}", number) for number in range(self.more))


def reporter(
    sender: TcpSender | UdpSender, clock: Clock, counters: Counters | None = None
) -> GraphiteReporter:
    """A reporter whose samples a test takes itself, with `tick`."""
    return GraphiteReporter(
        Address("unused"), "tcp", "queue.stats", 3600.0, counters or Counters(), clock=clock, sender=sender
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


async def connect(receiver: Receiver, sender: TcpSender) -> ReceivedConnection:
    """Wait until both ends know that they are connected."""
    connection = await receiver.accept()
    await until(lambda: sender.connected)
    return connection


async def fill(sending: GraphiteReporter) -> None:
    """Take samples until the connection has no room for one more."""
    for _ in range(10_000):
        if not sending.tick():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never filled up")


class TestTcp:
    def test_samples_arrive_whole_and_in_order_over_one_connection(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver = Clock(), Receiver()
            sender = TcpSender(receiver.address, clock=clock)
            sending = reporter(sender, clock)
            sending.start()
            connection = await connect(receiver, sender)
            for _ in range(3):
                assert sending.tick()
                clock.now += 1
            lines = await connection.read_lines(12)
            assert lines[:5] == [
                b"queue.stats.total 1 1700000000",
                b"queue.stats.ready 2 1700000000",
                b"queue.stats.waiting 0 1700000000",
                b"queue.stats.taken 1 1700000000",
                b"queue.stats.total 2 1700000001",
            ]
            assert (sending.sent, sending.dropped) == (3, 0)
            await sending.stop()
            connection.close()
            receiver.close()

        run(scenario())

    def test_the_timer_takes_samples_by_itself(self, run: Run) -> None:
        async def scenario() -> None:
            receiver = Receiver()
            sending = GraphiteReporter(receiver.address, "tcp", "p", 0.1, lambda: [("x", 1)])
            sending.start()
            connection = await receiver.accept()
            await connection.read_lines(2)
            await sending.stop()
            connection.close()
            receiver.close()

        run(scenario())

    def test_a_dead_receiver_costs_samples_only_and_is_found_when_it_comes(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scenario() -> None:
            clock, sleeps, port = Clock(), Sleeps(), free_port()
            sender = TcpSender(Address("127.0.0.1", port), sleep=sleeps, clock=clock)
            sending = reporter(sender, clock)
            sending.start()
            for attempt in range(8):
                await sleeps.asked_for(attempt + 1)
                assert not sending.tick()
                sleeps.let_pass()
            await sleeps.asked_for(9)
            assert all(0.5 * 2**n / 2 <= asked <= 0.5 * 2**n for n, asked in enumerate(sleeps.asked[:6]))
            assert all(MAX_BACKOFF / 2 <= asked <= MAX_BACKOFF for asked in sleeps.asked[6:])
            assert (sending.sent, sending.dropped) == (0, 8)
            assert [record.message for record in caplog.records] == ["graphite receiver lost"]
            receiver = Receiver(port)
            sleeps.let_pass()
            connection = await connect(receiver, sender)
            clock.now += STABLE_SECONDS
            assert sending.tick()
            assert caplog.records[-1].message == "graphite receiver is back"
            # The samples that nobody was there for are gone, not kept.
            assert (await connection.read_lines(4))[0].startswith(b"queue.stats.total 9 ")
            await sending.stop()
            connection.close()
            receiver.close()

        caplog.set_level(logging.INFO, logger="iproto_server.graphite")
        run(scenario())

    def test_a_flapping_receiver_never_gets_half_a_line_first(
        self, run: Run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scenario() -> None:
            clock, receiver, sleeps = Clock(), Receiver(), Sleeps()
            sender = TcpSender(receiver.address, sleep=sleeps, clock=clock)
            sending = reporter(sender, clock, Counters(more=500))
            sending.start()
            for flap in range(10):
                connection = await connect(receiver, sender)
                # It breaks in the middle of a sample, with more of them waiting.
                await fill(sending)
                assert 0 < sender.buffered <= BUFFER_LIMIT
                await connection.read()
                connection.reset()
                await sleeps.asked_for(flap + 1)
                assert sender.buffered == 0
                whole = connection.data[: connection.data.rindex(b"\n") + 1]
                assert whole.startswith(b"queue.stats.total ")
                assert LINE.sub(b"", whole) == b""
                sleeps.let_pass()
            # It never stayed long enough to count as back: there was one thing to say, and the waits grew.
            assert sum(record.levelno >= logging.WARNING for record in caplog.records) == 1
            assert min(sleeps.asked[7:]) >= MAX_BACKOFF / 2
            await sending.stop(grace=0.01)
            receiver.close()

        run(scenario())

    def test_a_connection_that_lived_makes_the_next_reconnect_quick_again(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver, sleeps = Clock(), Receiver(), Sleeps()
            sender = TcpSender(receiver.address, sleep=sleeps, clock=clock)
            sender.start()
            for flap in range(6):
                connection = await connect(receiver, sender)
                if flap == 5:
                    clock.now += STABLE_SECONDS
                connection.reset()
                await sleeps.asked_for(flap + 1)
                sleeps.let_pass()
            assert sleeps.asked[4] >= 4.0
            assert sleeps.asked[5] <= 0.5
            await sender.stop(0.01)
            receiver.close()

        run(scenario())

    def test_a_receiver_that_never_reads_costs_bounded_memory_and_is_given_up(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver, sleeps = Clock(), Receiver(), Sleeps()
            sender = TcpSender(receiver.address, sleep=sleeps, clock=clock)
            sending = reporter(sender, clock, Counters(more=100))
            sending.start()
            connection = await connect(receiver, sender)
            for _ in range(1000):
                sending.tick()
                assert sender.buffered <= BUFFER_LIMIT
                await asyncio.sleep(0)
            assert sending.dropped > 500
            assert sending.sent + sending.dropped == 1000
            assert sleeps.asked == []
            clock.now += STALL_SECONDS
            assert not sending.tick()
            await sleeps.asked_for(1)
            assert sender.buffered == 0
            await sending.stop()
            connection.close()
            receiver.close()

        run(scenario())

    def test_a_receiver_that_reads_slowly_is_kept_and_gets_whole_samples(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver = Clock(), Receiver()
            sender = TcpSender(receiver.address, clock=clock)
            sending = reporter(sender, clock, Counters(more=100))
            sending.start()
            connection = await connect(receiver, sender)
            for _ in range(5):
                await fill(sending)
                buffered = sender.buffered
                while sender.buffered == buffered:
                    assert await connection.read()
                clock.now += STALL_SECONDS - 1
            dropped = sending.dropped
            await connection.read_lines(104 * sending.sent)
            assert LINE.sub(b"", connection.data) == b""
            assert dropped == 5
            await sending.stop()
            assert (await connection.read_to_end()).count(b"\n") == 104 * sending.sent
            connection.close()
            receiver.close()

        run(scenario())

    def test_a_receiver_that_takes_a_little_now_and_then_is_not_given_up(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver = Clock(), Receiver()
            sender = TcpSender(receiver.address, clock=clock)
            sending = reporter(sender, clock, Counters(more=20_000))
            sending.start()
            connection = await connect(receiver, sender)
            assert sending.tick()
            for _ in range(4):
                buffered = sender.buffered
                while sender.buffered == buffered:
                    assert await connection.read()
                clock.now += STALL_SECONDS - 2
                assert not sending.tick()
                clock.now += 1
                assert not sending.tick()
            await connection.read_lines(20_004)
            assert LINE.sub(b"", connection.data) == b""
            connection.close()
            await sending.stop()
            receiver.close()

        run(scenario())

    def test_a_sample_larger_than_the_buffer_is_sent_when_nothing_waits(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver = Clock(), Receiver()
            sender = TcpSender(receiver.address, clock=clock)
            sending = reporter(sender, clock, Counters(more=5000))
            sending.start()
            connection = await connect(receiver, sender)
            assert sending.tick()
            await connection.read_lines(5004)
            assert len(connection.data) > BUFFER_LIMIT
            connection.close()
            await sending.stop()
            receiver.close()

        run(scenario())

    def test_stop_sends_a_last_sample_and_closes(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver = Clock(), Receiver()
            sender = TcpSender(receiver.address, clock=clock)
            sending = reporter(sender, clock)
            sending.start()
            connection = await connect(receiver, sender)
            await sending.stop()
            assert (await connection.read_to_end()).count(b"\n") == 4
            assert not sending.tick()
            connection.close()
            receiver.close()

        run(scenario())

    def test_stop_sends_what_waits_while_it_has_time(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver = Clock(), Receiver()
            sender = TcpSender(receiver.address, clock=clock)
            sending = reporter(sender, clock, Counters(more=20_000))
            sending.start()
            connection = await connect(receiver, sender)
            assert sending.tick()
            assert sender.buffered > BUFFER_LIMIT
            stopping = asyncio.create_task(sending.stop(grace=20))
            for _ in range(20):
                await asyncio.sleep(0)
            assert not stopping.done()
            assert (await connection.read_to_end()).count(b"\n") == 20_004
            await stopping
            connection.close()
            receiver.close()

        run(scenario())

    def test_stop_does_not_wait_for_a_receiver_that_does_not_read(self, run: Run) -> None:
        async def scenario() -> None:
            clock, receiver = Clock(), Receiver()
            sender = TcpSender(receiver.address, clock=clock)
            sending = reporter(sender, clock, Counters(more=500))
            sending.start()
            connection = await connect(receiver, sender)
            await fill(sending)
            await sending.stop(grace=0.01)
            assert sender.buffered == 0
            connection.close()
            receiver.close()

        run(scenario())

    def test_stop_while_there_is_no_receiver(self, run: Run) -> None:
        async def scenario() -> None:
            sleeps = Sleeps()
            sender = TcpSender(Address("127.0.0.1", free_port()), sleep=sleeps)
            sending = reporter(sender, Clock())
            sending.start()
            await sleeps.asked_for(1)
            await sending.stop()
            await sending.stop()

        run(scenario())

    @pytest.mark.parametrize("kind", [TcpSender, UdpSender])
    def test_a_name_that_nobody_knows_is_tried_again(
        self, run: Run, kind: type[TcpSender | UdpSender], caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scenario() -> None:
            sleeps = Sleeps()
            sender = kind(Address("no..name", 2003), sleep=sleeps)
            sending = reporter(sender, Clock())
            sending.start()
            sleeps.let_pass(3)
            await sleeps.asked_for(4)
            assert not sending.tick()
            assert sum(record.levelno >= logging.WARNING for record in caplog.records) == 1
            await sending.stop()

        run(scenario())


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
