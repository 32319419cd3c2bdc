"""Torn writes, which the end of a process leaves rarely, but the end of a machine often."""

from __future__ import annotations

from pathlib import Path
from random import Random

from iproto_server.storage.directory import has_end_marker, list_files
from iproto_server.storage.errors import StorageError
from iproto_server.storage.xlog import FileType, XlogReader
from iproto_server.storage.xlog.block import PLAIN_MARKER, ZSTD_MARKER


def tear(directory: Path, chance: Random) -> bool:
    """Append the beginning of a block to the last log, as of a write that was never acknowledged.

    Parameters:
        directory: The directory of a server that was killed.
        chance: The source of random values.

    Returns:
        Whether there is a log to which a block could have been written.
    """
    logs = list_files(directory, FileType.LOG)
    if not logs or has_end_marker(logs[-1]):
        return False
    try:
        with XlogReader.open(logs[-1]) as reader:
            for _ in reader.transactions():
                pass
    except StorageError:
        return False  # its end is torn already
    content = logs[-1].read_bytes()
    begin = max(content.rfind(marker) for marker in (PLAIN_MARKER, ZSTD_MARKER))
    if begin < 0:
        return False
    block = content[begin:]
    with logs[-1].open("ab") as file:
        file.write(block[: chance.randrange(1, len(block))])
    return True
