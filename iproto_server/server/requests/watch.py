"""Watchers at the other end of a connection: WATCH, UNWATCH, WATCH_ONCE, and the events that they bring.

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
    """What a connection watches.

    A client that does not read is not sent events: it is told the newest values when it reads again.

    Parameters:
        events: the keys there are.
        connection: whose subscriptions they are.
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
        """Whether nothing is watched."""
        return not self._watchers

    def watch(self, key: str) -> None:
        """Watch a key; where it is watched already, that acknowledges what was told."""
        watcher = self._watchers.get(key)
        if watcher is None:
            self._watchers[key] = self._events.watch(key, self._tell)
        elif watcher not in self._held:
            watcher.acknowledge()

    def unwatch(self, key: str) -> None:
        """Watch a key no more; harmless where it is not watched."""
        watcher = self._watchers.pop(key, None)
        if watcher is not None:
            self._held.pop(watcher, None)
            watcher.unregister()

    def go_on(self) -> None:
        """The client reads again: tell it what was held back."""
        held, self._held = self._held, {}
        for watcher in held:
            watcher.notify_again()

    def close(self) -> None:
        """Watch nothing any more."""
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
    """Carries out the requests of watchers.

    Parameters:
        events: the keys there are.
        catalog: knows the schema's version.
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
    """Has watchers told by the event loop, in its next iteration.

    A value that rests on rows that have yet to be written waits for them, and is told even where they cannot
    be: Tarantool tells it before.

    Parameters:
        events: the keys there are.
        transactions: knows whether what was committed has yet to be written.
        batch: what writes it.
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
