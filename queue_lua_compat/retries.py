"""What failed, or was undone after its commit, and is tried again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Generic, TypeVar

from iproto_server import Box

Key = TypeVar("Key")

RETRY_AFTER: Final = 1.0
"""Seconds after which what failed is tried again."""


class Retries(Generic[Key]):
    """Does something for each of many keys, in one transaction of the server itself, until that has worked.

    A key that fails does not keep the others from being done. Those that fail in the same turn of the event
    loop are tried again together: a log that cannot be written undoes many transactions at once, in reverse
    order.

    Parameters:
        box: the box.
        attempt: does it for a key; it is called again for one that was done before, when that was undone.
        logger: the log that failures are noted in.
        what: what fails, for the log: "release tasks".
    """

    def __init__(self, box: Box, attempt: Callable[[Key], object], logger: logging.Logger, what: str) -> None:
        self._box = box
        self._attempt = attempt
        self._logger = logger
        self._what = what
        self._failed: dict[Key, None] = {}

    def run(self, keys: Iterable[Key]) -> None:
        """Do it now, and later again for what fails."""
        try:
            self._box.run(self._box.session.background, self._run, list(keys))
        except BaseException:
            # A trigger that another application set may raise anything; undone, it is tried again.
            self._logger.exception("cannot %s, trying again", self._what)

    def later(self, keys: Iterable[Key]) -> None:
        """Do it after `RETRY_AFTER` seconds."""
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
            except BaseException as error:  # noqa: BLE001  # a trigger of another application may raise anything
                failed.append(key)
                cause = cause or error
        if failed:
            self._logger.error(
                "cannot %s, trying again: %d of %d", self._what, len(failed), len(keys), exc_info=cause
            )
            self._box.on_commit(partial(self.later, failed))
