"""One client's connection: bytes in, requests to the dispatcher, responses out.

Flow control happens here. A client that does not read its answers is not read from any more, and so is one
that has requests in flight when the whole server has as many as it may have; everybody else goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from iproto_server.box import Waiter
from iproto_server.box.session import Session
from iproto_server.errors import BoxError
from iproto_server.protocol.framing import FrameDecoder, FramingError
from iproto_server.protocol.greeting import encode_greeting
from iproto_server.protocol.response import encode_error, response_sync, response_version

if TYPE_CHECKING:
    from iproto_server.server.server import Server

logger = logging.getLogger("iproto_server.connection")

SALT_SIZE = 32


class Output(NamedTuple):
    """Responses that are held until rows are in the log.

    Attributes:
        responses: Whole frames.
        logged: The places of those among them that rest on such rows.
        size: How many bytes they are.
    """

    responses: list[bytes]
    logged: list[int]
    size: int

    def refused(self, error: BoxError) -> Output:
        """What is sent instead when the rows could not be written."""
        for place in self.logged:
            response = self.responses[place]
            self.responses[place] = encode_error(response_sync(response), response_version(response), error)
        return self


class Connection(asyncio.Protocol):
    """The server's side of one connection.

    Parameters:
        server: the server that accepted it.
    """

    __slots__ = (
        "_backlog",
        "_decoder",
        "_has_output",
        "_held_size",
        "_is_closing",
        "_is_held",
        "_is_reading_stopped",
        "_is_write_paused",
        "_logged",
        "_output",
        "_output_size",
        "_server",
        "_transactions",
        "_transport",
        "in_flight",
        "salt",
        "session",
    )

    session: Session
    _transport: asyncio.Transport

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transactions = server.box.transactions
        self._decoder = FrameDecoder(server.config.max_frame)
        self._output: list[bytes] = []
        self._logged: list[int] = []
        self._output_size = 0
        self._held_size = 0
        self._has_output = False
        self._backlog: deque[bytes] | None = None
        self._is_write_paused = False
        self._is_held = False
        self._is_closing = False
        self._is_reading_stopped = False
        self.in_flight = 0
        self.salt = b""

    # -- what the transport calls --

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the client, then tell the application."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._server.config.write_high_water)
        self.salt = os.urandom(SALT_SIZE)
        self.session = self._server.box.session.open("binary", peer_name(self._transport))
        self._server.connections.add(self)
        self._transport.write(encode_greeting(self._server.version, self._server.box.uuid, self.salt))
        if self._server.is_stopping:
            # Accepted by the system before it could be told that there will be no more.
            self.close_after_output()
            return
        try:
            self._server.run_triggers(self.session, self._server.box.session.connect_triggers)
        except BoxError as error:
            # As in Tarantool: who is refused by on_connect hears why, then the connection ends.
            self.reply(encode_error(0, self._server.box.catalog.schema_version, error))
            self.close_after_output()

    def data_received(self, data: bytes) -> None:
        """Carry out every request that is complete now."""
        self._server.bytes_received += len(data)
        try:
            frames = self._decoder.feed(data)
        except FramingError as error:
            self._carry_out(error.frames)
            self.reply(encode_error(0, self._server.box.catalog.schema_version, error))
            self.close_after_output()
            return
        if frames:
            self._carry_out(frames)

    def eof_received(self) -> bool:
        """The client will send no more: close when what was answered so far has been sent."""
        self.close_after_output()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the application, and give up what waits on the client's behalf."""
        self._is_closing = True
        self._backlog = None
        self._output.clear()
        self._logged.clear()
        self._server.disconnected(self)

    def pause_writing(self) -> None:
        """The client reads slower than we answer: do not take more requests from it."""
        self._is_write_paused = True
        self._hold()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._is_write_paused = False
        self.go_on()

    # -- requests --

    def _carry_out(self, frames: list[bytes]) -> None:
        if self._is_held:
            assert self._backlog is not None
            self._backlog.extend(frames)
            return
        handle = self._server.dispatcher.handle
        for number, frame in enumerate(frames):
            if self._is_closing:
                return
            if self._must_hold():
                self._hold(frames[number:])
                return
            handle(self, frame)

    def _must_hold(self) -> bool:
        """Whether the next request has to wait: for the client to read, or for requests in flight to end."""
        return (
            self._output_size + self._held_size > self._server.config.write_high_water
            or self._is_write_paused
            or (self.in_flight > 0 and self._server.is_full)
        )

    def _hold(self, frames: list[bytes] | None = None) -> None:
        if self._backlog is None:
            self._backlog = deque()
        if frames:
            self._backlog.extend(frames)
        if not self._is_held:
            self._is_held = True
            if not self._transport.is_closing():
                self._transport.pause_reading()
            self._server.held.add(self)

    def go_on(self) -> None:
        """Take up the requests that were held, as far as it goes."""
        if self._is_closing or self._is_reading_stopped:
            return
        backlog = self._backlog
        handle = self._server.dispatcher.handle
        while backlog:
            if self._must_hold():
                return
            handle(self, backlog.popleft())
        if self._must_hold() or not self._is_held:
            return
        self._backlog = None
        self._is_held = False
        self._server.held.discard(self)
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def wait_for(self, waiter: Waiter, respond: Callable[[Waiter], bytes]) -> None:
        """Answer later: when the waiter is done, send what `respond` makes of it.

        What the request has changed before it began to wait has to be in the log by then.
        """
        self.in_flight += 1
        self._server.in_flight += 1
        safe = self._server.batch.written() if self._transactions.has_logged else None

        def written(safe: asyncio.Future[None]) -> None:
            failure = safe.exception()
            if isinstance(failure, BoxError):
                waiter.error = failure
            answer(waiter)

        def done(waiter: Waiter) -> None:
            if safe is None:
                answer(waiter)
            elif safe.done():
                written(safe)
            else:
                safe.add_done_callback(written)

        def answer(waiter: Waiter) -> None:
            self.in_flight -= 1
            self._server.in_flight -= 1
            if not self._is_closing:
                self.reply(respond(waiter))
            if self._server.held:
                self._server.let_held_go_on()

        waiter.on_done(done)

    # -- responses --

    def reply(self, response: bytes) -> None:
        """Send a response with the batch at the end of this loop iteration, after its rows are in the log."""
        if self._transactions.has_logged:
            self._logged.append(len(self._output))
        self._output.append(response)
        self._output_size += len(response)
        if not self._has_output:
            self._has_output = True
            self._server.batch.add(self)

    @property
    def has_logged_output(self) -> bool:
        """Whether a response of this iteration rests on rows that are not in the log yet."""
        return bool(self._logged)

    def send_output(self) -> None:
        """Hand all responses to the transport, in one piece."""
        output = self._output
        self._output = []
        self._output_size = 0
        self._has_output = False
        if self._logged:
            self._logged = []
        self._send(output)

    def refuse_logged(self, error: BoxError) -> None:
        """The rows of this iteration could not be written: those who changed some are told so instead."""
        Output(self._output, self._logged, 0).refused(error)

    def take_output(self) -> Output:
        """Hand over all responses, to be given to `send` when the rows behind them are in the log."""
        output = Output(self._output, self._logged, self._output_size)
        self._output = []
        self._logged = []
        self._held_size += self._output_size
        self._output_size = 0
        self._has_output = False
        return output

    def send(self, output: Output) -> None:
        """Send what `take_output` has handed over."""
        self._held_size -= output.size
        self._send(output.responses)

    def _send(self, responses: list[bytes]) -> None:
        if not responses or self._transport.is_closing():
            return
        data = responses[0] if len(responses) == 1 else b"".join(responses)
        self._server.bytes_sent += len(data)
        self._transport.write(data)
        if self._is_closing:
            if not self._held_size and not self._has_output:
                self._transport.close()
        elif self._is_held and not self._is_write_paused:
            self._server.let_held_go_on()

    def close_after_output(self) -> None:
        """Take no more requests; close when what is answered has been sent."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._transport.is_closing():
            return
        self._transport.pause_reading()
        if not self._has_output and not self._held_size:
            self._transport.close()

    def stop_reading(self) -> None:
        """Take no more requests; those that were taken are still answered."""
        self._is_reading_stopped = True
        self._backlog = None
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def abort(self) -> None:
        """Close at once, whatever was not sent yet."""
        self._transport.abort()


def peer_name(transport: asyncio.BaseTransport) -> str:
    """The address at the other end, written as `box.session.peer()` writes it."""
    name = transport.get_extra_info("peername")
    if not isinstance(name, tuple):
        return "unix/:"
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
