"""One client's behaviour is that client's problem."""

from __future__ import annotations

import resource
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from iproto_server import Application
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.server.connection import server_state
from queue_lua_compat.tutorial import TutorialQueue
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient, frame
from tests.server.conftest import APPLICATION
from tests.server.in_process import ServerInProcess

MEBIBYTE = 1 << 20
MOST_IDLE_CONNECTIONS = 10_000
"""As many, or as many as the system lets be opened."""
OTHER_FILES = 500
BYTES_PER_IDLE_CONNECTION = 20 * 1024


def resident_bytes(pid: int) -> int:
    """How much memory a process has in use."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def call(name: str, *arguments: object, sync: int = 0) -> bytes:
    return frame(RequestType.CALL, {Key.FUNCTION_NAME: name, Key.TUPLE: list(arguments)}, sync=sync)


class TestSlowReaders:
    def test_who_does_not_read_is_not_read_from_and_nobody_else_notices(
        self, start_server: StartServer
    ) -> None:
        server = start_server([APPLICATION], ["--write-high-water", "1M"])
        before = resident_bytes(server.process.pid)
        with (
            IprotoClient.at(server.address, receive_buffer=4096) as slow,
            IprotoClient.at(server.address) as other,
        ):
            slow.socket.setblocking(False)
            # Each asks for a mebibyte. Once the server stops reading, no more requests fit into the sockets.
            requests = call("big", MEBIBYTE) * 1_000_000
            sent = 0
            with suppress(BlockingIOError):
                while sent < len(requests):
                    sent += slow.socket.send(requests[sent : sent + 65536])
                    assert other.call("echo", 1).data == [[1]]
            assert 0 < sent < len(requests)
            assert resident_bytes(server.process.pid) - before < 64 * MEBIBYTE

    def test_the_slow_reader_gets_everything_when_it_reads(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--write-high-water", "64K"])
        with IprotoClient.at(server.address, receive_buffer=4096) as slow:
            slow.send_bytes(b"".join(call("big", 100_000, sync=sync) for sync in range(200)))
            assert [slow.receive().sync for _ in range(200)] == list(range(200))


class TestNetMsgMax:
    def test_no_more_requests_are_in_flight(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--net-msg-max", "10"])
        with IprotoClient.at(server.address) as many, IprotoClient.at(server.address) as other:
            many.send_bytes(b"".join(call("gate.wait", "a", sync=sync) for sync in range(100)))
            while other.call("gate.most").data[0] < 10:
                """A task starts with the loop's next iteration."""
            assert other.call("gate.most").data == [10, 10]
            other.call("gate.open", "a")
            assert sorted(many.receive().sync for _ in range(100)) == list(range(100))
            assert other.call("gate.most").data == [0, 10]

    def test_a_client_with_nothing_in_flight_is_always_served(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--net-msg-max", "2"])
        with IprotoClient.at(server.address) as waiting, IprotoClient.at(server.address) as other:
            waiting.send_bytes(b"".join(call("park", 60, sync=sync) for sync in range(5)))
            for _ in range(5):
                other.call("wake")
            assert sorted(waiting.receive().sync for _ in range(5)) == list(range(5))

    @pytest.mark.parametrize("waiting_elsewhere", [0, 25])
    def test_an_acknowledgement_is_answered_however_many_takes_wait(
        self, start_server: StartServer, waiting_elsewhere: int
    ) -> None:
        server = start_server(["queue_lua_compat.tutorial:app"], ["--net-msg-max", "20"])
        with (
            IprotoClient.at(server.address) as consumer,
            IprotoClient.at(server.address) as others,
            IprotoClient.at(server.address) as producer,
        ):
            here = 26 - waiting_elsewhere
            consumer.send_bytes(b"".join(call("queue.take", 3600, sync=sync) for sync in range(here)))
            assert consumer.request(RequestType.PING).ok
            others.send_bytes(b"".join(call("queue.take", 3600) for _ in range(waiting_elsewhere)))
            assert others.request(RequestType.PING).ok
            task = producer.call("queue.put", "work").data[0]["id"]
            assert consumer.receive().sync == 0
            consumer.send_bytes(call("queue.take", 3600, sync=100) + call("queue.ack", task, sync=101))
            assert consumer.receive().sync == 101

    def test_waiting_calls_have_a_limit_for_memory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server_state, "PARKED_MAX", 5)
        queue = Application("queue")
        TutorialQueue(queue)
        with ServerInProcess(tmp_path, [queue], net_msg_max=2) as server:
            client, other = server.connect(), server.connect()
            client.send_bytes(b"".join(call("queue.take", 3600, sync=sync) for sync in range(8)))
            while server.run(parked(server)) < 5:
                """They are read a moment later."""
            for number in range(8):
                assert other.call("queue.put", number).ok
            assert [client.receive().sync for _ in range(8)] == list(range(8))
            assert server.run(parked(server)) == 0


async def parked(server: ServerInProcess) -> int:
    count = server.server.state.parked
    assert count <= 5
    return count


class TestFrames:
    def test_the_largest_frame_is_taken_and_one_byte_more_is_not(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], ["--max-frame", "2000"])
        body = {Key.FUNCTION_NAME: "echo", Key.TUPLE: [""]}
        spare = 2000 - (len(frame(RequestType.CALL, {**body, Key.TUPLE: ["x" * 300]}, sync=1)) - 3 - 300)
        with IprotoClient.at(server.address) as client:
            assert client.call("echo", "x" * spare).data == [["x" * spare]]
        with IprotoClient.at(server.address) as client:
            client.send(RequestType.CALL, {**body, Key.TUPLE: ["x" * (spare + 1)]})
            assert client.receive().failure == (
                20,
                "Invalid MsgPack - too big packet size in the header: 2001 (max_frame is 2000)",
            )
            assert client.closed_by_server()

    def test_a_frame_that_never_ends_costs_what_was_sent_of_it(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION])
        before = resident_bytes(server.process.pid)
        with IprotoClient.at(server.address) as half, IprotoClient.at(server.address) as other:
            half.send_bytes(b"\xce\x0f\xff\xff\xff" + b"\x82\x00\x0a")
            assert other.call("echo", 1).data == [[1]]
            assert resident_bytes(server.process.pid) - before < 16 * MEBIBYTE


class TestIdleConnections:
    def test_they_cost_under_20_kb_each(self, start_server: StartServer) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_IDLE_CONNECTIONS + OTHER_FILES
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
        number = allowed - OTHER_FILES
        sockets: list[socket.socket] = []
        try:
            server = start_server([APPLICATION])
            with IprotoClient.at(server.address) as client:
                before = resident_bytes(server.process.pid)
                for _ in range(number):
                    connection = socket.create_connection((server.host, server.port))
                    sockets.append(connection)
                    assert len(connection.recv(128, socket.MSG_WAITALL)) == 128
                assert client.call("echo", 1).data == [[1]]
                used = resident_bytes(server.process.pid) - before
            assert used / number < BYTES_PER_IDLE_CONNECTION
        finally:
            for connection in sockets:
                connection.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
