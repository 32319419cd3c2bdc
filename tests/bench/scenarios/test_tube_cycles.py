"""Cycles of tubes, and the echo server."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest

from bench.client.iproto_frames import call_frame
from bench.peers.contender import Server, server_environment
from bench.peers.echo import Echo
from bench.peers.queue_server import OurQueue, QueueServer, module
from bench.scenarios import echo
from bench.scenarios.queues.tube_cycles import BLOCK, DRIVERS, TubeDialect, rate
from bench.workloads.rate import Setting, Shape
from tests.queue_lua_compat.real_tubes import worlds


def answer(body: object) -> bytes:
    """An answer to CALL, as a server writes it."""
    content = b"\x83\x00\xce\0\0\0\0\x01\xcf" + bytes(8) + b"\x05\xce" + bytes(4) + bytes(msgpack.packb(body))
    return b"\xce" + len(content).to_bytes(4, "big") + content


@pytest.mark.parametrize("number", [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1])
def test_tasks_are_known_by_numbers_of_any_size(number: int) -> None:
    dialect = TubeDialect("some", has_sub_queues=False)
    answers = answer({0x30: [[number, "t", "d" * 100]]}) + answer({0x30: []})
    tasks = dialect.tasks_in(answers)
    assert tasks == [msgpack.packb(number)]
    assert dialect.acks(tasks).data == call_frame("queue.tube.some:ack", [number])
    # Tarantool writes the length of the data in four bytes.
    assert dialect.tasks_in(answers.replace(b"\x30\x91", b"\x30\xdd\0\0\0\x01")) == tasks


def test_calls_are_those_of_a_tube() -> None:
    dialect = TubeDialect("some", has_sub_queues=False)
    assert dialect.puts([b"data"]).data == call_frame("queue.tube.some:put", ["data"])
    assert dialect.takes(2, timeout=3).data == call_frame("queue.tube.some:take", [3]) * 2
    with_sub_queues = TubeDialect("some", has_sub_queues=True)
    payload = b"0123456789abcdef"
    expected = call_frame("queue.tube.some:put", [payload.decode(), {"utube": "0123456789ab"}])
    assert with_sub_queues.puts([payload]).data == expected
    with pytest.raises(ValueError, match="not all tubes have delays"):
        dialect.puts([b"data"], delay=1)


@pytest.mark.parametrize("world", worlds("ours", "the module"))
@pytest.mark.parametrize("driver", DRIVERS)
def test_all_tasks_of_a_tube_are_done(world: str, driver: str, tmp_path: Path) -> None:
    peer = OurQueue() if world == "ours" else module()
    assert peer is not None
    with QueueServer(peer, tmp_path / "data") as server:
        measured = rate(server, driver, Shape(5, 20), 3, blocks=2)
        counts = {
            "contender": world,
            "operation": driver,
            "shape": "5 × 20",
            "round": 3,
            "requests": 2 * BLOCK,
        }
        assert {name: getattr(measured, name) for name in counts} == counts
        assert measured.latencies_ms is None
        [statistics] = server.connection.call("queue.statistics", f"{driver}_5_3")
        assert statistics["calls"]["ack"] == 3 * BLOCK
        assert statistics["tasks"]["total"] == 0


def test_the_echo_server_appends_all_that_it_sends_back(tmp_path: Path) -> None:
    with Server(Echo(), tmp_path / "data") as server:
        measured = list(echo.rates(Setting(server, echo.SECTION, Shape(3, 2)), 100))
    assert [(each.operation, each.requests) for each in measured] == [
        (operation, 100) for operation in ("put", "take", "ack", "cycle")
    ]
    log = (tmp_path / "data" / "log").read_bytes()
    assert log.count(b"queue.put") == log.count(b"queue.take") == log.count(b"queue.ack") == 100


def test_the_echo_server_has_one_way_to_write(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the echo server has no wal_mode 'fsync'"):
        Server(Echo(), tmp_path / "data", "fsync")
    with pytest.raises(NotImplementedError):
        Echo().snapshot(("127.0.0.1", 1))


def test_servers_keep_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("SOMETHING", "else")
    environment = server_environment()
    assert "PYTHONDONTWRITEBYTECODE" not in environment
    assert environment["SOMETHING"] == "else"
