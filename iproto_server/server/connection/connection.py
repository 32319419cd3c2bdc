"""One client's connection: bytes in, requests to the dispatcher, responses out.

Flow control happens here. A client that does not read its answers is not read from any more, and so is one
that has requests in flight when the whole server has as many as it may have; everybody else goes on. So is,
for a while, one that sends many requests at a time: it has its turns (`turns`). Whoever is not read from is
watched for its end (`hangups`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import cast

from iproto_server.box import Waiter
from iproto_server.box.access.session import Session
from iproto_server.errors import BoxError
from iproto_server.log_setup import event
from iproto_server.native import twin, twin_methods
from iproto_server.native._native import LARGE_ANSWER, REQUESTS_AT_ONCE, Output
from iproto_server.protocol.framing import FrameDecoder, Frames, FramingError
from iproto_server.protocol.greeting import encode_greeting
from iproto_server.protocol.response import encode_chunk, encode_error, response_sync, response_version
from iproto_server.server.client_connection import EventSubscriptions, RequestStreams
from iproto_server.server.connection.listener import peer_name
from iproto_server.server.connection.rest import Rest
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.limits.admission import Ticket

logger = logging.getLogger("iproto_server.connection")

SALT_SIZE = 32
CUT_AT_ONCE = 8192
"""Of what has been received, frames within so many bytes are cut out at a time."""
END_GRACE = 1.0
"""Seconds after which the socket of a client that sends no more is closed if its requests have to wait."""

_UNWATCHED, _WATCHED, _SENDS_NO_MORE, _IS_GONE, _IS_READ = range(5)
"""States of the client's end; in the last one: everything before it has been read."""


@twin_methods("data_received", "send_output", "_send")
class Connection(asyncio.Protocol):
    """The server's side of one connection.

    Parameters:
        server: what the connections of the server share.
        ticket: its place among the connections that there may be; None where nobody counts them.

    Attributes:
        is_closing: whether no more requests are carried out; what is answered may still have to be sent.

    Requests that arrived whole before the client's end are carried out after it, too, in turns with those of
    other connections; the session ends after the last one.
    """

    __slots__ = (
        "_backlog",
        "_decoder",
        "_descriptor",
        "_end",
        "_fault",
        "_handle",
        "_has_hurried",
        "_has_output",
        "_has_received",
        "_held_size",
        "_is_confidential",
        "_is_held",
        "_is_lost",
        "_is_reading_stopped",
        "_is_suspended",
        "_is_transport_full",
        "_is_write_paused",
        "_needs_room",
        "_output",
        "_reason",
        "_rest",
        "_server",
        "_ticket",
        "_traffic",
        "_transactions",
        "_transport",
        "in_flight",
        "is_closing",
        "salt",
        "session",
        "streams",
        "subscriptions",
    )

    session: Session
    _transport: asyncio.Transport

    def __init__(self, server: ServerState, ticket: Ticket | None = None) -> None:
        self._server = server
        self._ticket = ticket
        self._has_received = True
        self._traffic = server.traffic
        self._transactions = server.box.transactions
        self._decoder = FrameDecoder(server.config.max_frame, CUT_AT_ONCE)
        self._handle = server.dispatcher.handle
        self._fault: FramingError | None = None
        self._output = Output()
        self._held_size = 0
        self._has_output = False
        self._backlog: Frames | None = None
        self._is_write_paused = False
        self._is_transport_full = False
        self._needs_room = False
        self._is_held = False
        self._is_suspended = False
        self._has_hurried = False
        self._end = _UNWATCHED
        self._descriptor = -1
        self._is_confidential = False
        self._is_lost = False
        self._reason: object = None
        self._rest: Rest | None = None
        self.is_closing = False
        self._is_reading_stopped = False
        self.in_flight = 0
        self.subscriptions: EventSubscriptions | None = None
        self.salt = b""
        self.streams: RequestStreams | None = None

    # -- what the transport calls --

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the client, then tell the application."""
        self._transport = cast(asyncio.Transport, transport)
        self.salt = os.urandom(SALT_SIZE)
        is_encrypted = self._transport.get_extra_info("sslcontext") is not None
        self._is_confidential = is_encrypted or is_unix(self._transport)
        peer = peer_name(self._transport.get_extra_info("peername"))
        self.session = self._server.box.session.open("binary", peer)
        self.session.channel = self
        self._server.connections.add(self)
        self.user_changed()
        event(logger, logging.DEBUG, "connected", peer=peer, session=self.session.id)
        self._greet()
        if self._server.is_stopping:
            # Accepted by the system before it could be told that there will be no more.
            self.close_after_output()
            return
        try:
            self._server.run_triggers(self.session, self._server.box.session.connect_triggers)
        except BoxError as error:
            # As in Tarantool: who is refused by on_connect hears why, then the connection ends.
            self._refuse(error)
            self.close_after_output()

    def _greet(self) -> None:
        version = self._server.config.announce_version
        self._transport.write(encode_greeting(version, self._server.box.uuid, self.salt))

    @staticmethod
    def refusal(server: ServerState, error: BoxError) -> bytes:
        """The response to a client that is refused.

        Parameters:
            server: the server.
            error: why not.
        """
        version = server.config.announce_version
        greeting = encode_greeting(version, server.box.uuid, os.urandom(SALT_SIZE))
        return greeting + encode_error(0, server.box.catalog.schema_version, error)

    def log_in(self, user: str | None) -> None:
        """Count the connection as a user's from now on.

        Parameters:
            user: the user's name; None for guest.

        Raises:
            BoxError: SYSTEM, the user has as many as there may be; the connection ends with that answer.
        """
        if self._ticket is not None:
            try:
                self._ticket.log_in(user)
            except BoxError:
                asyncio.get_running_loop().call_soon(self.close_after_output)
                raise

    def _refuse(self, error: BoxError) -> None:
        """Tell the client what is no answer to a request of its."""
        self.reply(encode_error(0, self._server.box.catalog.schema_version, error))

    def data_received(self, data: bytes) -> None:
        """Carry out every request that is complete now."""
        self._has_received = True
        self._traffic.received += len(data)
        decoder = self._decoder
        frames = Frames()
        try:
            decoder.feed_to(frames, data)
        except FramingError as error:
            self._fault = error.with_traceback(None)
        if decoder.buffered or self in self._server.incoming:
            self._note_incoming(bool(frames))
            if self.is_closing:
                return
        if frames or self._fault is not None or decoder.has_more:
            self._carry_out(frames)

    def _note_incoming(self, is_new: bool) -> None:
        """Let what is received and no request yet count, and the time for it run while it is read."""
        decoder = self._decoder
        has_part = decoder.has_part and not self._is_held
        self._server.incoming.received(self, decoder.buffered, has_part, is_new)

    def eof_received(self) -> bool:
        """The client will send no more: close when what was answered so far has been sent.

        Calls that wait are answered without a value.

        Returns: that the transport is left to us.
        """
        self._end = _IS_READ
        self.session.end()
        self._close_when_done()
        if not self.is_closing:
            asyncio.get_running_loop().call_later(END_GRACE, self._end_soon)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Carry out what arrived before, give up what waits on the client's behalf, and end the session."""
        self._is_lost = True
        self._reason = error or "the client has gone"
        self._server.unsent.forget(self)
        self._server.hangups.forget(self, self._descriptor)
        self._output = Output()
        self._is_write_paused = self._is_transport_full = self._needs_room = False
        if self.is_closing:
            self._finish()
            return
        self._rest = Rest(self._transport)
        self._is_held = True
        if self._backlog is None:
            self._backlog = Frames()
        self._server.incoming.lost(self)
        has_more = self._read_rest()
        self.session.end()
        if not has_more:
            self._close_when_done()
        self.go_on()

    def _read_rest(self) -> bool:
        """Let a lost connection's backlog have what else has arrived. Returns whether there is any."""
        if self._backlog or self._decoder.has_more:
            return True
        data = b"" if self._rest is None else self._rest.read()
        if data and self._fault is None:
            assert self._backlog is not None
            self._traffic.received += len(data)
            try:
                self._decoder.feed_to(self._backlog, data)
            except FramingError as error:
                self._fault = error.with_traceback(None)
            self._note_incoming(True)
        return bool(data)

    def _close_when_done(self) -> None:
        """Close, unless there are requests that follow a waiting call in its stream."""
        if self.streams is None or not self.streams.waiting:
            self.close_after_output()

    def _finish(self) -> None:
        """End the session of a lost connection, and tell the application."""
        self.is_closing = True
        if self._ticket is not None:
            self._ticket.give_back()
        if self._rest is not None:
            self._rest.close()
        self._backlog = None
        self._output = Output()
        self._server.incoming.forget(self)
        self._server.unsent.forget(self)
        self.session.channel = None
        if self.subscriptions is not None:
            self.subscriptions.close()
        if self.streams is not None:
            for _ in range(self.streams.close()):
                self.taken_up()
        session = self.session
        event(
            logger,
            logging.DEBUG,
            "disconnected",
            peer=session.peer,
            session=session.id,
            user=session.user.name,
            reason=self._reason,
        )
        self._server.disconnected(self)

    def pause_writing(self) -> None:
        """The client reads slower than we answer: do not take more requests from it."""
        self._is_write_paused = self._is_transport_full = True
        self._server.unsent.add(self)
        self._hold()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._is_transport_full = False
        self._is_write_paused = self._needs_room
        self.go_on()

    @property
    def is_confidential(self) -> bool:
        """Whether nobody on the way can read what is sent: over TLS, or a unix socket."""
        return self._is_confidential

    # -- requests --

    def _carry_out(self, frames: Frames) -> None:
        if self._is_held:
            assert self._backlog is not None
            self._backlog.extend(frames)
            return
        if len(frames) > REQUESTS_AT_ONCE or self._decoder.has_more:
            self._carry_out_many(frames)
            return
        if self._has_hurried:
            self._has_hurried = False
        else:
            self._server.turns.has_others = True
        handle = self._handle
        while frames:
            if self.is_closing:
                return
            if self.must_hold():
                self._hold(frames)
                return
            handle(self, frames.popleft())
        if self._fault is not None:
            if self._is_suspended:
                self._hold()
            else:
                self._fail()

    def _carry_out_many(self, frames: Frames) -> None:
        """Carry out as many requests as there is time for, and leave the others to the next turns."""
        self._backlog = frames
        end = self._server.turns.begin()
        if end and self._work(end):
            if not self._is_held:
                self._backlog = None
        elif not self.is_closing:
            self._hold()

    def _work(self, end: float) -> bool:
        """Carry out requests of the backlog until a time.

        Returns:
            Whether all of them are.
        """
        backlog, decoder = self._backlog, self._decoder
        assert backlog is not None
        while True:
            has_time = carry_out_until(self, backlog, self._handle, end)
            # Of what comes behind a request that decides about it, nothing is judged before that.
            if backlog or self._is_suspended:
                return False
            if not decoder.has_more:
                break
            if not has_time:
                return False
            # Somebody may have logged in since the frame was found to be too large.
            decoder.limit_to(self._server.incoming.max_frame(self))
            try:
                decoder.more_to(backlog)
            except FramingError as error:
                self._fault = error.with_traceback(None)
            self._note_incoming(True)
        if self._fault is not None and not self.is_closing:
            self._fail()
        return True

    def _fail(self) -> None:
        """Answer that the following bytes cannot be understood, and close."""
        assert self._fault is not None
        self._refuse(self._server.incoming.refuse(self, self._fault))
        self.close_after_output()

    @property
    def is_behind(self) -> bool:
        """Whether the client has so much to read that it is sent nothing it has not asked for."""
        return (
            self._output.size + self._held_size > self._server.config.write_high_water
            or self._is_write_paused
        )

    @property
    def has_requests(self) -> bool:
        """Whether requests wait that have arrived; of a client that is not read from, there may be some."""
        return bool(self._backlog) or self._decoder.has_more or (self._is_held and not self._is_lost)

    def must_hold(self) -> bool:
        """Whether the next request has to wait: for the client to read, for requests in flight to end, or for
        the one before it."""
        return (
            self._output.size + self._held_size > self._server.config.write_high_water
            or self._is_write_paused
            or self._is_suspended
            or (self.in_flight > 0 and self._server.is_full)
        )

    def hold(self) -> None:
        """Take no more requests before the client has caught up."""
        self._hold()

    def _hold(self, frames: Frames | None = None) -> None:
        if self._backlog is None:
            self._backlog = Frames()
        if frames:
            self._backlog.extend(frames)
        if not self._is_held:
            self._is_held = True
            self._has_hurried = True
            if not self._transport.is_closing():
                self._transport.pause_reading()
            if self._decoder.has_part:
                self._server.incoming.paused(self)
        self.go_on()

    def go_on(self) -> None:
        """Stand in the line with what was held, unless it has to be held still."""
        if self.is_closing or not self._is_held:
            return
        if self.must_hold():
            self._keep_held()
        else:
            self._server.held.discard(self)
            self._server.turns.add(self)

    def take_turn(self, end: float) -> bool:
        """Carry out requests that were held, until a time.

        Parameters:
            end: the time, by `perf_counter`.

        Returns:
            Whether there is more to do.
        """
        if self.is_closing:
            return False
        is_done = self._work(end)
        if self._is_lost:
            self._output.take()  # nobody can be told
        if self.is_closing:
            return False
        if self.must_hold():
            self._keep_held()
            return False
        if not is_done:
            if self.in_flight:
                self._watch_for_end()
            return True
        if self._is_lost:
            if self._read_rest():
                return True
            self._close_when_done()
            return False
        self._backlog = None
        self._is_held = False
        if not self._transport.is_closing() and not self._is_reading_stopped:
            self._transport.resume_reading()
        if self._decoder.has_part:
            self._note_incoming(True)
        if self.subscriptions is not None:
            self.subscriptions.go_on()
        return False

    def _keep_held(self) -> None:
        # Whoever is suspended hears of its end: it need not be asked whenever requests in flight have ended.
        if not self._is_suspended:
            self._server.held.add(self)
        self._watch_for_end()

    def suspend(self) -> None:
        """Carry out no more requests before `resume`: they have to wait for the one that is being carried
        out."""
        self._is_suspended = True

    def resume(self) -> None:
        """Carry out requests again."""
        self._is_suspended = False
        self.go_on()

    @property
    def is_stopping(self) -> bool:
        """Whether it is the server that stops, when calls that wait are given up."""
        return self._server.is_stopping

    # -- the end of a client that is not read from --

    def _watch_for_end(self) -> None:
        """See the client's end from now on, although it is not read from; or act on what was seen."""
        if self._is_lost:
            return
        if self._end == _UNWATCHED:
            connected = self._transport.get_extra_info("socket")
            if connected is None or self._transport.is_closing():
                return
            self._descriptor = connected.fileno()
            try:
                self._server.hangups.watch(self, self._descriptor)
            except OSError as error:
                self._server.rate_limited_log.event(
                    logging.WARNING, "the end of a held connection will not be seen", reason=error.strerror
                )
            else:
                self._end = _WATCHED
        elif self._end != _WATCHED:
            asyncio.get_running_loop().call_soon(self._act_on_end)

    def hung_up(self, is_gone: bool) -> None:
        """The client has hung up. While it is read from, that is noticed by reading, behind its last request.

        Parameters:
            is_gone: whether it can be sent nothing more; otherwise it has only sent all it has to send.
        """
        self._end = _IS_GONE if is_gone else _SENDS_NO_MORE
        self._act_on_end()

    def _act_on_end(self) -> None:
        """Calls that wait end without a value, as nobody could take anything of what they wait for.

        Requests that came before the end are carried out; where the client is gone altogether, without being
        answered.
        """
        if self.is_closing or not self._is_held:
            return
        is_news = not self.session.is_ended
        if is_news:
            self._server.hung_up_while_held += 1
            self.session.end()
        if self._end == _IS_GONE:
            self._transport.abort()
        elif is_news:
            self._server.let_held_go_on()
            asyncio.get_running_loop().call_later(END_GRACE, self._end_soon)

    def _end_soon(self) -> None:
        """Close the socket of a client that sends no more, if its requests wait for procedures in flight."""
        if self.is_closing or self._is_lost:
            return
        is_waiting = (self._is_held and self._server.is_full) or not self._is_held
        if self.in_flight and is_waiting and not self.unsent:
            self._transport.abort()
        else:
            asyncio.get_running_loop().call_later(END_GRACE, self._end_soon)

    # -- answers that wait for room --

    def admit(self, size: int) -> bool:
        """Whether there is room for a large answer; where there is none, its request has to wait.

        Parameters:
            size: bytes of rows.
        """
        return self._is_lost or self._server.unsent.admit(self, size)

    def take_room(self) -> None:
        """Let the next large answer have room, whether there is some or not."""
        self._server.unsent.promise(self)

    def put_back(self, frame: bytes) -> None:
        """Carry out a request again when there is room for its answer, and those behind it later."""
        self._needs_room = self._is_write_paused = True
        if self._backlog is None:
            self._backlog = Frames()
        self._backlog.appendleft(frame)
        self._hold()

    def has_room(self) -> None:
        """There is room for the answer that waits."""
        self._needs_room = False
        self._is_write_paused = self._is_transport_full
        self.go_on()

    def postponed(self) -> None:
        """A request has to wait for another one of its stream."""
        self.in_flight += 1
        self._server.in_flight += 1
        self._server.parked += 1

    def taken_up(self) -> None:
        """Its turn has come."""
        self.in_flight -= 1
        self._server.in_flight -= 1
        self._server.parked -= 1

    def wait_for(
        self,
        waiter: Waiter,
        respond: Callable[[Waiter], bytes],
        then: Callable[[], object] | None = None,
    ) -> None:
        """Answer later: when the waiter is done, send what `respond` makes of it.

        What the request has changed before it began to wait has to be in the log by then.

        Parameters:
            waiter: what is waited for.
            respond: makes the response.
            then: called a little later, unless the connection closes; never within a transaction, as the
                one who is done with waiting may be.
        """
        self.in_flight += 1
        self._server.in_flight += 1
        is_parked = waiter.queue is not None
        self._server.parked += is_parked
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
            self._server.parked -= is_parked
            if not self.is_closing:
                if not self._is_lost:
                    self.reply(respond(waiter))
                if then is not None:
                    asyncio.get_running_loop().call_soon(go_on, then)
            if self._server.held:
                self._server.let_held_go_on()

        def go_on(then: Callable[[], object]) -> None:
            if not self.is_closing:
                then()
                if self._is_lost or self._end == _IS_READ:
                    self._stream_went_on()

        waiter.on_done(done)

    def _stream_went_on(self) -> None:
        """Requests of a stream were carried out after the client's end: those may have been the last ones."""
        if not (self._is_suspended or self in self._server.turns or self in self._server.held):
            self._close_when_done()

    # -- responses --

    def reply(self, response: bytes) -> None:
        """Send a response with the batch at the end of this loop iteration, after its rows are in the log."""
        if self._is_lost:
            return
        self._output.add(response, self._transactions.has_logged)
        if len(response) > LARGE_ANSWER:
            self._server.unsent.add(self)
        if not self._has_output:
            self._has_output = True
            self._server.batch.add(self)

    def push(self, frame: bytes) -> None:
        """Send with the batch what answers no request; it rests on no rows that are not in the log."""
        if self.is_closing or self._is_lost:
            return
        self._output.push(frame)
        if not self._has_output:
            self._has_output = True
            self._server.batch.add(self)

    def send_chunk(self, sync: int, data: bytes) -> None:
        """Send a message before the answer to a request; see `Channel`."""
        self.push(encode_chunk(sync, self._server.box.catalog.schema_version, data))

    @property
    def has_logged_output(self) -> bool:
        """Whether a response of this iteration rests on rows that are not in the log yet."""
        return self._output.has_logged

    def send_output(self) -> None:
        """Hand all responses to the transport, in one piece."""
        self._has_output = False
        self._send(self._output.take())

    def refuse_logged(self, error: BoxError) -> None:
        """The rows of this iteration could not be written: those who changed some are told so instead."""
        self._output.refuse(partial(self._refusal_of, error))

    @staticmethod
    def _refusal_of(error: BoxError, response: bytes) -> bytes:
        """The response if its rows could not be written."""
        return encode_error(response_sync(response), response_version(response), error)

    def take_output(self) -> Output:
        """Hand over all responses, to be given to `send` when the rows behind them are in the log."""
        if self._output.has_pushed:
            self._send(self._output.take_pushed())
        output = self._output.hand_over()
        self._held_size += output.size
        self._has_output = False
        return output

    def send(self, output: Output, error: BoxError | None = None) -> None:
        """Send what `take_output` has handed over.

        Parameters:
            output: what it has returned.
            error: what those who have changed something are told, if their rows could not be written.
        """
        self._held_size -= output.size
        if self._is_lost:
            if self in self._server.held:
                self._server.let_held_go_on()
            return
        if error is not None:
            output.refuse(partial(self._refusal_of, error))
        self._send(output.take())

    def _send(self, data: bytes) -> None:
        if not data or self._transport.is_closing():
            return
        self._traffic.sent += len(data)
        self._transport.write(data)
        if self.is_closing or self._is_held:
            self._sent()

    def _sent(self) -> None:
        """Something was sent: what has waited for that happens now."""
        if self.is_closing:
            self._close()
        elif not self._is_write_paused and self in self._server.held:
            self._server.let_held_go_on()

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent."""
        if self._is_lost:
            return 0
        return self._output.size + self._held_size + self._transport.get_write_buffer_size()

    def was_used(self) -> bool:
        """Whether anything has come from the client since the last call, or it may wait for something."""
        had_received, self._has_received = self._has_received, False
        return (
            had_received
            or self.in_flight > 0
            or self._is_lost
            or self in self._server.turns
            or (self.subscriptions is not None and not self.subscriptions.is_empty)
        )

    def limits_changed(self) -> None:
        """Another number of unread bytes is too much for the client from now on."""
        self.limit_unsent(None)

    def limit_unsent(self, size: int | None) -> None:
        """Let requests wait when so many bytes are unread, if that is less than otherwise."""
        if self._is_lost:
            return
        high_water = self._server.incoming.write_high_water(self)
        self._transport.set_write_buffer_limits(high=high_water if size is None else min(size, high_water))

    def user_changed(self) -> None:
        """The session acts for another user, or its user has other rights: what it may send changes."""
        incoming = self._server.incoming
        self._decoder.limit_to(incoming.max_frame(self))
        incoming.user_changed(self)
        self.limits_changed()

    def close_after_output(self) -> None:
        """Take no more requests; close when what is answered has been sent."""
        if self.is_closing:
            return
        self.is_closing = True
        # Whatever they wait for, the answer would not be sent.
        self.session.end()
        if self._is_lost:
            # Not within the request that may have caused it.
            asyncio.get_running_loop().call_soon(self._finish)
            return
        if self._transport.is_closing():
            return
        self._transport.pause_reading()
        self._close()

    def let_go(self) -> None:
        """Close, if the connection has waited for that."""
        if self.is_closing:
            self._close()

    def _close(self) -> None:
        """Close, unless there is something to send, or others are closed first."""
        if self._is_lost or self._has_output or self._held_size:
            return
        if self not in self._server.incoming.paced:
            self._transport.close()

    def stop_reading(self) -> None:
        """Take no more requests; those that have been received are still carried out."""
        self._is_reading_stopped = True
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def expel(self, error: BoxError) -> None:
        """Take no more requests, forget what is no request yet, and close when everything is sent.

        Parameters:
            error: why; the client is told.
        """
        self._decoder.clear()
        if not self.is_closing:
            self._refuse(error)
            self.close_after_output()

    def abort(self) -> None:
        """Close at once, whatever was not sent yet; requests that have arrived are carried out."""
        self._transport.abort()


@twin
def carry_out_until(
    connection: Connection,
    backlog: Frames,
    handle: Callable[[Connection, bytes], None],
    end: float,
) -> bool:
    """Carry out requests, one at least, until a time; or until the next one has to wait.

    Parameters:
        connection: whose they are.
        backlog: their frames; those that are carried out are taken away.
        handle: carries one out.
        end: the time, by `perf_counter`.

    Returns:
        Whether there is time for more.
    """
    while backlog:
        if connection.is_closing or connection.must_hold():
            return False
        handle(connection, backlog.popleft())
        if perf_counter() >= end:
            return False
    return True


def is_unix(transport: asyncio.BaseTransport) -> bool:
    """Whether the connection is one over a unix socket."""
    return not isinstance(transport.get_extra_info("peername"), tuple)
