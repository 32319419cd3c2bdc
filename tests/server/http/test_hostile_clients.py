"""Clients without a login: what they can make the server do, and write into its log."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, cast

import h11
import pytest
from starlette.requests import ClientDisconnect
from uvicorn.config import Config
from uvicorn.server import ServerState

from iproto_server.box.clock import ManualClock
from iproto_server.errors import BoxError
from iproto_server.server.http.application import LimitedRequests
from iproto_server.server.http.http_connection import (
    MAX_CONNECTIONS,
    MAX_REQUESTS,
    HttpAdmission,
    HttpConnection,
)
from iproto_server.server.http.pacing import EVENTS, MAX_HEADER_LINES, PAUSE, TURN, PacedParser, Pacing, Rank
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from tests.running_server import RunningServer
from tests.server.http.http_client import HTTP, TIMEOUT, http_port, request

LOGIN = b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
TINY_CHUNKS = b"1\r\n \r\n" * 10_000


@pytest.fixture(scope="module")
def server_options() -> Sequence[str]:
    return HTTP


@pytest.fixture(scope="module")
def port(server: RunningServer) -> int:
    return http_port(server)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> RateLimitedLog:
    caplog.set_level(logging.DEBUG, "test")
    return RateLimitedLog(logging.getLogger("test"), ManualClock())


class TestTheLog:
    def test_bodies_that_are_cut_off(self, server: RunningServer, port: int) -> None:
        for _ in range(20):
            with closing(socket.create_connection(("127.0.0.1", port), TIMEOUT)) as client:
                client.sendall(LOGIN + b"Content-Length: 9\r\n\r\n{")
        assert request(port, "/health").status == 200
        assert "Traceback" not in server.process.output

    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            (rb'{"user": "a", "password": "\ud800"}', "a text has half of a surrogate pair"),
            (rb'{"user": "\uDFFF", "password": "x"}', "a text has half of a surrogate pair"),
            (rb'{"\ud800": 1}', "a text has half of a surrogate pair"),
            (b'{"user": "\xff", "password": "x"}', "can't decode byte 0xff"),
            (b"[" * 10_000, "the body is no JSON: "),
            (b"1" * 5000, "the body is no JSON: "),
            (b'{"user": 1e999}', "the number 1e999 is too large"),
            (b'{"user": -1e999}', "the number -1e999 is too large"),
            (b'{"user": NaN}', "NaN is no number of JSON"),
            (b'{"user": -Infinity}', "-Infinity is no number of JSON"),
        ],
    )
    def test_bodies_that_are_no_json(
        self, server: RunningServer, port: int, body: bytes, problem: str
    ) -> None:
        answer = request(port, "/api/login", "POST", {"Content-Type": "application/json"}, body=body)
        assert (answer.status, problem in json.loads(answer.text)["error"]) == (400, True), answer.text
        assert "Traceback" not in server.process.output

    def test_a_body_is_limited_before_the_login(self, port: int) -> None:
        headers = {"Content-Type": "application/json"}
        for path in ("/api/login", "/api/logout"):
            answer = request(port, path, "POST", headers, body=b"{}" + b" " * 20_000)
            assert (answer.status, json.loads(answer.text)) == (
                413,
                {"error": "the body is larger than 16384 bytes"},
            )

    def test_names_that_are_no_text_can_be_logged(self, server: RunningServer, port: int) -> None:
        body = rb'{"user": "\udc80\n", "password": "\udc80"}'
        answer = request(port, "/api/login", "POST", {"Content-Type": "application/json"}, body=body)
        assert answer.status == 401
        server.process.wait_for(r'login failed user="\\udc80\\n"')

    def test_failed_logins_are_one_cause_per_address(self, server: RunningServer, port: int) -> None:
        for number in range(30):
            body = json.dumps({"user": f"user {number}", "password": "x"}).encode()
            assert request(port, "/api/login", "POST", {"Content-Type": "application/json"}, body=body).status
        assert server.process.output.count("login failed") <= 2


class TestRequests:
    """The limit of requests at a time, and failures."""

    @staticmethod
    async def answer(app: LimitedRequests, path: str) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        scope = {"type": "http", "path": path, "client": ("1.2.3.4", 5), "method": "GET", "headers": []}
        await app(scope, receive, send)
        return sent

    @pytest.mark.parametrize(
        ("error", "level"),
        [
            (ClientDisconnect(), logging.DEBUG),
            (asyncio.CancelledError(), logging.DEBUG),
            (RuntimeError("x"), logging.ERROR),
        ],
    )
    def test_failures_are_logged_once(
        self, log: RateLimitedLog, caplog: pytest.LogCaptureFixture, error: BaseException, level: int
    ) -> None:
        async def fail(*arguments: object) -> None:
            raise error

        app = LimitedRequests(cast("Any", fail), lambda peer: True, log)
        answers = [asyncio.run(self.answer(app, "/api/login")) for _ in range(20)]
        assert [record.levelno for record in caplog.records] == [level]
        if level == logging.ERROR:
            assert {answer[0]["status"] for answer in answers} == {500}

    def test_probes_have_places_of_their_own(self, log: RateLimitedLog) -> None:
        refused: list[str] = []

        def refuse(peer: str) -> bool:
            refused.append(peer)
            return len(refused) > 1  # The first time there is a slow client, whose place is free then.

        async def run() -> None:
            go_on = asyncio.Event()
            paths = []

            async def wait(scope: Any, receive: Any, send: Any) -> None:
                paths.append(scope["path"])
                if scope["path"] == "/slow":
                    await go_on.wait()

            app = LimitedRequests(wait, refuse, log)
            tasks = [asyncio.create_task(self.answer(app, "/slow")) for _ in range(MAX_REQUESTS)]
            await asyncio.sleep(0)
            assert refused == []
            assert await self.answer(app, "/health") == []
            assert await self.answer(app, "/other") == []
            start, _ = await self.answer(app, "/other")
            assert (start["status"], (b"retry-after", b"1") in start["headers"]) == (503, True)
            assert refused == ["1.2.3.4:5"] * 2
            go_on.set()
            await asyncio.gather(*tasks)
            assert await self.answer(app, "/other") == []
            assert paths == ["/slow"] * MAX_REQUESTS + ["/health", "/other", "/other"]

        asyncio.run(run())


class TestAdmission:
    def test_the_connection_that_waited_the_longest_makes_room(self, log: RateLimitedLog) -> None:
        admission = HttpAdmission(log)
        cut: list[int] = []
        tickets = [admission.admit("1.2.3.4", str(number)) for number in range(MAX_CONNECTIONS)]
        for number, ticket in enumerate(tickets[1:], 1):  # The first one is still being created.
            ticket.cut = lambda number=number: cut.append(number)
        admission.end_waiting(tickets[1])
        admission.begin_waiting(tickets[2])
        admission.admit("1.2.3.4", "new")
        assert cut == [3]
        admission.begin_waiting(tickets[3])  # It has ended, so nothing changes.
        for _ in range(MAX_CONNECTIONS - 3):
            admission.admit("1.2.3.4", "new")
        assert cut == [*range(3, MAX_CONNECTIONS), 2]
        assert admission.connections == MAX_CONNECTIONS
        with pytest.raises(BoxError, match="too many connections"):
            admission.admit("1.2.3.4", "new")
        assert admission.refused == MAX_CONNECTIONS - 1

    def test_a_slow_request_makes_room_for_another(self, log: RateLimitedLog) -> None:
        admission = HttpAdmission(log)
        cut: list[str] = []
        for peer in ("idle", "slow"):
            ticket = admission.admit("1.2.3.4", peer)
            ticket.cut = lambda peer=peer: cut.append(peer)
            ticket.has_request = peer == "slow"
        assert not admission.refuse_request("new")
        assert cut == ["slow"]
        assert admission.refuse_request("new")

    def test_handshakes_make_room(self, log: RateLimitedLog) -> None:
        admission = HttpAdmission(log)
        given_up: list[bool] = []
        for _ in range(MAX_CONNECTIONS):
            admission.admit("1.2.3.4", "x").begin_handshake(lambda: given_up.append(True))
        admission.admit("1.2.3.4", "x")
        assert given_up == [True]


class TestPacing:
    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    def test_small_steps_share_a_turn(self, clock: ManualClock) -> None:
        ran: list[int] = []
        now = [0.0]

        def small(number: int) -> None:
            now[0] += TURN / 4
            ran.append(number)

        pacing = Pacing(clock, lambda: now[0], lambda: now[0])
        for number in range(10):
            pacing.soon(functools.partial(small, number))
        clock.advance(0)
        assert ran == [0, 1, 2, 3]
        clock.advance(TURN * PAUSE)
        assert ran == [0, 1, 2, 3, 4, 5, 6, 7]

    def test_requests_come_first(self, clock: ManualClock) -> None:
        ran: list[Rank] = []
        pacing = Pacing(clock, lambda: 0.0, lambda: 0.0)
        for rank in (Rank.BODY, Rank.ACCEPT, Rank.REQUEST, Rank.BODY, Rank.REQUEST):
            pacing.soon(functools.partial(ran.append, rank), rank)
        assert len(pacing) == 5
        clock.advance(0)
        assert ran == [Rank.REQUEST, Rank.REQUEST, Rank.ACCEPT, Rank.BODY, Rank.BODY]

    def test_long_steps_run_one_at_a_time_with_pauses(self, clock: ManualClock) -> None:
        now, ran = [100.0], []

        def step(name: str, cost: float) -> Callable[[], None]:
            def run() -> None:
                now[0] += cost
                ran.append(name)

            return run

        pacing = Pacing(clock, lambda: now[0], lambda: now[0])
        first, second, third = step("a", 0.5), step("b", 0.25), step("c", 0)
        for each in (first, second, first, third):
            pacing.soon(each)
        pacing.forget(third)
        clock.advance(0)
        assert ran == ["a"]
        clock.advance(0.5 * PAUSE - 0.01)
        assert ran == ["a"]
        clock.advance(0.01)
        assert ran == ["a", "b"]
        pacing.soon(first)  # during the pause
        clock.advance(0.25 * PAUSE - 0.01)
        assert ran == ["a", "b"]
        now[0] += 1
        clock.advance(0.01)
        assert ran == ["a", "b", "a"]
        assert len(pacing) == 0

    def test_a_step_that_raises_ends_nothing(self, clock: ManualClock) -> None:
        ran: list[int] = []
        pacing = Pacing(clock, lambda: 0.0, lambda: 0.0)
        pacing.soon(lambda: 1 / 0)
        pacing.soon(lambda: ran.append(1))
        with pytest.raises(ZeroDivisionError):
            clock.advance(0)
        clock.advance(0)
        assert ran == [1]

    def test_the_parser_returns_few_events(self) -> None:
        parser = PacedParser()
        parser.receive_data(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + TINY_CHUNKS)
        for expected in ([h11.Request], [h11.Data] * EVENTS):
            parser.allowed, parser.is_held = EVENTS, False
            found = []
            while (event := parser.next_event()) is not h11.NEED_DATA:
                found.append(type(event))
            assert (found, parser.is_held) == (expected, True)

    @pytest.mark.parametrize("lines", [MAX_HEADER_LINES, MAX_HEADER_LINES + 1])
    def test_the_number_of_headers(self, lines: int) -> None:
        parser = PacedParser()
        parser.allowed = EVENTS
        parser.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * (lines - 1) + b"\r\n")
        if lines == MAX_HEADER_LINES:
            assert isinstance(parser.next_event(), h11.Request)
        else:
            with pytest.raises(h11.RemoteProtocolError, match="too large"):
                parser.next_event()


class _Transport(asyncio.Transport):
    """A transport without a socket; counts what the server does with it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reads = True
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0


class TestConnections:
    """Connections whose steps run when a test says so."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @staticmethod
    def connection(clock: ManualClock, log: RateLimitedLog) -> tuple[HttpConnection, _Transport, list[int]]:
        bodies: list[int] = []

        async def read(scope: Any, receive: Any, send: Any) -> None:
            size, has_more = 0, True
            while has_more:
                message = await receive()
                size += len(message.get("body", b""))
                bodies.append(size)
                has_more = message.get("more_body", False)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        times = itertools.count()
        config = Config(read, http="h11", ws="none", lifespan="off", interface="asgi3", log_config=None)
        config.load()
        admission, transport = HttpAdmission(log), _Transport()
        made = HttpConnection(
            config,
            ServerState(),
            admission,
            admission.admit(None, "x"),
            Pacing(clock, lambda: 0.0, lambda: float(next(times))),  # each step takes a second
            log,
            lambda: None,
        )
        made.connection_made(transport)
        return made, transport, bodies

    def test_tiny_chunks_are_parsed_in_steps(self, clock: ManualClock, log: RateLimitedLog) -> None:
        async def run() -> None:
            made, transport, bodies = self.connection(clock, log)
            made.data_received(LOGIN + b"Transfer-Encoding: chunked\r\n\r\n" + TINY_CHUNKS + b"0\r\n\r\n")
            assert not transport.reads
            steps = 0
            while not transport.written:
                clock.advance(1 + PAUSE)
                for _ in range(3):
                    await asyncio.sleep(0)
                steps += 1
                assert steps < 2000
            assert bodies[-1] == 10_000
            assert max(b - a for a, b in itertools.pairwise(bodies)) <= 4 * EVENTS
            assert transport.reads
            made.connection_lost(None)

        asyncio.run(run())

    def test_received_data_are_limited(self, clock: ManualClock, log: RateLimitedLog) -> None:
        """Whatever uvicorn does in between, nothing is read while something waits."""

        async def run() -> None:
            made, transport, _ = self.connection(clock, log)
            data = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n" * 100
            made.data_received(data)
            steps = 0
            while (answered := transport.written.count(b"HTTP/1.1 200")) < 100:
                assert not transport.reads
                clock.advance(1 + PAUSE)
                for _ in range(5):
                    await asyncio.sleep(0)
                assert transport.written.count(b"HTTP/1.1 200") <= answered + 1
                steps += 1
                assert steps < 500
            assert transport.reads
            made.connection_lost(None)

        asyncio.run(run())
