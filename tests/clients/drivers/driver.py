"""The common interface of all client libraries in these tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Row = list[object]
Operation = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A server to connect to.

    Parameters:
        name: Which kind of server it is.
        host: Its address.
        port: Its TCP port.
    """

    name: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return f"{self.host}:{self.port}"


class ClientError(Exception):
    """A server's error, as a client library passed it on.

    Parameters:
        code: Tarantool's error code; None when the library does not tell it.
        message: Tarantool's text.
        kind: Tarantool's type of error, such as "ClientError"; None when the library does not tell it.
    """

    def __init__(self, code: int | None, message: str, kind: str | None = None) -> None:
        super().__init__(code, message, kind)
        self.code = code
        self.message = message
        self.kind = kind


class Driver(Protocol):
    """A connected client library.

    Rows are lists. A request that answers no row gives an empty list. Fields in update operations are named.
    Every method raises `ClientError` when the server answers with an error.
    """

    def ping(self) -> None:
        """PING."""

    def insert(self, space: str, row: Row) -> list[Row]:
        """INSERT into a space by its name; the row as stored."""

    def replace(self, space: str, row: Row) -> list[Row]:
        """REPLACE; the row as stored."""

    def update(self, space: str, index: str, key: Row, operations: Sequence[Operation]) -> list[Row]:
        """UPDATE by an index's name; the new row."""

    def upsert(self, space: str, row: Row, operations: Sequence[Operation]) -> list[Row]:
        """UPSERT; no row."""

    def delete(self, space: str, index: str, key: Row) -> list[Row]:
        """DELETE by an index's name; the row that was there."""

    def select(
        self, space: str, index: str, key: Row, *, iterator: str = "EQ", limit: int = 100, offset: int = 0
    ) -> list[Row]:
        """SELECT by an index's name and an iterator's (ALL, EQ, REQ, GT, GE, LT, LE)."""

    def call(self, procedure: str, *arguments: object) -> list[object]:
        """CALL; the values that the procedure returned."""

    def close(self) -> None:
        """Close the connection."""


class OpenDriver(Protocol):
    """Connects a client library to a server, as guest or as a user with a password."""

    def __call__(self, target: Target, user: str | None = None, password: str | None = None) -> Driver: ...
