"""Places of files that cannot be read: an error, or skipped and reported."""

from __future__ import annotations

import json
import logging
import uuid
from types import TracebackType
from typing import Self

from iproto_server.storage.errors import XlogError
from spark.source.io.filesystem import locate
from spark.source.options import OnDamaged, ReadOptions

logger = logging.getLogger("spark.source")


class DamageHandler:
    """What is done about damage while one task reads; as a context manager it reports at the end.

    Each place that is skipped is a warning in the log of the executor. With the option `bad_records_path` a
    task that has skipped something also leaves a file there: a line of JSON for each place, with `file`,
    `offset`, `bytes` and `reason`. A task that is tried again leaves another file.

    Parameters:
        on_damaged: Whether damage is an error.
        bad_records_path: A directory of any filesystem; None for none.

    Attributes:
        skipped: What was skipped: the error, and the offset behind the damage.
    """

    def __init__(self, on_damaged: OnDamaged, bad_records_path: str | None = None) -> None:
        self._on_damaged = on_damaged
        self._bad_records_path = bad_records_path
        self.skipped: list[tuple[XlogError, int]] = []

    @classmethod
    def of(cls, options: ReadOptions) -> Self:
        """What the options of a query ask for."""
        return cls(options.damaged, options.bad_records_path)

    def add(self, error: XlogError, end: int) -> None:
        """Tell of a place that cannot be read.

        Parameters:
            error: What is wrong, and where it begins.
            end: The offset behind it.

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
