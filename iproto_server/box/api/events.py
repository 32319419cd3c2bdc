"""Events: keys with values, and their watchers.

A broadcast replaces the value of a key. Watchers are notified of the newest value, not of each one. A watcher
is not notified again before it has acknowledged, so at most one notification per watcher is in flight.

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
"""Notifies a watcher of its key's packed value; None if the key has none."""

SYSTEM_PREFIX: Final = "box."
"""The prefix of system keys, which applications and clients may not broadcast."""

ID: Final = "box.id"
STATUS: Final = "box.status"
ELECTION: Final = "box.election"
SCHEMA: Final = "box.schema"
SHUTDOWN: Final = "box.shutdown"


class _State:
    """A key with its newest and its published value.

    They differ while the newest depends on rows that are not in the log yet.
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
    """A subscription to a key: notified once at the beginning, then after each broadcast.

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
        """Whether it may still be notified."""
        return self._state is not None

    def acknowledge(self) -> None:
        """Accept the last notification; the next value may be sent."""
        state = self._state
        if state is None or self._is_idle or self in self._events.pending:
            return
        if self._version == state.published_version:
            self._is_idle = True
        else:
            self._events.schedule(self)

    def notify_again(self) -> None:
        """Repeat a notification that could not be sent, with the value of that time."""
        if self._state is not None:
            self._events.schedule(self)

    def unregister(self) -> bool:
        """End the subscription.

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
        """Schedule a notification of a new value."""
        if self._is_idle:
            self._events.schedule(self)

    def expect(self) -> None:
        """Mark a notification as scheduled."""
        self._is_idle = False

    def deliver(self) -> None:
        """Notify the watcher of the value."""
        state = self._state
        if state is not None:
            self._is_idle = False
            self._version = state.published_version
            self._notify(self, state.published)


class Events:
    """All keys with a value or a watcher.

    Parameters:
        transactions: values that are broadcast in a transaction are published after its end.

    Attributes:
        pending: the watchers to be notified, the longest waiting first.
        deliver_soon: called when `pending` becomes non-empty; schedules a call of `deliver`.
        when_safe: calls back when the changes of the transaction that has just committed are in the log, or
            could not be written.
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
        """Set a key's value and notify its watchers.

        As in Tarantool, the value stays if the transaction is undone.

        Parameters:
            key: its name.
            value: any value that can be packed; None removes the value.

        Raises:
            BoxError: ILLEGAL_PARAMS if the key is not a string, PROC_LUA if it is a system key; errors of
                packing the value.
        """
        if not isinstance(key, str):
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Usage: box.broadcast(key[, value])")
        if key.startswith(SYSTEM_PREFIX):
            raise BoxError.procedure("System event can't be override")
        self.announce(key, value)

    def announce(self, key: str, value: object) -> None:
        """Broadcast any key, system keys included."""
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
        # The value may depend on rows of the transaction, so it is published once these are safe.
        transactions.on_commit(lambda: self.when_safe(publish))
        transactions.on_rollback(publish)

    def value(self, key: str) -> bytes | None:
        """A key's newest value, packed; None if it has none."""
        state = self._states.get(key)
        return None if state is None else state.data

    def _publish(self, state: _State, version: int, data: bytes | None) -> None:
        """Publish a value, unless a newer one was published before."""
        if version <= state.published_version:
            return
        state.published = data
        state.published_version = version
        for watcher in list(state.watchers):  # a copy: a callback may add or remove watchers
            watcher.value_changed()
        self.drop_unused(state)

    # -- watchers --

    def watch(self, key: str, notify: Notify) -> Watcher:
        """Watch a key, whether or not it has a value.

        Parameters:
            key: its name.
            notify: called with the value soon, and after each change since the last acknowledgement.
        """
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(key)
        watcher = Watcher(self, state, notify)
        state.watchers[watcher] = None
        self.schedule(watcher)
        return watcher

    def schedule(self, watcher: Watcher) -> None:
        """Notify a watcher soon."""
        watcher.expect()
        was_empty = not self.pending
        self.pending[watcher] = None
        if was_empty:
            self.deliver_soon()

    def drop_unused(self, state: _State) -> None:
        """Remove a key that has neither a value nor a watcher."""
        if (
            state.data is None
            and state.published is None
            and not state.watchers
            and self._states.get(state.key) is state
        ):
            del self._states[state.key]

    def deliver(self) -> None:
        """Notify the pending watchers. Those that become pending meanwhile wait for the next call."""
        pending, self.pending = self.pending, {}
        for watcher in pending:
            try:
                watcher.deliver()
            except BaseException:
                logger.exception("a watcher of %s failed", watcher.key)

    def _deliver_after_transaction(self) -> None:
        """Deliver without an event loop: at once, or at the end of the running transaction."""
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
    """The Python value of a packed one."""
    return None if data is None else codec.unpack(data)
