"""Rows of logs: one that is made, and those of a block, read together or one by one."""

from __future__ import annotations

from iproto_server.storage.xlog import Change, Row
from iproto_server.storage.xlog.decoder import change_of, decode_rows
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.packed import Buffer
from pyspark_tarantool.source.decode.row_scanner import plain_rows
from tests.storage.files import TIMESTAMP, Request


def row_of(request: Request, member: int, lsn: int) -> Row:
    """A row of a log, a transaction of its own."""
    kind, body = request
    return Row(kind, lsn, body=body, timestamp=TIMESTAMP, replica_id=member, tsn=lsn, flags=1)


def rows_in(payload: bytes) -> LogRows | None:
    """Rows found together, if they are plain."""
    return plain_rows(Buffer(payload), 1)


def changes_in(payload: bytes) -> list[Change]:
    """The same rows, read one by one."""
    return [change_of(row) for row in decode_rows(payload)]
