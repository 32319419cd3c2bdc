"""Damaged places of files: raised as errors, or skipped and reported."""

from __future__ import annotations

import json
import logging
import uuid
from types import TracebackType
from typing import Self

from iproto_server.storage.errors import XlogError
from pyspark_tarantool.source.io.filesystem import locate
from pyspark_tarantool.source.options import OnDamaged, ReadOptions

logger = logging.getLogger("pyspark_tarantool.source")


class DamageHandler:
    """Handles damage while one task reads; as a context manager, it writes a report at the end.

    Each skipped place is a warning in the executor's log. With the option `bad_records_path`, a task that has
    skipped places also writes a file: one line of JSON per place, with `file`, `offset`, `bytes` and
    `reason`. A repeated task writes another file.

    Parameters:
        on_damaged: Whether to raise or skip damage.
        bad_records_path: The directory for reports, on any filesystem; None for no reports.

    Attributes:
        skipped: The skipped places: the error, and the offset after the damage.
    """

    def __init__(self, on_damaged: OnDamaged, bad_records_path: str | None = None) -> None:
        self._on_damaged = on_damaged
        self._bad_records_path = bad_records_path
        self.skipped: list[tuple[XlogError, int]] = []

    @classmethod
    def of(cls, options: ReadOptions) -> Self:
        """The handler that the options of a query select."""
        return cls(options.damaged, options.bad_records_path)

    def add(self, error: XlogError, end: int) -> None:
        """Handle a damaged place.

        Parameters:
            error: The error, with the offset of the damage.
            end: The offset after it.

        Raises:
            XlogError: The error, unless damage is skipped.
        """
        if self._on_damaged is OnDamaged.FAIL:
            raise error
        logger.warning("skipped %d bytes: %s", end - error.offset, error)
        self.skipped.append((error, end))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.skipped and self._bad_records_path is not None:
            self._report(self._bad_records_path)

    def _report(self, directory: str) -> None:
        lines = [
            {"file": error.name, "offset": error.offset, "bytes": end - error.offset, "reason": error.reason}
            for error, end in self.skipped
        ]
        filesystem, path = locate(directory)
        filesystem.create_dir(path, recursive=True)
        with filesystem.open_output_stream(f"{path}/{uuid.uuid4()}.json") as stream:
            stream.write("".join(json.dumps(line) + "\n" for line in lines).encode())


class UnreportedDamage(DamageHandler):
    """Handles damage that another task reports."""

    def add(self, error: XlogError, end: int) -> None:
        """Raise or ignore damage.

        Raises:
            XlogError: The error, unless damage is skipped.
        """
        if self._on_damaged is OnDamaged.FAIL:
            raise error
