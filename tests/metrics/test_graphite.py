"""The Graphite sender over TCP."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest

from iproto_server.config.address import Address
from iproto_server.metrics.graphite import GraphiteReporter
from iproto_server.metrics.graphite_sender import (
    BUFFER_LIMIT,
    MAX_BACKOFF,
    STABLE_SECONDS,
    STALL_SECONDS,
    TcpSender,
    UdpSender,
)
from tests.metrics.receiver import (
    Clock,
    Counters,
    Receiver,
    Run,
    Sleeps,
    connect,
    free_port,
    reporter,
)

LINE = re.compile(rb"queue\.stats\.[a-z0-9_.]+ [0-9]+ 17000[0-9]+\n")


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
