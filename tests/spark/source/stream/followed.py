"""Streams that follow a directory."""

from __future__ import annotations

from pathlib import Path

from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType
from tests.spark.source.live_writer import LiveWriter
from tests.spark.source.stream_follower import Follower


def follower(writer: LiveWriter, **options: str) -> Follower:
    """A query that follows a writer, in the writer's time."""
    return Follower(writer.directory, lambda: writer.now, **options)


def logs_of(directory: Path) -> list[Path]:
    """The logs of a directory, oldest first."""
    return list_files(directory, FileType.LOG)


def lsns(query: Follower) -> list[int]:
    """The numbers of the rows that a query has read."""
    return [lsn for _, lsn, _ in query.rows]
