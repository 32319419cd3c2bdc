"""Summarizes the data source's reports of skipped places."""

from __future__ import annotations

import json
from typing import NamedTuple, Self

from pyarrow import fs

from pyspark_tarantool.source.io.filesystem import locate


class SkippedBlocks(NamedTuple):
    """The skipped places.

    Attributes:
        places: The number of damaged places.
        size: Their total size in bytes.
        reasons: The first errors, with file and offset.
    """

    places: int
    size: int
    reasons: tuple[str, ...]

    @classmethod
    def read(cls, directory: str, most: int = 5) -> Self:
        """Read the reports of tasks; a place that was read several times counts once.

        Parameters:
            directory: The data source's option `bad_records_path`.
            most: The maximum number of reasons.
        """
        filesystem, path = locate(directory)
        places: dict[tuple[str, int], tuple[int, str]] = {}
        for info in filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True)):
            if not info.is_file:
                continue
            with filesystem.open_input_stream(info.path) as stream:
                for line in stream.read().decode("utf-8").splitlines():
                    record = json.loads(line)
                    places[record["file"], record["offset"]] = (record["bytes"], record["reason"])
        reasons = [f"{file}: {reason} at offset {at}" for (file, at), (_, reason) in sorted(places.items())]
        return cls(len(places), sum(size for size, _ in places.values()), tuple(reasons[:most]))
