"""A log to be shown."""

from __future__ import annotations

from pathlib import Path

from iproto_server.storage.xlog import Row, XlogWriter, encode_row
from tests.storage.files import header


def write_raw(directory: Path, *rows: Row) -> Path:
    """Write a log of rows of any kind."""
    path = directory / "00000000000000000000.xlog"
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header())
        writer.write([b"".join(map(encode_row, rows))])
        writer.end()
    return path
