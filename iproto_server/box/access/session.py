"""Sessions: one for each connection, and one for the server's own work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from iproto_server.box.access.access_control import ADMIN, GUEST
from iproto_server.box.txn.trigger import Trigger, TriggerList
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import CurrentSession, SessionState

if TYPE_CHECKING:
    from iproto_server.box.access.access_control import AccessControl, Credentials


class SessionStorage(dict[str, object]):
    """Values that an application stores in a session: `storage["peer"]` or `storage.peer`.

    A missing name reads as None, like a missing key of a Lua table.
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
    """The connection of a session, for messages to its client."""

    def send_chunk(self, sync: int, data: bytes) -> None:
        """Send a message before the response to a request.

        Parameters:
            sync: the request's number.
            data: the message, packed.
        """

    def user_changed(self) -> None:
        """Note that the session acts as another user from now on."""


class Session(SessionState):
    """A session.

    Parameters:
        session_id: its number, unique during the run of the server.
        user: the user it acts as.
        kind: "binary" for a connection, "background" for the server's own work.
        peer: the client's address, or None.

    Attributes:
        user: the user that has logged in, or that a later `su` has set.
        credentials: the user whose privileges apply: `user`, or another one within `su` and setuid functions.
        channel: the connection to its client, or None.
        opened: when it was opened, in seconds since 1970.
        is_ended: whether its client sends no more requests. Nothing waits on its behalf any more, and it
            acquires nothing that a later request would have to release.
    """

    __slots__ = (
        "channel",
        "is_closed",
        "is_ended",
        "kind",
        "on_close",
        "opened",
        "peer",
        "storage",
        "user",
    )

    def __init__(self, session_id: int, user: Credentials, kind: str, peer: str | None = None) -> None:
        self.id = session_id
        self.user = user
        self.credentials = user
        self.kind = kind
        self.peer = peer
        self.opened = time.time()
        self.storage = SessionStorage()
        self.sync = 0
        self.is_closed = False
        self.is_ended = False
        self.channel: Channel | None = None
        self.on_close: dict[object, Callable[[], None]] = {}

    def become(self, user: Credentials) -> None:
        """Act as another user from now on."""
        self.user = user
        self.credentials = user
        if self.channel is not None:
            self.channel.user_changed()

    def end(self) -> None:
        """Cancel waiting calls of the session, and allow no new ones."""
        self.is_ended = True
        self.cancel_waits()

    def cancel_waits(self) -> None:
        """Answer every waiting call of the session without a value."""
        for callback in list(self.on_close.values()):
            callback()
        self.on_close.clear()


class ActingAs:
    """A block that runs with the privileges of another user, without changing the session's user.

    Parameters:
        session: the session.
        user: the user whose privileges apply in the block.
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
        # Code that acted as the session's user does so again, even if that user has changed in the block.
        session = self._session
        session.credentials = session.user if self._is_own else self._before


class _Become:
    """The result of `su`: the user is changed already, and a `with` block makes the change temporary."""

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


class SessionFacade(CurrentSession):
    """`box.session`: the current session, and triggers for the begin and end of sessions.

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
        "sessions",
    )

    def __init__(self, access: AccessControl) -> None:
        self._access = access
        self._last_id = 0
        self._connect = TriggerList()
        self._disconnect = TriggerList()
        self._authenticated = TriggerList()
        self.sessions: dict[int, Session] = {}
        self.current = self.open("background", None, ADMIN)
        self.background = self.current

    # -- the current session, with Tarantool's names --

    def exists(self, session_id: int) -> bool:
        """Whether a session of that number is open."""
        return session_id in self.sessions

    def peer(self, session_id: int | None = None) -> str | None:
        """The client's address ("HOST:PORT" or "unix/:"); None for a closed or internal session.

        Raises:
            BoxError: NO_SUCH_SESSION if `session_id` is given and no such session is open.
        """
        session = self.current if session_id is None else self.sessions.get(session_id)
        if session is None:
            raise BoxError(ErrorCode.NO_SUCH_SESSION, session_id)
        # As in Tarantool, which asks the socket: it is closed before on_disconnect runs.
        return None if session.is_closed else session.peer

    def user(self) -> str:
        """The name of the session's user."""
        return self.current.user.name

    def uid(self) -> int:
        """The id of the session's user."""
        return self.current.user.user_id

    def effective_user(self) -> str:
        """The name of the user whose privileges apply: another one within `su` and setuid functions."""
        return self.current.credentials.name

    def euid(self) -> int:
        """The id of the user whose privileges apply."""
        return self.current.credentials.user_id

    def type(self) -> str:
        """ "binary" for a connection, "background" for the server's own work."""
        return self.current.kind

    def sync(self) -> int:
        """The sync of the request being answered."""
        return self.current.sync

    def push(self, message: object) -> bool:
        """Send the client a message before the response to its request.

        It is sent at the end of the loop iteration, even if the transaction is undone.

        Source: Tarantool reference, "box.session.push()".

        Parameters:
            message: any value that can be packed.

        Returns: True.

        Raises:
            BoxError: SESSION_CLOSED if the client has disconnected, UNSUPPORTED for a session without client;
                errors of packing the message.
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
        """The application's values in the current session."""
        return self.current.storage

    def su(self, user: str | int, function: Callable[..., Any] | None = None, *args: object) -> Any:
        """Act as another user: permanently, for one call, or during a `with` block.

        As in Tarantool, all code may do so, whoever has called it. A permanent change applies to `user()`
        and to later requests of the session; otherwise only `effective_user()` changes.

        Parameters:
            user: the user's name or number.
            function: a function to call as that user; None: a permanent change, or one for the block of a
                `with` statement.
            args: the function's arguments.

        Returns: the function's result.

        Raises:
            BoxError: NO_SUCH_USER, also for a role; ACCESS_DENIED if the user lacks the privilege SESSION.
        """
        wanted = self._access.for_session(user)
        if function is None:
            return _Become(self.current, wanted)
        with ActingAs(self.current, wanted):
            return function(*args)

    # -- triggers --

    def on_connect(self, new: Trigger | None = None, old: Trigger | None = None) -> object:
        """Set a function (without arguments) that runs in a client's session after it has connected."""
        return self._connect.set(new, old)

    def on_disconnect(self, new: Trigger | None = None, old: Trigger | None = None) -> object:
        """Set a function (without arguments) that runs in a client's session after it has disconnected."""
        return self._disconnect.set(new, old)

    def on_auth(self, new: Trigger | None = None, old: Trigger | None = None) -> object:
        """Set a function (user name, whether it succeeded) that runs after an authentication."""
        return self._authenticated.set(new, old)

    # -- for the server --

    def open(self, kind: str, peer: str | None, user: str | int = GUEST) -> Session:
        """Open a session.

        Parameters:
            kind, peer: see `Session`.
            user: the user's name, or its number: users that every database has may have been renamed.
        """
        self._last_id += 1
        credentials = self._access.by_name(user) if isinstance(user, str) else self._access.by_id(user)
        session = Session(self._last_id, credentials, kind, peer)
        self.sessions[session.id] = session
        return session

    def close(self, session: Session) -> None:
        """Close a session and cancel its waiting calls."""
        self.sessions.pop(session.id, None)
        session.is_closed = True
        session.end()

    @property
    def trigger_lists(self) -> tuple[TriggerList, ...]:
        """All triggers of sessions."""
        return self._connect, self._disconnect, self._authenticated

    @property
    def connect_triggers(self) -> TriggerList:
        """The triggers that run on a connect."""
        return self._connect

    @property
    def disconnect_triggers(self) -> TriggerList:
        """The triggers that run on a disconnect."""
        return self._disconnect

    @property
    def authentication_triggers(self) -> TriggerList:
        """The triggers that run after an authentication."""
        return self._authenticated
