"""One client's connection: bytes in, requests to the dispatcher, responses out.

Flow control happens here. A client that does not read its answers is not read from, and neither is one with
requests in flight while the server has as many as `net_msg_max` allows; all others go on. A client that sends
many requests at a time is not read from either, while its requests are handled in turns (`fair_scheduler`).
Connections that are not read from are watched for their end (`hangups`).

`states` lists the states; `closing`, `responses`, `client_end` and `intake` have one part of the class each.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Final, cast

from iproto_server.errors import BoxError
from iproto_server.logging.log_setup import event
from iproto_server.native._native import Output
from iproto_server.protocol.framing import Frames
from iproto_server.protocol.greeting import encode_greeting
from iproto_server.protocol.response import encode_error
from iproto_server.server.connection.closing import END_GRACE, logger
from iproto_server.server.connection.intake import RequestIntake
from iproto_server.server.connection.listener import peer_name
from iproto_server.server.connection.rest import Rest
from iproto_server.server.connection.server_state import ServerState
from iproto_server.server.connection.states import ClientEnd, Event, Wait

SALT_SIZE: Final = 32


class Connection(RequestIntake, asyncio.Protocol):
    """The server's side of one connection.

    Requests that arrived whole before the client's end are handled after it, too, in turns with those of
    other connections; the session ends after the last one.

    Parameters:
        server: the state that connections share.
        ticket: the connection's admission ticket; None if connections are not counted.

    Attributes:
        is_closing: whether no more requests are handled; answers may still have to be sent.
        is_held: whether it is not read from, and requests that have arrived are held.
        is_lost: whether the transport is closed.
    """

    __slots__ = ()

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
            # The system accepted it before the listening socket was closed.
            self.close_after_output()
            return
        try:
            self._server.run_triggers(self.session, self._server.box.session.connect_triggers)
        except BoxError as error:
            # As in Tarantool: a client that on_connect refuses gets the reason, then the connection ends.
            self._refuse(error)
            self.close_after_output()

    def eof_received(self) -> bool:
        """Handle the client's end: close when the answers so far have been sent.

        Calls that wait are answered without a value.

        Returns: True, as the transport stays open for the answers.
        """
        self._end = ClientEnd.READ
        self.session.end()
        self._close_when_done()
        if not self.is_closing:
            asyncio.get_running_loop().call_later(END_GRACE, self._end_soon)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the requests that arrived before, cancel waiting calls, and end the session."""
        was_closing = self.is_closing
        self._enter(Event.LOSE)
        self._reason = error or "the client has gone"
        self._server.unsent.forget(self)
        self._server.hangups.forget(self, self._descriptor)
        self._output = Output()
        self._end_wait(Wait.READER | Wait.ROOM)
        if was_closing:
            self._finish()
            return
        self._rest = Rest(self._transport)
        if self._backlog is None:
            self._backlog = Frames()
        self._server.incoming.lost(self)
        has_more = self._read_rest()
        self.session.end()
        if not has_more:
            self._close_when_done()
        self.go_on()

    # -- the beginning --

    def _greet(self) -> None:
        version = self._server.config.announce_version
        self._transport.write(encode_greeting(version, self._server.box.uuid, self.salt))

    @staticmethod
    def refusal(server: ServerState, error: BoxError) -> bytes:
        """Encode the greeting and the error for a client that is refused.

        Parameters:
            server: the server.
            error: the reason.
        """
        version = server.config.announce_version
        greeting = encode_greeting(version, server.box.uuid, os.urandom(SALT_SIZE))
        return greeting + encode_error(0, server.box.catalog.schema_version, error)

    # -- the user and its limits --

    @property
    def is_confidential(self) -> bool:
        """Whether the transport cannot be read on the way: TLS, or a unix socket."""
        return self._is_confidential

    def log_in(self, user: str | None) -> None:
        """Count the connection as a user's from now on.

        Parameters:
            user: the user's name; None for guest.

        Raises:
            BoxError: SYSTEM, the user has too many connections; this one ends with that answer.
        """
        if self._ticket is not None:
            try:
                self._ticket.log_in(user)
            except BoxError:
                asyncio.get_running_loop().call_soon(self.close_after_output)
                raise

    def user_changed(self) -> None:
        """Apply the limits of the session's user, which is another one or has other privileges."""
        incoming = self._server.incoming
        self._decoder.limit_to(incoming.max_frame(self))
        incoming.user_changed(self)
        self.limits_changed()

    def was_used(self) -> bool:
        """Return whether the client has sent anything since the last call, or may wait for something."""
        had_received, self._has_received = self._has_received, False
        return (
            had_received
            or self.in_flight > 0
            or self.is_lost
            or self in self._server.turns
            or (self.subscriptions is not None and not self.subscriptions.is_empty)
        )

    # -- the end --

    @property
    def is_stopping(self) -> bool:
        """Whether the server is stopping, when waiting calls are given up."""
        return self._server.is_stopping

    def expel(self, error: BoxError) -> None:
        """Send an error, drop what is no request yet, and close.

        Parameters:
            error: the reason.
        """
        self._decoder.clear()
        if not self.is_closing:
            self._refuse(error)
            self.close_after_output()


def is_unix(transport: asyncio.BaseTransport) -> bool:
    """Whether the connection is one over a unix socket."""
    return not isinstance(transport.get_extra_info("peername"), tuple)
