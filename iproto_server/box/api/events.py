"""Events: keys with values, and those who watch them.

A key's value is replaced by broadcasting another one; whoever watches the key is told the newest, not every
value there has been in between. A watcher that has been told is not told again before it has acknowledged, so
there is never more than one value under way to it.

Source: Tarantool reference, "Event watchers", "System events".
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.txn.transaction import TransactionManager

logger = logging.getLogger("iproto_server.events")

Notify = Callable[["Watcher", bytes | None], object]
"""Tells a watcher its key's packed value, None where it has none."""

SYSTEM_PREFIX: Final = "box."
"""What the names of the server's own keys begin with; nobody else may broadcast them."""

ID: Final = "box.id"
STATUS: Final = "box.status"
ELECTION: Final = "box.election"
SCHEMA: Final = "box.schema"
SHUTDOWN: Final = "box.shutdown"


class _State:
    """A key: its newest value, and the one that watchers may be told.

    The two differ while the newest rests on rows that are not in the log yet.
    """

    __slots__ = ("data", "key", "published", "published_version", "version", "watchers")

    def __init__(self, key: str) -> None:
        self.key = key
        self.data: bytes | None = None
        self.version = 0
        self.published: bytes | None = None
        self.published_version = 0
        self.watchers: dict[Watcher, None] = {}


class Watcher:
    """Somebody who is told of a key's value: once in the beginning, then whenever it is broadcast.

    Attributes:
        key: the key.
    """

    __slots__ = ("_events", "_is_idle", "_notify", "_state", "_version", "key")

    def __init__(self, events: Events, state: _State, notify: Notify) -> None:
        self.key = state.key
        self._events = events
        self._state: _State | None = state
        self._notify = notify
        self._version = 0
        self._is_idle = False

    @property
    def is_registered(self) -> bool:
        """Whether it may still be told something."""
        return self._state is not None

    def acknowledge(self) -> None:
        """The watcher has taken note of what it was told: it may be told the next value."""
        state = self._state
        if state is None or self._is_idle or self in self._events.pending:
            return
        if self._version == state.published_version:
            self._is_idle = True
        else:
            self._events.schedule(self)

    def notify_again(self) -> None:
        """The watcher could not take what it was told: tell it the value there is then."""
        if self._state is not None:
            self._events.schedule(self)

    def unregister(self) -> bool:
        """Tell it nothing any more.

        Returns: whether it was registered until now.
        """
        state, self._state = self._state, None
        if state is None:
            return False
        self._events.pending.pop(self, None)
        del state.watchers[self]
        self._events.drop_unused(state)
        return True

    def value_changed(self) -> None:
        """The key has another value to tell."""
        if self._is_idle:
            self._events.schedule(self)

    def expect(self) -> None:
        """It is to be told soon."""
        self._is_idle = False

    def deliver(self) -> None:
        """Tell it the value."""
        state = self._state
        if state is not None:
            self._is_idle = False
            self._version = state.published_version
            self._notify(self, state.published)


class Events:
    """All keys with a value or a watcher.

    Parameters:
        transactions: a value that is broadcast in a transaction is told when that has ended.

    Attributes:
        pending: the watchers to be told, the one that waits longest first.
        deliver_soon: called when somebody is to be told; has `deliver` called a little later.
        when_safe: calls back when what the transaction that has just committed has changed is in the log, or
            cannot be written.
    """

    def __init__(self, transactions: TransactionManager) -> None:
        self._transactions = transactions
        self._states: dict[str, _State] = {}
        self._is_delivering = False
        self.pending: dict[Watcher, None] = {}
        self.deliver_soon: Callable[[], object] = self._deliver_after_transaction
        self.when_safe: Callable[[Callable[[], None]], object] = lambda callback: callback()
        for key in (ID, STATUS, ELECTION, SCHEMA):
            self.announce(key, {})

    # -- values --

    def broadcast(self, key: str, value: object = None) -> None:
        """Give a key another value and tell its watchers.

        As in Tarantool, undoing the transaction in which that is done does not take it back.

        Parameters:
            key: its name.
            value: anything that can be packed; None takes the value away.

        Raises:
            BoxError: ILLEGAL_PARAMS when the key is no text, PROC_LUA when it is one of the server's own;
                what packing the value raises.
        """
        if not isinstance(key, str):
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Usage: box.broadcast(key[, value])")
        if key.startswith(SYSTEM_PREFIX):
            raise BoxError.procedure("System event can't be override")
        self.announce(key, value)

    def announce(self, key: str, value: object) -> None:
        """Broadcast, for the server itself, whose keys others cannot broadcast."""
        data = None if value is None else codec.pack(value)
        state = self._states.get(key)
        if state is None:
            if data is None:
                return
            state = self._states[key] = _State(key)
        state.data = data
        state.version += 1
        publish = partial(self._publish, state, state.version, data)
        transactions = self._transactions
        if transactions.statements is None:
            publish()
            return
        # The value may rest on rows of the transaction, so nobody is told before these are safe.
        transactions.on_commit(lambda: self.when_safe(publish))
        transactions.on_rollback(publish)

    def value(self, key: str) -> bytes | None:
        """A key's newest value, packed; None where it has none."""
        state = self._states.get(key)
        return None if state is None else state.data

    def _publish(self, state: _State, version: int, data: bytes | None) -> None:
        """Tell the watchers a value, unless they were told a newer one."""
        if version <= state.published_version:
            return
        state.published = data
        state.published_version = version
        for watcher in list(state.watchers):  # one that is told at once may leave, or bring another
            watcher.value_changed()
        self.drop_unused(state)

    # -- watchers --

    def watch(self, key: str, notify: Notify) -> Watcher:
        """Watch a key, whether it has a value or not.

        Parameters:
            key: its name.
            notify: told the value soon, and each time that it has changed since the last was acknowledged.
        """
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(key)
        watcher = Watcher(self, state, notify)
        state.watchers[watcher] = None
        self.schedule(watcher)
        return watcher

    def schedule(self, watcher: Watcher) -> None:
        """Tell a watcher soon."""
        watcher.expect()
        was_empty = not self.pending
        self.pending[watcher] = None
        if was_empty:
            self.deliver_soon()

    def drop_unused(self, state: _State) -> None:
        """Forget a key that has neither a value nor a watcher."""
        if (
            state.data is None
            and state.published is None
            and not state.watchers
            and self._states.get(state.key) is state
        ):
            del self._states[state.key]

    def deliver(self) -> None:
        """Tell those who are to be told now. What comes of that is for the next time."""
        pending, self.pending = self.pending, {}
        for watcher in pending:
            try:
                watcher.deliver()
            except BaseException:
                # Whoever is next has nothing to do with it.
                logger.exception("a watcher of %s failed", watcher.key)

    def _deliver_after_transaction(self) -> None:
        """Without an event loop: at once, or when the running transaction has ended."""
        self._transactions.on_commit(self._deliver_all)
        self._transactions.on_rollback(self._deliver_all)

    def _deliver_all(self) -> None:
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self.pending:
                self.deliver()
        finally:
            self._is_delivering = False

    def __len__(self) -> int:
        return len(self._states)


def unpacked(data: bytes | None) -> Any:
    """A value of a key as procedures have it."""
    return None if data is None else codec.unpack(data)
