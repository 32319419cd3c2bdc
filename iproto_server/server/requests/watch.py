"""WATCH, UNWATCH and WATCH_ONCE, and the events of remote watchers.

Source: Tarantool reference, "Events and subscriptions" in the binary protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from iproto_server.box.api.events import Events, Watcher
from iproto_server.box.catalog.catalog import Catalog
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.request import Request
from iproto_server.protocol.response import encode_event, encode_tuples
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.connection.group_commit import Batch

_EVENT_KEY: Final = int(Key.EVENT_KEY)


class Subscriptions:
    """The keys that a connection watches.

    A client that does not read gets no events; when it reads again, it gets the newest values.

    Parameters:
        events: the events of the box.
        connection: the connection.
    """

    __slots__ = ("_connection", "_events", "_held", "_watchers")

    def __init__(self, events: Events, connection: ClientConnection) -> None:
        self._events = events
        self._connection = connection
        self._watchers: dict[str, Watcher] = {}
        self._held: dict[Watcher, None] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._watchers

    @property
    def is_empty(self) -> bool:
        """Whether no key is watched."""
        return not self._watchers

    def watch(self, key: str) -> None:
        """Watch a key; if it is watched already, acknowledge its last event."""
        watcher = self._watchers.get(key)
        if watcher is None:
            self._watchers[key] = self._events.watch(key, self._tell)
        elif watcher not in self._held:
            watcher.acknowledge()

    def unwatch(self, key: str) -> None:
        """Stop watching a key, if it is watched."""
        watcher = self._watchers.pop(key, None)
        if watcher is not None:
            self._held.pop(watcher, None)
            watcher.unregister()

    def go_on(self) -> None:
        """Send the events that were held back, because the client reads again."""
        held, self._held = self._held, {}
        for watcher in held:
            watcher.notify_again()

    def close(self) -> None:
        """Stop watching all keys."""
        for watcher in self._watchers.values():
            watcher.unregister()
        self._watchers.clear()
        self._held.clear()

    def _tell(self, watcher: Watcher, data: bytes | None) -> None:
        if self._connection.is_behind:
            self._held[watcher] = None
            self._connection.hold()
        else:
            self._connection.push(encode_event(watcher.key, data))


class WatchRequests:
    """Handles the requests of watchers.

    Parameters:
        events: the events of the box.
        catalog: the catalog, for the schema version.
    """

    def __init__(self, events: Events, catalog: Catalog) -> None:
        self._events = events
        self._catalog = catalog
        self.handlers: dict[int, Callable[[ClientConnection, Request], bytes | None]] = {
            RequestType.WATCH: self._watch,
            RequestType.UNWATCH: self._unwatch,
            RequestType.WATCH_ONCE: self._watch_once,
        }

    def _watch(self, connection: ClientConnection, request: Request) -> None:
        subscriptions = connection.subscriptions
        if subscriptions is None:
            subscriptions = connection.subscriptions = Subscriptions(self._events, connection)
        subscriptions.watch(_key_of(request))

    def _unwatch(self, connection: ClientConnection, request: Request) -> None:
        if connection.subscriptions is not None:
            connection.subscriptions.unwatch(_key_of(request))

    def _watch_once(self, connection: ClientConnection, request: Request) -> bytes:
        data = self._events.value(_key_of(request))
        return encode_tuples(request.sync, self._catalog.schema_version, () if data is None else (data,))


def _key_of(request: Request) -> str:
    key = request.body[_EVENT_KEY]
    assert isinstance(key, str)
    return key


class EventDelivery:
    """Delivers events to watchers in the next loop iteration.

    A value that depends on unwritten rows waits for them, and is delivered even if they cannot be written:
    Tarantool delivers it earlier.

    Parameters:
        events: the events of the box.
        transactions: tells whether committed rows are still unwritten.
        batch: the group commit, which writes them.
    """

    def __init__(self, events: Events, transactions: TransactionManager, batch: Batch) -> None:
        self._events = events
        self._transactions = transactions
        self._batch = batch
        events.deliver_soon = self._deliver_soon
        events.when_safe = self._when_safe

    def _deliver_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._events.deliver()
        # What functions of applications have changed is no matter of the answers to come.
        self._transactions.has_logged = False

    def _when_safe(self, callback: Callable[[], None]) -> None:
        if not self._transactions.has_logged:
            callback()
            return

        def written(safe: asyncio.Future[None]) -> None:
            safe.exception()
            callback()

        self._batch.written().add_done_callback(written)
