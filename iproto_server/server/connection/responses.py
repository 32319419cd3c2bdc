"""The responses of a connection: held until their rows are in the log, and limited until the client reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from iproto_server.box import Waiter
from iproto_server.errors import BoxError
from iproto_server.native._native import Output
from iproto_server.protocol.response import encode_chunk, encode_error, response_sync, response_version
from iproto_server.server.connection.closing import ClosingConnection
from iproto_server.server.connection.states import ClientEnd, Wait


class RespondingConnection(ClosingConnection):
    """A connection that sends responses; see `ClosingConnection`."""

    __slots__ = ()

    def wait_for(
        self,
        waiter: Waiter,
        respond: Callable[[Waiter], bytes],
        then: Callable[[], object] | None = None,
    ) -> None:
        """Send the response that `respond` makes when the waiter is done, then call `then`.

        The response is sent after the rows that the request has changed before it began to wait are logged.

        Parameters:
            waiter: ends with the result.
            respond: makes the response.
            then: called a little later, unless the connection closes; never within a transaction, where a
                waiter may end.
        """
        server = self._server
        self.in_flight += 1
        server.in_flight += 1
        is_parked = waiter.queue is not None
        server.parked += is_parked
        safe = server.batch.written() if server.transactions.has_logged else None

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
            server.in_flight -= 1
            server.parked -= is_parked
            if not self.is_closing:
                if not self.is_lost:
                    self.reply(respond(waiter))
                if then is not None:
                    asyncio.get_running_loop().call_soon(go_on, then)
            if server.held:
                server.let_held_go_on()

        def go_on(then: Callable[[], object]) -> None:
            if not self.is_closing:
                then()
                if self.is_lost or self._end is ClientEnd.READ:
                    self._stream_went_on()

        waiter.on_done(done)

    def send_chunk(self, sync: int, data: bytes) -> None:
        """Send a message before the response to a request; see `Channel`."""
        self.push(encode_chunk(sync, self._server.box.catalog.schema_version, data))

    def _refuse(self, error: BoxError) -> None:
        """Send an error that answers no request."""
        self.reply(encode_error(0, self._server.box.catalog.schema_version, error))

    # -- group commit --

    @property
    def has_logged_output(self) -> bool:
        """Whether a response of this iteration rests on rows that are not in the log yet."""
        return self._output.has_logged

    def refuse_logged(self, error: BoxError) -> None:
        """Replace the responses that rest on rows which could not be written by an error."""
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
            error: replaces the responses that rest on rows which could not be written; None if all were.
        """
        self._held_size -= output.size
        if self.is_lost:
            if self in self._server.held:
                self._server.let_held_go_on()
            return
        if error is not None:
            output.refuse(partial(self._refusal_of, error))
        self._send(output.take())

    def _sent(self) -> None:
        """Close, or resume requests, if either has waited until something was sent."""
        if self.is_closing:
            self._close()
        elif not self._waits & (Wait.READER | Wait.ROOM) and self in self._server.held:
            self._server.let_held_go_on()

    # -- limits of unsent bytes --

    def admit(self, size: int) -> bool:
        """Return whether there is room for a large answer; if not, its request has to wait.

        Parameters:
            size: bytes of rows.
        """
        return self.is_lost or self._server.unsent.admit(self, size)

    def take_room(self) -> None:
        """Admit the next large answer in any case."""
        self._server.unsent.promise(self)

    def limits_changed(self) -> None:
        """Apply the configured limit of unread bytes."""
        self.limit_unsent(None)

    def limit_unsent(self, size: int | None) -> None:
        """Pause requests above `size` unread bytes, if that is less than the usual limit."""
        if self.is_lost:
            return
        high_water = self._server.incoming.write_high_water(self)
        self._transport.set_write_buffer_limits(high=high_water if size is None else min(size, high_water))
