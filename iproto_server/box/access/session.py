"""Sessions: who is calling. One for every connection, one for the server itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from iproto_server.box.txn.trigger import Trigger, TriggerList
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin_methods

if TYPE_CHECKING:
    from iproto_server.box.access.access_control import AccessControl, Credentials


class SessionStorage(dict[str, object]):
    """What an application remembers for the life of a session: `storage["peer"]` or `storage.peer`.

    A name that was never set reads as None, as a missing key of a Lua table does.
    """

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        self.pop(name, None)


class Channel(Protocol):
    """The way to a session's client."""

    def send_chunk(self, sync: int, data: bytes) -> None:
        """Send a message before the answer to the request with that number.

        Parameters:
            sync: the request's number.
            data: the message, packed.
        """

    def user_changed(self) -> None:
        """The session acts for another user from now on."""


class Session:
    """One caller.

    Parameters:
        session_id: a number no other session of this run has.
        user: the user it acts for.
        kind: "binary" for a connection, "background" for the server's own work.
        peer: the address at the other end, None where there is none.

    Attributes:
        user: who has logged in, or what `su` has made of it since.
        credentials: whose rights apply now: those of `user`, except where a stretch of code acts as another.
        channel: the way to its client, None where there is none.
        is_ended: whether its client sends no more requests: nothing waits on its behalf any more, and it is
            given nothing that a later request would have to give back.
    """

    __slots__ = (
        "channel",
        "credentials",
        "id",
        "is_closed",
        "is_ended",
        "kind",
        "on_close",
        "peer",
        "storage",
        "sync",
        "user",
    )

    def __init__(self, session_id: int, user: Credentials, kind: str, peer: str | None = None) -> None:
        self.id = session_id
        self.user = user
        self.credentials = user
        self.kind = kind
        self.peer = peer
        self.storage = SessionStorage()
        self.sync = 0
        self.is_closed = False
        self.is_ended = False
        self.channel: Channel | None = None
        self.on_close: dict[object, Callable[[], None]] = {}

    def become(self, user: Credentials) -> None:
        """Act for another user from now on."""
        self.user = user
        self.credentials = user
        if self.channel is not None:
            self.channel.user_changed()

    def end(self) -> None:
        """Let nothing wait on behalf of the session, now and from now on."""
        self.is_ended = True
        self.cancel_waits()

    def cancel_waits(self) -> None:
        """Answer, without a value, every call that waits on behalf of the session."""
        for callback in list(self.on_close.values()):
            callback()
        self.on_close.clear()


class ActingAs:
    """A block in which code runs with another user's rights, while the session stays its user's.

    Parameters:
        session: the session.
        user: whose rights apply in the block.
    """

    __slots__ = ("_before", "_is_own", "_session", "_user")

    def __init__(self, session: Session, user: Credentials) -> None:
        self._session = session
        self._user = user

    def __enter__(self) -> None:
        session = self._session
        self._before = session.credentials
        self._is_own = session.credentials is session.user
        session.credentials = self._user

    def __exit__(self, *error: object) -> None:
        # Who acted as itself does so again, also when it has become somebody else for good in the block.
        session = self._session
        session.credentials = session.user if self._is_own else self._before


class _Become:
    """What `su` returns: the session is another user's already, and a `with` block makes that temporary."""

    __slots__ = ("_acting", "_credentials", "_session", "_user", "_wanted")

    def __init__(self, session: Session, wanted: Credentials) -> None:
        self._session = session
        self._wanted = wanted
        self._user, self._credentials = session.user, session.credentials
        session.become(wanted)

    def __enter__(self) -> None:
        session = self._session
        session.user, session.credentials = self._user, self._credentials
        if session.channel is not None:
            session.channel.user_changed()
        self._acting = ActingAs(self._session, self._wanted)
        self._acting.__enter__()

    def __exit__(self, *error: object) -> None:
        self._acting.__exit__(*error)


@twin_methods("id")
class SessionFacade:
    """`box.session`: the session on whose behalf code runs now, and what happens as sessions come and go.

    Source: Tarantool reference, "Submodule box.session".

    Parameters:
        access: the users.
    """

    __slots__ = (
        "_access",
        "_authenticated",
        "_connect",
        "_disconnect",
        "_last_id",
        "background",
        "current",
        "sessions",
    )

    def __init__(self, access: AccessControl) -> None:
        self._access = access
        self._last_id = 0
        self._connect = TriggerList()
        self._disconnect = TriggerList()
        self._authenticated = TriggerList()
        self.sessions: dict[int, Session] = {}
        self.current = self.open("background", None, user="admin")
        self.background = self.current

    # -- the current session, under the names Tarantool gives it --

    def id(self) -> int:
        """The current session's number."""
        return self.current.id

    def exists(self, session_id: int) -> bool:
        """Whether a session of that number is open."""
        return session_id in self.sessions

    def peer(self, session_id: int | None = None) -> str | None:
        """The address at the other end ("HOST:PORT" or "unix/:"), None for a closed or internal session.

        Raises:
            BoxError: NO_SUCH_SESSION when `session_id` is given and no such session is open.
        """
        session = self.current if session_id is None else self.sessions.get(session_id)
        if session is None:
            raise BoxError(ErrorCode.NO_SUCH_SESSION, session_id)
        # Tarantool asks the socket, which by the time of on_disconnect is closed.
        return None if session.is_closed else session.peer

    def user(self) -> str:
        """The name of the user the session acts for."""
        return self.current.user.name

    def uid(self) -> int:
        """The id of that user."""
        return self.current.user.user_id

    def effective_user(self) -> str:
        """The name of the user whose rights apply now: as `user`, but within `su` and setuid functions."""
        return self.current.credentials.name

    def euid(self) -> int:
        """The id of that user."""
        return self.current.credentials.user_id

    def type(self) -> str:
        """ "binary" for a connection, "background" for the server's own work."""
        return self.current.kind

    def sync(self) -> int:
        """The sync of the request being answered."""
        return self.current.sync

    def push(self, message: object) -> bool:
        """Send the client a message before the answer to its request.

        It goes with the next batch, also when the transaction is undone.

        Source: Tarantool reference, "box.session.push()".

        Parameters:
            message: anything that can be packed.

        Returns: True.

        Raises:
            BoxError: SESSION_CLOSED when the client has gone, UNSUPPORTED when the session never had one;
                what packing the message raises.
        """
        session = self.current
        if session.is_closed:
            raise BoxError(ErrorCode.SESSION_CLOSED)
        if session.channel is None:
            raise BoxError(ErrorCode.UNSUPPORTED, f"Session '{session.kind}'", "push()")
        session.channel.send_chunk(session.sync, codec.pack(message))
        return True

    @property
    def storage(self) -> SessionStorage:
        """What the application keeps with the current session."""
        return self.current.storage

    def su(self, user: str | int, function: Callable[..., Any] | None = None, *args: object) -> Any:
        """Act as another user: for good, for one call, or for the length of a `with` block.

        As in Tarantool all code may do so, whoever has called it. For good, the session's later requests are
        the other user's, and so is `user()`; otherwise only `effective_user()` is.

        Parameters:
            user: the user's name or number.
            function: what to call as that user; None: become the user, for good, or for the block if this
                stands in a `with` statement.
            args: the function's arguments.

        Returns: what the function returns.

        Raises:
            BoxError: NO_SUCH_USER, also for a role; ACCESS_DENIED where the user has no right to a session.
        """
        wanted = self._access.for_session(user)
        if function is None:
            return _Become(self.current, wanted)
        with ActingAs(self.current, wanted):
            return function(*args)

    # -- triggers --

    def on_connect(self, new: Trigger | None = None, old: Trigger | None = None) -> object:
        """Set a function (without arguments) that runs as a client's session when it has connected."""
        return self._connect.set(new, old)

    def on_disconnect(self, new: Trigger | None = None, old: Trigger | None = None) -> object:
        """Set a function (without arguments) that runs as a client's session when it has disconnected."""
        return self._disconnect.set(new, old)

    def on_auth(self, new: Trigger | None = None, old: Trigger | None = None) -> object:
        """Set a function (user name, whether it succeeded) that runs after an authentication."""
        return self._authenticated.set(new, old)

    # -- for the server --

    def open(self, kind: str, peer: str | None, user: str = "guest") -> Session:
        """A new session, known by its number until it is closed."""
        self._last_id += 1
        session = Session(self._last_id, self._access.by_name(user), kind, peer)
        self.sessions[session.id] = session
        return session

    def close(self, session: Session) -> None:
        """Forget a session; what waited on its behalf is told."""
        self.sessions.pop(session.id, None)
        session.is_closed = True
        session.end()

    @property
    def trigger_lists(self) -> tuple[TriggerList, ...]:
        """All that runs as sessions come and go."""
        return self._connect, self._disconnect, self._authenticated

    @property
    def connect_triggers(self) -> TriggerList:
        """What runs on a connect."""
        return self._connect

    @property
    def disconnect_triggers(self) -> TriggerList:
        """What runs on a disconnect."""
        return self._disconnect

    @property
    def authentication_triggers(self) -> TriggerList:
        """What runs after an authentication."""
        return self._authenticated
