"""asynctnt, the asyncio connector, on an event loop per test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import asynctnt
from asynctnt.exceptions import TarantoolDatabaseError, TarantoolSchemaError

from tests.clients.drivers.driver import ClientError, Operation, Row, Target


class Asynctnt:
    """A connection whose requests are run one by one to their end.

    Parameters:
        target: The server.
        user: Who to be; None for guest.
        password: The user's password.
    """

    def __init__(self, target: Target, user: str | None = None, password: str | None = None) -> None:
        self._runner = asyncio.Runner()
        self.connection = asynctnt.Connection(
            host=target.host, port=target.port, username=user, password=password, reconnect_timeout=0
        )
        try:
            self._run(self.connection.connect)
        except BaseException:
            self._runner.close()
            raise

    def ping(self) -> None:
        self._run(self.connection.ping)

    def insert(self, space: str, row: Row) -> list[Row]:
        return self._rows(self.connection.insert, space, row)

    def replace(self, space: str, row: Row) -> list[Row]:
        return self._rows(self.connection.replace, space, row)

    def update(self, space: str, index: str, key: Row, operations: Sequence[Operation]) -> list[Row]:
        return self._rows(self.connection.update, space, key, operations, index=index)

    def upsert(self, space: str, row: Row, operations: Sequence[Operation]) -> list[Row]:
        return self._rows(self.connection.upsert, space, row, operations)

    def delete(self, space: str, index: str, key: Row) -> list[Row]:
        return self._rows(self.connection.delete, space, key, index=index)

    def select(
        self, space: str, index: str, key: Row, *, iterator: str = "EQ", limit: int = 100, offset: int = 0
    ) -> list[Row]:
        return self._rows(
            self.connection.select, space, key, index=index, iterator=iterator, limit=limit, offset=offset
        )

    def call(self, procedure: str, *arguments: object) -> list[object]:
        return list(self._run(self.connection.call, procedure, list(arguments)).body)

    def close(self) -> None:
        if self.connection.is_connected:
            self._run(self.connection.disconnect)
        self._runner.close()

    def _rows(self, request: Callable[..., Awaitable[Any]], *arguments: object, **more: object) -> list[Row]:
        try:
            response = self._run(request, *arguments, **more)
        except TarantoolSchemaError:
            # it does not notice a new space by itself
            self._run(self.connection.refetch_schema)
            response = self._run(request, *arguments, **more)
        rows: Iterable[Iterable[object]] = response.body or []
        return [list(row) for row in rows]

    def _run(self, request: Callable[..., Awaitable[Any]], *arguments: object, **more: object) -> Any:
        async def run() -> Any:
            return await request(*arguments, **more)

        try:
            return self._runner.run(run())
        except TarantoolDatabaseError as error:
            raise ClientError(error.code, error.message) from error
