"""Sessions: who is calling. One for every connection, one for the server itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from iproto_server.box.trigger import Trigger, TriggerList
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.access import AccessControl, Credentials


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


class Session:
    """One caller.

    Parameters:
        session_id: a number no other session of this run has.
        credentials: the user it acts for.
        kind: "binary" for a connection, "background" for the server's own work.
        peer: the address at the other end, None where there is none.
    """

    __slots__ = ("credentials", "id", "is_closed", "kind", "on_close", "peer", "storage", "sync")

    def __init__(self, session_id: int, credentials: Credentials, kind: str, peer: str | None = None) -> None:
        self.id = session_id
        self.credentials = credentials
        self.kind = kind
        self.peer = peer
        self.storage = SessionStorage()
        self.sync = 0
        self.is_closed = False
        self.on_close: dict[object, Callable[[], None]] = {}

    def give_up(self) -> None:
        """Answer, without a value, every call that waits on behalf of the session."""
        for callback in list(self.on_close.values()):
            callback()
        self.on_close.clear()


class SessionFacade:
    """`box.session`: the session on whose behalf code runs now, and what happens as sessions come and go.

    Source: Tarantool reference, "Submodule box.session".

    Parameters:
        access: the users.
    """

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
        return self.current.credentials.name

    def uid(self) -> int:
        """The id of that user."""
        return self.current.credentials.user_id

    def euid(self) -> int:
        """The id of the user whose rights apply now (as `uid`, but for `su`)."""
        return self.current.credentials.user_id

    def type(self) -> str:
        """ "binary" for a connection, "background" for the server's own work."""
        return self.current.kind

    def sync(self) -> int:
        """The sync of the request being answered."""
        return self.current.sync

    @property
    def storage(self) -> SessionStorage:
        """What the application keeps with the current session."""
        return self.current.storage

    @contextmanager
    def su(self, user: str) -> Iterator[None]:
        """Act as another user for the length of a `with` block.

        Raises:
            BoxError: NO_SUCH_USER.
        """
        session = self.current
        before = session.credentials
        session.credentials = self._access.by_name(user)
        try:
            yield
        finally:
            session.credentials = before

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
        session.give_up()

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
