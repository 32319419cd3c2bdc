"""Limits of what clients send: large frames."""

from __future__ import annotations

from functools import partial

import pytest

from iproto_server.protocol.constants import Key, RequestType
from tests.iproto_client import frame
from tests.server.limits.incoming.limited import KIBIBYTE, MEBIBYTE, Start, call_of, ping_of
from tests.server.login import auth_frame, log_in

TOO_LARGE = "Invalid MsgPack - too big packet size in the header: "
BEFORE_LOGIN = " (max_frame_before_login is 65536)"


class TestLargeFrames:
    def test_a_stranger_s_frame_has_64_kilobytes_at_most(self, start: Start) -> None:
        server = start()
        client = server.connect()
        client.send_bytes(ping_of(64 * KIBIBYTE))
        assert client.receive().ok
        client.send_bytes(ping_of(64 * KIBIBYTE + 1)[:10])
        answer = client.receive()
        assert (answer.sync, answer.failure[1]) == (0, f"{TOO_LARGE}65537{BEFORE_LOGIN}")
        assert client.closed_by_server()
        assert server.refused() == {"max_frame_before_login": 1}

    def test_what_came_before_it_is_answered(self, start: Start) -> None:
        client = start().connect()
        client.send_bytes(frame(RequestType.PING, sync=7) * 3 + ping_of(100 * KIBIBYTE)[:1000])
        assert [client.receive().sync for _ in range(4)] == [7, 7, 7, 0]
        assert client.closed_by_server()

    @pytest.mark.parametrize("pings", [0, 1, 3, 4, 50, 5000])
    def test_one_behind_a_login_in_the_same_packet_is_judged_after_that(
        self, start: Start, pings: int
    ) -> None:
        server = start()
        client = server.connect()
        before = frame(RequestType.PING, sync=1) * pings
        client.send_bytes(before + auth_frame(client, "alice", "secret", sync=2) + call_of(MEBIBYTE, sync=3))
        assert [client.receive().sync for _ in range(pings)] == [1] * pings
        assert client.receive().ok
        assert client.receive().data == [MEBIBYTE]
        assert server.refused() == {}

    def test_one_behind_a_login_that_fails_is_refused(self, start: Start) -> None:
        server = start()
        client = server.connect()
        client.send_bytes(auth_frame(client, "alice", "wrong", sync=2) + call_of(MEBIBYTE, sync=3)[:100_000])
        assert (client.receive().sync, client.receive().failure[1][: len(TOO_LARGE)]) == (2, TOO_LARGE)
        assert client.closed_by_server()
        assert server.refused()["max_frame_before_login"] == 1

    def test_one_that_begins_before_the_login_is_answered_does_not_wait_for_it(self, start: Start) -> None:
        """Both are in the server before it looks at the first."""
        client = start().connect()
        login = auth_frame(client, "alice", "secret", sync=2)
        large = call_of(MEBIBYTE, sync=3)
        client.send_bytes(login + large[:3])
        client.send_bytes(large[3:])
        assert client.receive().ok
        assert client.receive().data == [MEBIBYTE]

    def test_who_becomes_guest_again_is_a_stranger_again(self, start: Start) -> None:
        client = start().connect()
        assert log_in(client, "alice", "secret").ok
        client.send_bytes(call_of(MEBIBYTE))
        assert client.receive().data == [MEBIBYTE]
        assert client.request(RequestType.AUTH, {Key.USER_NAME: "guest", Key.TUPLE: []}).ok
        client.send_bytes(ping_of(100 * KIBIBYTE)[:100])
        assert client.receive().failure[1] == f"{TOO_LARGE}{100 * KIBIBYTE}{BEFORE_LOGIN}"

    def test_who_becomes_somebody_in_a_procedure_is_none(self, start: Start) -> None:
        server = start()
        server.in_loop(lambda: server.server.box.schema.func.create("become"))
        server.in_loop(lambda: server.server.box.schema.func.create("as_admin"))
        grant = server.server.box.schema.role.grant
        for name in ("become", "as_admin"):
            server.in_loop(partial(grant, "public", "execute", "function", name))
        client = server.connect()
        assert client.call("as_admin").ok
        assert client.call("become", "alice").ok
        client.send_bytes(call_of(MEBIBYTE))
        assert client.receive().data == [MEBIBYTE]
        client = server.connect()
        assert client.call("as_admin").ok
        client.send_bytes(call_of(MEBIBYTE)[:100])
        assert TOO_LARGE in client.receive().failure[1]

    def test_guest_is_no_stranger_while_it_has_a_grant(self, start: Start) -> None:
        server = start()
        box = server.server.box
        early, late = server.connect(), server.connect()
        assert early.request(RequestType.PING).ok
        server.in_loop(lambda: box.schema.user.grant("guest", "execute", "universe"))
        early.send_bytes(call_of(MEBIBYTE))
        assert early.receive().data == [MEBIBYTE]
        server.in_loop(lambda: box.schema.user.revoke("guest", "execute", "universe"))
        late.send_bytes(call_of(MEBIBYTE)[:100])
        assert TOO_LARGE in late.receive().failure[1]

    def test_the_limit_is_an_option(self, start: Start) -> None:
        client = start(max_frame_before_login=1024).connect()
        client.send_bytes(ping_of(1024) + ping_of(1025)[:10])
        assert client.receive().ok
        assert client.receive().failure[1] == f"{TOO_LARGE}1025 (max_frame_before_login is 1024)"

    def test_nobody_s_frame_is_larger_than_max_frame(self, start: Start) -> None:
        server = start(max_frame=MEBIBYTE, max_frame_before_login=2 * MEBIBYTE)
        for user in (None, "alice"):
            client = server.connect()
            if user:
                assert log_in(client, user, "secret").ok
            client.send_bytes(ping_of(MEBIBYTE) + ping_of(MEBIBYTE + 1)[:10])
            assert client.receive().ok
            assert client.receive().failure[1] == f"{TOO_LARGE}{MEBIBYTE + 1} (max_frame is {MEBIBYTE})"
        assert server.refused() == {"max_frame": 2}

    def test_what_is_no_length_is_counted_too(self, start: Start) -> None:
        server = start()
        client = server.connect()
        client.send_bytes(b"\xa5 text")
        assert client.closed_by_server() is False
        assert server.refused() == {"malformed": 1}
