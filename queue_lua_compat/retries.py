"""Retries of work that failed, or that was rolled back after its commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, TypeVar

from iproto_server import Box, pause_after

Key = TypeVar("Key")


class Retries(Generic[Key]):
    """Calls a function for each of many keys until it succeeds, in a transaction of the server's own session.

    One failing key does not block the others. Keys that fail in the same iteration of the event loop are
    retried together: a failed log write rolls many transactions back at once, in reverse order. The pauses
    between the attempts at a key grow from 1 to 30 seconds; a box that becomes writable ends them.

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
        self._failed: dict[Key, int] = {}
        self._waiting: dict[int, tuple[list[Key], int]] = {}
        self._last = 0

    def run(self, keys: Iterable[Key], failures: int = 0) -> None:
        """Attempt the keys now; those that fail are retried.

        Parameters:
            keys: the keys.
            failures: the number of attempts at them that have failed.
        """
        try:
            self._box.run(self._box.session.background, self._run, list(keys), failures)
        except BaseException:
            # Another application's trigger may raise anything; the rollback schedules a retry.
            self._logger.exception("cannot %s, trying again", self._what)

    def later(self, keys: Iterable[Key], failures: int = 1) -> None:
        """Attempt the keys after a pause.

        Parameters:
            keys: the keys.
            failures: the number of attempts at them that have failed.
        """
        if not self._failed:
            self._box.clock.call_later(0.0, self._set_timers)
        self._failed.update(dict.fromkeys(keys, failures))

    def _set_timers(self) -> None:
        failed, self._failed = self._failed, {}
        groups: dict[int, list[Key]] = {}
        for key, failures in failed.items():
            groups.setdefault(failures, []).append(key)
        for failures, keys in groups.items():
            self._wait(keys, failures)

    def _wait(self, keys: list[Key], failures: int) -> None:
        """Attempt keys after a pause, or as soon as the box becomes writable."""
        if not self._waiting:
            self._box.when_writable.append(self._resume)
        number = self._last = self._last + 1
        self._waiting[number] = keys, failures
        self._box.clock.call_later(pause_after(failures), partial(self._end_pause, number))

    def _resume(self) -> None:
        for number in self._waiting:
            self._box.clock.call_later(0.0, partial(self._end_pause, number))

    def _end_pause(self, number: int) -> None:
        if number not in self._waiting:
            return  # The box has become writable before.
        keys, failures = self._waiting.pop(number)
        if not self._waiting:
            self._box.when_writable.remove(self._resume)
        self.run(keys, failures)

    def _run(self, keys: list[Key], failures: int) -> None:
        self._box.on_rollback(partial(self.later, keys, failures + 1))
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
            self._box.on_commit(partial(self.later, failed, failures + 1))
