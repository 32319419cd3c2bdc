"""What a real carbon-cache stores of what we send, read back from its whisper files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import tarantool

from iproto_server.config.address import Address
from iproto_server.metrics.graphite import GraphiteReporter
from iproto_server.metrics.graphite_sender import TcpSender, UdpSender
from tests.conftest import StartServer
from tests.metrics.carbon import Carbon
from tests.running_server import QUEUE_APPLICATION

pytestmark = pytest.mark.carbon


@pytest.fixture
def carbon(tmp_path: Path) -> Iterator[Carbon]:
    """A carbon-cache of the test's own."""
    with Carbon(tmp_path) as running:
        yield running


class Seconds:
    """A wall clock that a test moves. Carbon keeps the last hour, so it begins a little before now."""

    def __init__(self) -> None:
        self.now = float(int(time.time()) - 60)

    def __call__(self) -> float:
        return self.now


class Samples:
    """A reporter of the tutorial's counters with a known value for every second."""

    def __init__(self, sender: TcpSender | UdpSender) -> None:
        self.clock = Seconds()
        self.begin = int(self.clock.now)
        self.sender = sender
        self.reporter = GraphiteReporter(
            Address("unused"), "", "queue.stats", 3600.0, self._collect, clock=self.clock, sender=sender
        )

    def _collect(self) -> Iterator[tuple[str, int | float]]:
        second = int(self.clock.now) - self.begin
        yield from (("total", second * 10), ("ready", second), ("waiting", 0), ("taken", 2.5))
        yield "server.requests.call", 2**40 + second
        yield "/odd name", 7

    async def connected(self) -> None:
        async with asyncio.timeout(30):
            for _ in iter(lambda: self.sender.connected, True):
                await asyncio.sleep(0.01)

    def take(self, count: int) -> None:
        for _ in range(count):
            self.reporter.tick()
            self.clock.now += 1


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_every_sample_is_stored_at_its_second(carbon: Carbon, protocol: str) -> None:
    async def scenario() -> Samples:
        samples = Samples(
            UdpSender(Address("127.0.0.1", carbon.udp_port))
            if protocol == "udp"
            else TcpSender(Address("127.0.0.1", carbon.tcp_port))
        )
        samples.reporter.start()
        await samples.connected()
        samples.take(20)
        await samples.reporter.stop()
        return samples

    samples = asyncio.run(scenario())
    # 20 samples and the last one, which stop sends.
    seconds = range(21)
    expected: dict[str, list[float]] = {
        "total": [10 * second for second in seconds],
        "ready": list(seconds),
        "waiting": [0] * 21,
        "taken": [2.5] * 21,
        "server.requests.call": [2**40 + second for second in seconds],
        "_odd_name": [7] * 21,
    }
    for metric, values in expected.items():
        name = f"queue.stats.{metric}"
        carbon.wait_for_point(name, values[-1])
        assert carbon.points(name) == {samples.begin + second: value for second, value in enumerate(values)}


def test_a_restarted_carbon_is_found_again_and_only_its_absence_is_missing(carbon: Carbon) -> None:
    async def scenario() -> Samples:
        samples = Samples(TcpSender(Address("127.0.0.1", carbon.tcp_port)))
        samples.reporter.start()
        await samples.connected()
        samples.take(5)
        await asyncio.to_thread(carbon.wait_for_point, "queue.stats.ready", 4)
        await asyncio.to_thread(carbon.stop)
        async with asyncio.timeout(30):
            for _ in iter(lambda: samples.sender.connected, False):
                await asyncio.sleep(0.01)
        samples.take(5)
        await asyncio.to_thread(carbon.start)
        await samples.connected()
        samples.take(5)
        await samples.reporter.stop()
        return samples

    samples = asyncio.run(scenario())
    carbon.wait_for_point("queue.stats.ready", 15)
    stored = {second - samples.begin for second in carbon.points("queue.stats.ready")}
    assert stored == {0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15}
    assert (samples.reporter.sent, samples.reporter.dropped) == (11, 5)


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_the_servers_counters_reach_graphite(
    carbon: Carbon, start_server: StartServer, protocol: str
) -> None:
    port = carbon.udp_port if protocol == "udp" else carbon.tcp_port
    server = start_server(
        [QUEUE_APPLICATION],
        ["--graphite", f"127.0.0.1:{port}", "--graphite-protocol", protocol, "--graphite-interval", "0.2"],
    )
    client = tarantool.Connection(server.host, server.port)
    for _ in range(3):
        client.call("queue.put", ("payload",))
    client.call("queue.put", ("later", {"delay": 3600}))
    client.call("queue.take", (0,))
    # The tutorial's own four, under its own names.
    for name, value in {"total": 4, "ready": 2, "waiting": 1, "taken": 1}.items():
        carbon.wait_for_point(f"queue.stats.{name}", value)
    carbon.wait_for_point("queue.stats.server.requests.call", 5)
    client.close()
