"""Watchers that are code of an application: what `box.watch` answers."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.events import Watcher, unpacked
from iproto_server.box.api.waiter import Waiter
from iproto_server.errors import BoxError, ErrorCode

logger = logging.getLogger("iproto_server.events")


class LocalWatcher:
    """A function that is called with a key and its value: once in the beginning, then whenever it is changed.

    It runs as the server itself, in a transaction of its own, and never beside itself: what is broadcast in
    the meantime it is told, the newest only, when it has returned. What it raises is logged.

    Source: Tarantool reference, "box.watch()".

    Parameters:
        box: the box.
        key: the key's name.
        callback: a plain or an async function of the key's name and its value, None where it has none.

    Raises:
        BoxError: ILLEGAL_PARAMS, the key is no text or the callback no function.
    """

    def __init__(self, box: BoxCore, key: str, callback: Callable[[str, object], object]) -> None:
        for is_fit in (isinstance(key, str), callable(callback)):
            if not is_fit:
                raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Usage: box.watch(key, function)")
        self._box = box
        self._callback = callback
        self._watcher = box.events.watch(key, self._told)
        self._watchers = box.local_watchers
        self._watchers[self] = None

    @property
    def key(self) -> str:
        """The key that is watched."""
        return self._watcher.key

    def unregister(self) -> None:
        """Call the function no more.

        Raises:
            BoxError: PROC_LUA, that was done before.
        """
        if not self._watcher.unregister():
            raise BoxError.procedure("Watcher is already unregistered")
        self._watchers.pop(self, None)

    def pause(self) -> None:
        """Call the function no more, unless `resume` is called."""
        self._watcher.unregister()

    def resume(self) -> None:
        """Call the function again after a `pause`, with the value there is first of all."""
        if not self._watcher.is_registered:
            self._watcher = self._box.events.watch(self.key, self._told)

    def _told(self, watcher: Watcher, data: bytes | None) -> None:
        background = self._box.session.background
        try:
            result = self._box.run(background, self._callback, watcher.key, unpacked(data))
            if inspect.iscoroutine(result):
                self._box.run_coroutine(background, result).on_done(self._ended)
                return
        except BaseException:
            logger.exception("a watcher of %s failed", watcher.key)
        watcher.acknowledge()

    def _ended(self, waiter: Waiter) -> None:
        """The async function is through."""
        if waiter.error is not None:
            logger.error("a watcher of %s failed", self._watcher.key, exc_info=waiter.error)
        self._watcher.acknowledge()

    def __repr__(self) -> str:
        return f"<watcher of {self._watcher.key}>"
