"""The damage that a recovery finds in the files."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Final

from iproto_server.storage.errors import StorageError
from iproto_server.storage.xlog import XlogReader

logger = logging.getLogger("iproto_server.recovery")

REPORT_LIMIT: Final = 10
"""Skipped rows and places of a file that are logged one by one; further ones are only counted."""

HOW_TO_GO_ON: Final = "--force-recovery starts without what is damaged: keep a copy of the files"
"""Advice about damage, the end of the message that stops a recovery."""


class DamageReport:
    """Stops a recovery at damage, or, with `force`, records the skipped parts.

    Parameters:
        force: Whether damaged parts are skipped.

    Attributes:
        damages: Descriptions of the skipped parts.
        path: The file that is being read; None between files.
        offset: In a log, the offset of the block that is being read.
    """

    def __init__(self, force: bool) -> None:
        self.force = force
        self.damages: list[str] = []
        self.path: Path | None = None
        self.offset: int | None = None
        self._omitted: Counter[str] = Counter()
        self._recorded: Counter[str] = Counter()

    def report(self, reason: str, advice: str | None = None) -> None:
        """Raise StorageError for the current place, or, with `force`, record that it is skipped.

        Parameters:
            reason: The problem.
            advice: A remedy; None for damage.

        Raises:
            StorageError: `force` is off.
        """
        if self.path is not None:
            place = "" if self.offset is None else f", block at offset {self.offset}"
            reason = f"{self.path}{place}: {reason}"
        if not self.force:
            raise StorageError(f"{reason}; {advice or HOW_TO_GO_ON}")
        self.record(reason)

    def record(self, reason: str) -> None:
        """Record and log a skipped part; only the first few of each file.

        Parameters:
            reason: The file and its problem.
        """
        name = "" if self.path is None else str(self.path)
        if name and self._recorded[name] >= REPORT_LIMIT:
            self._omitted[name] += 1
            return
        self._recorded[name] += 1
        self.damages.append(reason)
        logger.error("continuing despite damage: %s", reason)

    def record_omitted(self) -> None:
        """Record the number of further skipped places of each file."""
        omitted, self._omitted = self._omitted, Counter()
        self.path = None
        for name, count in omitted.items():
            self.record(f"{name}: {count:,} more rows or places of this file are skipped")

    def record_damages(self, reader: XlogReader) -> None:
        """Record the parts that a reader has skipped.

        Parameters:
            reader: A reader that has reached its end.
        """
        for damage in reader.damages:
            self.record(f"{reader.name}: {damage.reason} at offset {damage.start}, up to {damage.end}")
