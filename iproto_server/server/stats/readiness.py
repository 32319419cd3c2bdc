"""Whether the server takes changes: `/ready` and `operator.status` say the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from iproto_server.server.connection.server_state import ServerState
from iproto_server.storage.wal import WriteAheadLog

AFTER_FAILURE: Final = 10.0
"""Seconds for which the server is not ready after a failed write to the log.

Only the next change shows whether the log is writable again, so clients have to come back.
"""


class Readiness:
    """Tells whether the server is ready.

    Parameters:
        state: the server's state.
        log: the write-ahead log.
        now: returns steady time in seconds.
    """

    def __init__(
        self, state: ServerState, log: WriteAheadLog, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._state = state
        self._log = log
        self._now = now
        self._failures = log.failures
        self._failed_at = 0.0

    def problem(self) -> str | None:
        """Return why the server is not ready; None if it is."""
        if self._state.is_stopping:
            return "the server is stopping"
        if self._state.box.is_read_only:
            return "the server is read-only"
        if self._log.is_failing:
            if self._log.failures != self._failures:
                self._failures, self._failed_at = self._log.failures, self._now()
            if self._now() < self._failed_at + AFTER_FAILURE:
                return "the log cannot be written"
        return None
