"""The requests of a connection: handled when they arrive, or held and handled in turns."""

from __future__ import annotations

import math
from typing import Final

from iproto_server.native._native import REQUESTS_AT_ONCE
from iproto_server.protocol.framing import FrameDecoder, Frames, FramingError
from iproto_server.server.connection.client_end import WatchedConnection
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.connection.states import Event, Wait
from iproto_server.server.limits.admission import Ticket

CUT_AT_ONCE: Final = 8192
"""Bytes of what was received that are cut into frames at a time."""


class RequestIntake(WatchedConnection):
    """A connection that handles requests; see `ClosingConnection`.

    `ConnectionState.data_received` handles a few whole requests itself, and calls `_handle_many` for more
    and `_received` for anything else.
    """

    __slots__ = ()

    def __init__(self, server: ServerState, ticket: Ticket | None = None) -> None:
        super().__init__(server, ticket)
        self._decoder = FrameDecoder(server.config.max_frame, CUT_AT_ONCE)
        self._handle = server.dispatcher.handle

    # -- what arrives --

    def _received(self, data: bytes) -> None:
        """Handle every request that is complete now.

        Parameters:
            data: what was received; bytes behind a malformed length are ignored.
        """
        decoder = self._decoder
        frames = Frames()
        if self._fault is None:
            self._cut(frames, data)
        if decoder.buffered or self in self._server.incoming:
            self._note_incoming(bool(frames))
            if self.is_closing:
                return
        if frames or self._fault is not None or decoder.has_more:
            self._handle_new(frames)

    def _cut(self, frames: Frames, data: bytes | None) -> None:
        """Append the next frames of `data`, or of the buffer if it is None; note a malformed length."""
        try:
            if data is None:
                self._decoder.more_to(frames)
            else:
                self._decoder.feed_to(frames, data)
        except FramingError as error:
            self._fault = error.with_traceback(None)

    def _note_incoming(self, is_new: bool) -> None:
        """Count what is received and no request yet; time runs for it while the connection is read from."""
        decoder = self._decoder
        has_part = decoder.has_part and not self.is_held
        self._server.incoming.received(self, decoder.buffered, has_part, is_new)

    def _handle_new(self, frames: Frames) -> None:
        """Handle requests that have just arrived, or hold them."""
        if self.is_held:
            assert self._backlog is not None
            self._backlog.extend(frames)
            return
        if len(frames) > REQUESTS_AT_ONCE or self._decoder.has_more:
            self._handle_many(frames)
            return
        self._served_at_once()
        if not self._handle_frames(frames, math.inf):
            if not self.is_closing:
                self._hold(frames)
        elif self._fault is not None and not self.is_closing:
            if self._waits & Wait.REQUEST:
                self._hold()
            else:
                self._fail()

    def _handle_many(self, frames: Frames) -> None:
        """Handle as many requests as there is time for, and leave the others to the next turns."""
        self._backlog = frames
        end = self._server.turns.begin()
        if end and self._work(end):
            if not self.is_held:
                self._backlog = None
        elif not self.is_closing:
            self._hold()

    def _fail(self) -> None:
        """Answer that the following bytes are malformed, and close."""
        assert self._fault is not None
        self._refuse(self._server.incoming.refuse(self, self._fault))
        self.close_after_output()

    # -- held requests --

    @property
    def has_requests(self) -> bool:
        """Whether requests wait that have arrived; of a client that is not read from, there may be some."""
        return bool(self._backlog) or self._decoder.has_more or (self.is_held and not self.is_lost)

    def hold(self) -> None:
        """Handle no more requests until the client has read enough."""
        self._hold()

    def _hold(self, frames: Frames | None = None) -> None:
        """Hold requests, and read no more from the client.

        Parameters:
            frames: requests behind those that are held already.
        """
        if self._backlog is None:
            self._backlog = Frames()
        if frames:
            self._backlog.extend(frames)
        if not self.is_held and not self.is_closing:
            self._enter(Event.HOLD)
            self._has_hurried = True
            if not self._transport.is_closing():
                self._transport.pause_reading()
            if self._decoder.has_part:
                self._server.incoming.paused(self)
        self.go_on()

    def go_on(self) -> None:
        """Resume the requests that were held, unless they still have to wait."""
        if not self.is_held:
            return
        if self.must_hold():
            self._keep_held()
        else:
            self._server.held.discard(self)
            self._server.turns.add(self)

    def _keep_held(self) -> None:
        # A connection that waits for its own request hears of the end of that one by `resume`.
        if not self._waits & Wait.REQUEST:
            self._server.held.add(self)
        self._watch_for_end()

    def take_turn(self, end: float) -> bool:
        """Handle held requests.

        Parameters:
            end: until when, by `perf_counter`.

        Returns:
            Whether more are left.
        """
        if self.is_closing:
            return False
        is_done = self._work(end)
        if self.is_lost:
            self._output.take()  # nobody can be answered
        if self.is_closing:
            return False
        if self.must_hold():
            self._keep_held()
            return False
        if not is_done:
            if self.in_flight:
                self._watch_for_end()
            return True
        if self.is_lost:
            if self._read_rest():
                return True
            self._close_when_done()
            return False
        self._catch_up()
        return False

    def _catch_up(self) -> None:
        """Read from the client again, as all requests that had arrived are handled."""
        self._backlog = None
        self._enter(Event.CATCH_UP)
        if not self._transport.is_closing() and not self._is_reading_stopped:
            self._transport.resume_reading()
        if self._decoder.has_part:
            self._note_incoming(True)
        if self.subscriptions is not None:
            self.subscriptions.go_on()

    def _work(self, end: float) -> bool:
        """Handle requests of the backlog until a time.

        Returns:
            Whether all of them are handled.
        """
        backlog, decoder = self._backlog, self._decoder
        assert backlog is not None
        while True:
            has_time = self._handle_frames(backlog, end)
            # Bytes behind a request that decides about them are not judged before it has ended.
            if backlog or self._waits & Wait.REQUEST:
                return False
            if not decoder.has_more:
                break
            if not has_time:
                return False
            # The client may have logged in since the frame was found to be too large.
            decoder.limit_to(self._server.incoming.max_frame(self))
            self._cut(backlog, None)
            self._note_incoming(True)
        if self._fault is not None and not self.is_closing:
            self._fail()
        return True

    def _read_rest(self) -> bool:
        """Append what else has arrived to a lost connection's backlog. Return whether there is any."""
        if self._backlog or self._decoder.has_more:
            return True
        data = b"" if self._rest is None else self._rest.read()
        if data and self._fault is None:
            assert self._backlog is not None
            self._server.traffic.received += len(data)
            self._cut(self._backlog, data)
            self._note_incoming(True)
        return bool(data)

    # -- reasons to wait --

    def suspend(self) -> None:
        """Handle no more requests before `resume`: they wait for the one that is being handled."""
        self._wait(Wait.REQUEST)

    def resume(self) -> None:
        """Handle requests again after `suspend`."""
        self._end_wait(Wait.REQUEST)
        self.go_on()

    def pause_writing(self) -> None:
        """Handle no more requests: the client reads slower than it is answered. The transport calls this."""
        self._wait(Wait.READER)
        self._server.unsent.add(self)
        self._hold()

    def resume_writing(self) -> None:
        """Handle requests again: the client has caught up. The transport calls this."""
        self._end_wait(Wait.READER)
        self.go_on()

    def put_back(self, frame: bytes) -> None:
        """Handle a request again when there is room for its answer, and those behind it later."""
        self._wait(Wait.ROOM)
        if self._backlog is None:
            self._backlog = Frames()
        self._backlog.appendleft(frame)
        self._hold()

    def has_room(self) -> None:
        """Resume: there is room for the answer that waits."""
        self._end_wait(Wait.ROOM)
        self.go_on()
