"""Sending the rows of logs and snapshots to a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import tarantool

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Raw
from iproto_server.errors import BoxError
from iproto_server.storage.xlog import OnDamage, Row, RowType, XlogReader
from iproto_server.tools.client import ClientError, ServerUri, connect, reason
from iproto_server.tools.files.operations import rebase
from iproto_server.tools.files.selection import Selection, selected_rows


class PlayError(Exception):
    """Playing cannot begin or go on; the message is one line for the user."""


class Player:
    """A connection to the server that rows are sent to, each as the request that it is and byte for byte.

    Parameters:
        uri: the server.

    Attributes:
        rows: how many rows the server has taken.

    Raises:
        PlayError: there is no connection to be had.
    """

    def __init__(self, uri: ServerUri) -> None:
        self.rows = 0
        try:
            self._connection = connect(uri, needs_schema=True)
        except ClientError as error:
            raise PlayError(str(error)) from error

    def play(self, path: Path, selection: Selection, progress: Callable[[int], None]) -> None:
        """Send the rows of a file, one after the other; the first that the server refuses is the last.

        Parameters:
            path: the file.
            selection: which rows.
            progress: is told how many rows the server has taken so far, from time to time.

        Raises:
            PlayError: the server refused a row, or is gone.
            XlogError: at damage.
            OSError: the file cannot be read.
        """
        with XlogReader.open(path, OnDamage.STOP) as reader:
            for rows in selected_rows(reader, selection):
                for row in rows:
                    try:
                        self.rows += self._send(row)
                    except (tarantool.Error, BoxError) as error:
                        raise PlayError(f"{path}: LSN {row.lsn}: {reason(error)}") from error
                progress(self.rows)

    def _send(self, row: Row) -> bool:
        """Send a row; False for one that changes no tuple."""
        connection, space_id = self._connection, row.space_id
        if space_id is None:
            return False
        if row.type == RowType.INSERT:
            connection.insert(space_id, _packed(row.tuple_raw))
        elif row.type == RowType.REPLACE:
            connection.replace(space_id, _packed(row.tuple_raw))
        elif row.type == RowType.DELETE:
            connection.delete(space_id, _packed(row.key_raw), index=row.index_id)
        elif row.type == RowType.UPDATE:
            # The client counts fields from 0.
            operations = rebase(row.operations_raw or b"\x90", row.index_base, 0)
            connection.update(space_id, _packed(row.key_raw), operations, index=row.index_id)
        elif row.type == RowType.UPSERT:
            operations = rebase(row.operations_raw or b"\x90", row.index_base, 0)
            connection.upsert(space_id, _packed(row.tuple_raw), operations)
        else:
            return False
        return True

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def play_files(
    uri: ServerUri, paths: Sequence[Path], selection: Selection, progress: Callable[[int], None]
) -> int:
    """Send the rows of files to a server.

    Parameters:
        uri: the server.
        paths: the files, in the order in which they are sent.
        selection: which rows.
        progress: is told how many rows the server has taken so far, from time to time.

    Returns:
        How many rows it took.

    Raises:
        PlayError: there is no connection, or the server refused a row.
        XlogError: at damage.
        OSError: a file cannot be read.
    """
    with Player(uri) as player:
        for path in paths:
            player.play(path, selection, progress)
        return player.rows


def _packed(raw: bytes | None) -> list[Raw]:
    return [Raw(item) for item in codec.split_array(raw or b"\x90")]
