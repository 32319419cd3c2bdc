"""Limits of what clients send: how long a frame may take, and the room that they all have."""

from __future__ import annotations

import struct

import pytest

from iproto_server.protocol.constants import Key, RequestType
from iproto_server.server.connection.states import Wait
from tests.iproto_client import IprotoClient, frame
from tests.protocol.tarantool15.box15_client import PING, Client15
from tests.server.limits.incoming.limited import (
    KIBIBYTE,
    MEBIBYTE,
    Limited,
    Start,
    call_of,
    ping_of,
)
from tests.server.login import log_in


class TestTime:
    def test_a_stranger_logs_in_within_a_time(self, start: Start) -> None:
        server = start()
        silent, alive, member = (server.connect() for _ in range(3))
        assert log_in(member, "alice", "secret").ok
        assert alive.request(RequestType.PING).ok
        server.in_loop(lambda: server.clock.advance(59))
        assert alive.request(RequestType.PING).ok
        server.pass_time(1)
        for client in (silent, alive):
            answer = client.receive()
            assert (answer.sync, answer.failure) == (0, (78, "Timeout exceeded"))
            assert client.closed_by_server()
        assert member.call("size", b"abc").data == [3]
        assert server.refused() == {"login_timeout": 2}

    def test_or_at_any_time_where_that_is_an_option(self, start: Start) -> None:
        server = start(login_timeout=0)
        client = server.connect()
        assert client.request(RequestType.PING).ok
        server.pass_time(1000)
        assert client.request(RequestType.PING).ok

    def test_guest_need_not_while_it_has_rights(self, start: Start) -> None:
        server = start(guest="auto")
        client = server.connect()
        assert client.request(RequestType.PING).ok
        server.pass_time(1000)
        assert client.request(RequestType.PING).ok
        assert server.in_loop(lambda: server.clock.pending) == 0

    def test_who_becomes_guest_again_has_to_log_in_again(self, start: Start) -> None:
        server = start()
        client = server.connect()
        assert log_in(client, "alice", "secret").ok
        server.pass_time(100)
        assert client.request(RequestType.AUTH, {Key.USER_NAME: "guest", Key.TUPLE: []}).ok
        server.pass_time(10)
        assert client.request(RequestType.PING).ok
        server.pass_time(60)
        assert client.receive().failure[0] == 78

    def test_half_a_frame_may_go_without_a_byte_for_a_time(self, start: Start) -> None:
        server = start()
        client = server.connect()
        assert log_in(client, "alice", "secret").ok
        request = call_of(1000)
        for place in range(5):
            client.send_bytes(request[place : place + 1])
            server.wait_for_buffered(place + 1)
            server.in_loop(lambda: server.clock.advance(50))
        client.send_bytes(request[5:])
        assert client.receive().data == [1000]
        server.pass_time(1000)
        client.send_bytes(request[:500])
        server.wait_for_buffered(500)
        server.pass_time(60)
        assert client.receive().failure == (78, "Timeout exceeded")
        assert client.closed_by_server()
        assert (server.refused(), server.counter("buffered")) == ({"frame_timeout": 1}, 0)

    def test_a_stranger_s_stands_no_longer_whatever_comes(self, start: Start) -> None:
        server = start(login_timeout=0)
        client = server.connect()
        request = call_of(1000)
        for place in range(7):
            client.send_bytes(request[place : place + 1])
            server.wait_for_buffered(place + 1)
            server.pass_time(8)
        assert client.receive().failure == (78, "Timeout exceeded")
        assert client.closed_by_server()
        assert server.refused() == {"frame_timeout": 1}

    def test_the_next_one_has_its_own_time(self, start: Start) -> None:
        server = start(login_timeout=0)
        client = server.connect()
        request = frame(RequestType.PING, sync=4)
        client.send_bytes(request[:3])
        for _ in range(5):
            server.wait_for_buffered(3)
            server.in_loop(lambda: server.clock.advance(50))
            client.send_bytes(request[3:] + request[:3])
            assert client.receive().sync == 4

    def test_the_clock_stands_while_the_client_is_not_read_from(self, start: Start) -> None:
        server = start(net_msg_max=2)
        client = server.connect()
        assert log_in(client, "alice", "secret").ok
        server.in_loop(lambda: server.server.state.connections)
        (connection,) = server.in_loop(lambda: list(server.server.state.connections))
        request = call_of(1000)
        client.send_bytes(request[:500])
        server.wait_for_buffered(500)
        server.in_loop(lambda: connection._wait(Wait.READER))
        server.in_loop(connection._hold)
        server.pass_time(1000)
        server.in_loop(connection.resume_writing)
        server.pass_time(50)
        client.send_bytes(request[500:])
        assert client.receive().data == [1000]

    def test_a_stranger_that_does_not_read_is_cut_off(self, start: Start) -> None:
        server = start()
        client = server.connect()
        (connection,) = server.in_loop(lambda: list(server.server.state.connections))
        # As if its buffers were full: nothing that is written arrives.
        server.in_loop(lambda: setattr(connection, "_held_size", 1))
        server.pass_time(60)
        assert client.receive().failure[0] == 78
        assert server.in_loop(lambda: len(server.server.state.connections)) == 1
        server.pass_time(5)
        assert client.closed_by_server()

    def test_an_idle_connection_costs_no_timer_when_it_has_logged_in(self, start: Start) -> None:
        server = start()
        client = server.connect()
        assert log_in(client, "alice", "secret").ok
        server.pass_time(60)
        assert server.in_loop(lambda: (server.clock.pending, len(server.server.state.incoming._login))) == (
            0,
            0,
        )


SMALL_ROOM = {"max_frame": MEBIBYTE, "max_frame_before_login": 256 * KIBIBYTE, "max_buffered": 2 * MEBIBYTE}


class TestRoom:
    """Unfinished frames of all connections together."""

    def half(self, client: IprotoClient, server: Limited, count: int) -> None:
        """Send so many bytes of a frame that is a little larger."""
        before = server.in_loop(lambda: server.server.state.incoming.buffered)
        client.send_bytes(ping_of(count + 100)[:count])
        server.wait_for_buffered(before + count)

    def member(self, server: Limited) -> IprotoClient:
        client = server.connect()
        assert log_in(client, "alice", "secret").ok
        return client

    def test_strangers_have_an_eighth_and_the_largest_goes_first(self, start: Start) -> None:
        server = start(**SMALL_ROOM)
        members = [self.member(server) for _ in range(2)]
        for member in members:
            self.half(member, server, 500 * KIBIBYTE)
        small, large, last = (server.connect() for _ in range(3))
        self.half(small, server, 60 * KIBIBYTE)
        self.half(large, server, 100 * KIBIBYTE)
        last.send_bytes(ping_of(200 * KIBIBYTE)[: 97 * KIBIBYTE])
        assert large.receive().failure[0] == 2
        assert large.closed_by_server()
        server.wait_for_buffered((1000 + 60 + 97) * KIBIBYTE)
        assert server.refused() == {"max_buffered": 1}
        for client, done, size in ((small, 60, 60), (members[0], 500, 500)):
            client.send_bytes(ping_of(size * KIBIBYTE + 100)[done * KIBIBYTE :])
            assert client.receive().ok

    def test_members_go_when_no_stranger_is_left_the_largest_first(self, start: Start) -> None:
        server = start(**SMALL_ROOM)
        stranger = server.connect()
        self.half(stranger, server, 10 * KIBIBYTE)
        members = [self.member(server) for _ in range(4)]
        for member, size in zip(members, (700, 600, 600), strict=False):
            self.half(member, server, size * KIBIBYTE)
        members[3].send_bytes(ping_of(500 * KIBIBYTE)[: 150 * KIBIBYTE])
        assert stranger.receive().failure[0] == 2
        answer = members[0].receive()
        assert answer.sync == 0
        assert answer.failure[1].startswith("Failed to allocate ")
        assert members[0].closed_by_server()
        server.wait_for_buffered((600 + 600 + 150) * KIBIBYTE)
        assert server.refused() == {"max_buffered": 2}
        members[3].send_bytes(ping_of(500 * KIBIBYTE)[150 * KIBIBYTE :])
        assert members[3].receive().ok

    def test_what_is_finished_does_not_count(self, start: Start) -> None:
        server = start(**SMALL_ROOM)
        client = self.member(server)
        for _ in range(10):
            self.half(client, server, MEBIBYTE - 1000)
            client.send_bytes(ping_of(MEBIBYTE - 900)[MEBIBYTE - 1000 :])
            assert client.receive().ok
            assert server.counter("buffered") == 0
        self.half(client, server, 1000)
        client.close()
        server.wait_for_buffered(0)
        assert server.refused() == {}


class TestProtocol15:
    """It has no login: all its connections are strangers while guest has no grant."""

    def connect(self, server: Limited) -> Client15:
        _, listener = server.server.listeners
        return Client15(listener.address.host, listener.address.port)

    def test_large_requests_end_the_connection_without_a_word(self, start: Start) -> None:
        server = start()
        with self.connect(server) as client:
            client.send_bytes(struct.pack("<III", PING, 0, 5) + struct.pack("<III", 22, 65537, 6))
            assert client.receive().request_id == 5
            assert client.closed_by_server()
        assert server.refused() == {"max_frame_before_login": 1}

    def test_so_does_time(self, start: Start) -> None:
        server = start()
        with self.connect(server) as client:
            assert client.request(PING).kind == PING
            server.pass_time(60)
            assert client.closed_by_server()
        assert server.refused() == {"login_timeout": 1}

    def test_with_rights_of_guest_there_is_no_such_limit(self, start: Start) -> None:
        server = start(guest="all")
        with self.connect(server) as client:
            assert client.request(PING).kind == PING
            server.pass_time(1000)
            body = struct.pack("<I", 0) + b"\x04size" + struct.pack("<I", 1) + b"\x84\x80\x00" + bytes(65536)
            assert client.request(22, body).code == 0
            client.send_bytes(struct.pack("<III", PING, 0, 5)[:7])
            server.wait_for_buffered(7)
            server.pass_time(60)
            assert client.closed_by_server()
        assert server.refused() == {"frame_timeout": 1}


def test_what_is_refused_is_logged_in_few_lines(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    server = start()
    for _ in range(50):
        client = server.connect()
        client.send_bytes(b"\xff" * 10)
        assert client.receive().failure[1] == "Invalid MsgPack - packet length"
    assert server.refused() == {"malformed": 50}
    lines = [record.getMessage() for record in caplog.records if "closed a connection" in record.getMessage()]
    assert lines == ["closed a connection: no valid length"]
