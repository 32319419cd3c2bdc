"""The interface of a client's connection, for request handlers, limits and statistics.

`connection.connection.Connection` implements it. The modules below that one depend on this interface alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from iproto_server.box import Waiter
from iproto_server.box.access.session import Session
from iproto_server.errors import BoxError
from iproto_server.protocol.request import Request

Result = TypeVar("Result")


class RequestStreams(Protocol):
    """The streams of a connection; `requests.streams.Streams` implements it."""

    @property
    def waiting(self) -> int:
        """The number of postponed requests."""

    def postpone(self, request: Request) -> bool:
        """Queue a request behind a waiting call of its stream; return False if there is none."""

    def carry_out(
        self, request: Request, schema_version: int, handle: Callable[[], Result]
    ) -> Result | bytes:
        """Answer a request of a stream."""

    def begin_to_wait(self, stream_id: int) -> None:
        """Postpone the stream's next requests until its call has been answered."""

    def end_wait(self, stream_id: int) -> None:
        """Let the stream's requests run again."""

    def next_request(self, stream_id: int) -> Request | None:
        """Return the postponed request that is due, if any."""

    def close(self) -> int:
        """Roll back all transactions, and return the number of postponed requests."""


class EventSubscriptions(Protocol):
    """The keys a connection watches; `requests.watch.Subscriptions` implements it."""

    def __contains__(self, key: str) -> bool:
        """Whether a key is watched."""

    @property
    def is_empty(self) -> bool:
        """Whether no key is watched."""

    def watch(self, key: str) -> None:
        """Watch a key, or acknowledge its last event."""

    def unwatch(self, key: str) -> None:
        """Stop watching a key."""

    def go_on(self) -> None:
        """Send the events that were held back."""

    def close(self) -> None:
        """Stop watching all keys."""


class ClientConnection(Protocol):
    """A client's connection.

    Attributes:
        session: the client's session.
        salt: random bytes of the greeting, which passwords are scrambled with.
        streams: the connection's streams; None before the first request of one.
        subscriptions: the keys it watches; None before the first WATCH.
    """

    session: Session
    salt: bytes
    streams: RequestStreams | None
    subscriptions: EventSubscriptions | None

    @property
    def is_closing(self) -> bool:
        """Whether no more requests are handled."""

    # -- responses --

    def reply(self, response: bytes, /) -> None:
        """Send a response at the end of this loop iteration, after its rows are in the log."""

    def push(self, frame: bytes, /) -> None:
        """Send a frame that answers no request."""

    def wait_for(
        self,
        waiter: Waiter,
        respond: Callable[[Waiter], bytes],
        then: Callable[[], object] | None = None,
    ) -> None:
        """Send the response that `respond` makes when the waiter is done, then call `then`."""

    # -- flow control --

    @property
    def is_behind(self) -> bool:
        """Whether the client has so many unsent bytes that it gets no events."""

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent."""

    def admit(self, size: int) -> bool:
        """Whether there is room for an answer of `size` bytes; if not, its request has to wait."""

    def take_room(self) -> None:
        """Admit the next large answer in any case."""

    def has_room(self) -> None:
        """Resume: there is room for the answer that waits."""

    def put_back(self, frame: bytes) -> None:
        """Handle a request again when there is room for its answer."""

    def limit_unsent(self, size: int | None) -> None:
        """Pause requests above `size` unread bytes, if that is less than the usual limit."""

    def hold(self) -> None:
        """Handle no more requests until the client has read enough."""

    def go_on(self) -> None:
        """Resume the requests that were held, unless they still have to wait."""

    @property
    def has_requests(self) -> bool:
        """Whether requests wait that have arrived; of a client that is not read from, there may be some."""

    def suspend(self) -> None:
        """Handle no more requests before `resume`."""

    def resume(self) -> None:
        """Handle requests again after `suspend`."""

    def take_turn(self, end: float) -> bool:
        """Handle held requests until `end` (by `perf_counter`); return whether more are left."""

    def postponed(self) -> None:
        """Count a postponed request of a stream as in flight."""

    def taken_up(self) -> None:
        """End counting a postponed request of a stream as in flight."""

    def was_used(self) -> bool:
        """Whether the client has sent anything since the last call, or may wait for something."""

    # -- the user and its limits --

    @property
    def is_confidential(self) -> bool:
        """Whether the transport cannot be read on the way: TLS, or a unix socket."""

    def log_in(self, user: str | None) -> None:
        """Count the connection as a user's; None for guest. Raises BoxError SYSTEM above the limit."""

    def user_changed(self) -> None:
        """Apply the limits of the session's user."""

    def limits_changed(self) -> None:
        """Apply the configured limit of unread bytes."""

    # -- closing --

    @property
    def is_stopping(self) -> bool:
        """Whether the server is stopping."""

    def hung_up(self, is_gone: bool) -> None:
        """Handle the client's end of the connection; `is_gone`: nothing can be sent to it either."""

    def stop_reading(self) -> None:
        """Take no more requests, and handle those already received."""

    def expel(self, error: BoxError) -> None:
        """Send an error, and close."""

    def close_after_output(self) -> None:
        """Take no more requests, and close when all answers are sent."""

    def let_go(self) -> None:
        """Close now, if the connection waits for its paced close."""

    def abort(self) -> None:
        """Close at once, without sending what is left; requests that have arrived are handled."""
