"""Retries of work that failed, or that was rolled back after its commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Generic, TypeVar

from iproto_server import Box

Key = TypeVar("Key")

RETRY_AFTER: Final = 1.0
"""Seconds between two attempts."""


class Retries(Generic[Key]):
    """Calls a function for each of many keys until it succeeds, in a transaction of the server's own session.

    One failing key does not block the others. Keys that fail in the same iteration of the event loop are
    retried together: a failed log write rolls many transactions back at once, in reverse order.

    Parameters:
        box: the box.
        attempt: called with a key; called again if its changes are rolled back.
        logger: logs failures.
        what: the subject of log messages: "release tasks".
    """

    def __init__(self, box: Box, attempt: Callable[[Key], object], logger: logging.Logger, what: str) -> None:
        self._box = box
        self._attempt = attempt
        self._logger = logger
        self._what = what
        self._failed: dict[Key, None] = {}

    def run(self, keys: Iterable[Key]) -> None:
        """Attempt the keys now; those that fail are retried."""
        try:
            self._box.run(self._box.session.background, self._run, list(keys))
        except BaseException:
            # Another application's trigger may raise anything; the rollback schedules a retry.
            self._logger.exception("cannot %s, trying again", self._what)

    def later(self, keys: Iterable[Key]) -> None:
        """Attempt the keys after `RETRY_AFTER` seconds."""
        if not self._failed:
            self._box.clock.call_later(0.0, self._set_timer)
        self._failed.update(dict.fromkeys(keys))

    def _set_timer(self) -> None:
        keys, self._failed = self._failed, {}
        self._box.clock.call_later(RETRY_AFTER, partial(self.run, keys))

    def _run(self, keys: list[Key]) -> None:
        self._box.on_rollback(partial(self.later, keys))
        failed: list[Key] = []
        cause: BaseException | None = None
        for key in keys:
            try:
                self._box.atomic(self._attempt, key)
            except BaseException as error:  # noqa: BLE001  # another application's trigger may raise anything
                failed.append(key)
                cause = cause or error
        if failed:
            self._logger.error(
                "cannot %s, trying again: %d of %d", self._what, len(failed), len(keys), exc_info=cause
            )
            self._box.on_commit(partial(self.later, failed))
