"""Watchers of application code, as returned by `box.watch`."""

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
    """Calls a function with a key and its value: once at the beginning, then after each change.

    The function runs as the background session, in a transaction of its own, and never concurrently with
    itself: after it returns, it is called with the newest value broadcast meanwhile. Its errors are logged.

    Source: Tarantool reference, "box.watch()".

    Parameters:
        box: the box.
        key: the key's name.
        callback: a plain or an async function of the key's name and its value (or None).

    Raises:
        BoxError: ILLEGAL_PARAMS: the key is not a string, or the callback is not callable.
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
        """Stop calling the function.

        Raises:
            BoxError: PROC_LUA if it was unregistered before.
        """
        if not self._watcher.unregister():
            raise BoxError.procedure("Watcher is already unregistered")
        self._watchers.pop(self, None)

    def pause(self) -> None:
        """Stop calling the function until `resume`."""
        self._watcher.unregister()

    def resume(self) -> None:
        """Call the function again after a `pause`, first with the present value."""
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
        """Handle the end of an async function."""
        if waiter.error is not None:
            logger.error("a watcher of %s failed", self._watcher.key, exc_info=waiter.error)
        self._watcher.acknowledge()

    def __repr__(self) -> str:
        return f"<watcher of {self._watcher.key}>"
