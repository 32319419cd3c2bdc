"""Sending the rows of logs and snapshots to a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import tarantool

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Raw
from iproto_server.config.address import Address
from iproto_server.errors import BoxError
from iproto_server.storage.xlog import OnDamage, Row, RowType, XlogReader
from iproto_server.tools.operations import rebase
from iproto_server.tools.selection import Selection, selected_rows

CONNECT_TIMEOUT = 10.0
ANSWER_TIMEOUT = 60.0
"""How long the server may take for its part, in seconds."""


class PlayError(Exception):
    """Playing cannot begin or go on; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class ServerUri:
    """Where a server is, and who wants in.

    Parameters:
        address: where it listens.
        user: None for guest.
        password: the user's.
    """

    address: Address
    user: str | None = None
    password: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `[USER[:PASSWORD]@]ADDRESS`, the address being PORT, HOST:PORT, [IPV6]:PORT or unix:PATH.

        Raises:
            ValueError: it is none; the message says why in one line, without the password.
        """
        credentials, at, address = text.rpartition("@")
        user, colon, password = credentials.partition(":")
        if at and not user:
            raise ValueError("there is no user before the @")
        parsed = Address.parse(address)
        if not parsed.path and not parsed.port:
            raise ValueError(f'"{address}" is not an address to connect to: the port is 0')
        return cls(parsed, user or None, password if colon else None)


class _Packer:
    """What the client packs with: packed values go in as they are."""

    def pack(self, value: object) -> bytes:
        return codec.pack(value)


class _Unpacker:
    """What the client unpacks answers with, of which it feeds and unpacks one: header, then body.

    Answers repeat rows, and the library's own unpacker does not take every key and extension type.
    """

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> None:
        self._data = data

    def unpack(self) -> Any:
        if not self._data:
            return {}
        end = codec.skip(self._data, 0)
        value, self._data = codec.unpack(self._data[:end]), self._data[end:]
        return value


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
        address = uri.address
        self.rows = 0
        try:
            self._connection: Any = tarantool.Connection(
                None if address.path else address.host or "localhost",
                address.path or address.port,
                user=uri.user,
                password=uri.password,
                connection_timeout=CONNECT_TIMEOUT,
                socket_timeout=ANSWER_TIMEOUT,
                # A connection that breaks ends the work: which rows arrived must never be in doubt.
                reconnect_max_attempts=0,
                packer_factory=lambda connection: _Packer(),
                unpacker_factory=lambda connection: _Unpacker(),
            )
        except (tarantool.Error, ValueError) as error:
            raise PlayError(f"cannot connect to {address}: {_reason(error)}") from error

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
                        raise PlayError(f"{path}: LSN {row.lsn}: {_reason(error)}") from error
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


def _reason(error: BaseException) -> str:
    """What went wrong; the client wraps the errors of the network and the server in its own."""
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, ValueError | LookupError | BoxError):
        return "what answers there is no Tarantool"
    if isinstance(error, tarantool.DatabaseError) and len(error.args) > 1:
        return str(error.args[1])
    return str(error)
