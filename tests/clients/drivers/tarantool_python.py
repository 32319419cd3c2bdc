"""tarantool-python, PyPI's `tarantool`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import tarantool

from tests.clients.drivers.driver import ClientError, Operation, Row, Target


class TarantoolPython:
    """A synchronous connection.

    Parameters:
        target: The server.
        user: Who to be; None for guest.
        password: The user's password.
    """

    def __init__(self, target: Target, user: str | None = None, password: str | None = None) -> None:
        with _client_errors():
            self.connection = tarantool.Connection(target.host, target.port, user=user, password=password)

    def ping(self) -> None:
        assert self.connection.ping() > 0

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
        kind = getattr(tarantool.const, f"ITERATOR_{iterator}")
        return self._rows(
            self.connection.select, space, key, index=index, iterator=kind, limit=limit, offset=offset
        )

    def call(self, procedure: str, *arguments: object) -> list[object]:
        return list(self._rows(self.connection.call, procedure, list(arguments)))

    def close(self) -> None:
        self.connection.close()

    def _rows(
        self, request: Callable[..., tarantool.response.Response], *arguments: object, **more: object
    ) -> list[Row]:
        with _client_errors():
            return list(request(*arguments, **more).data or [])


@contextmanager
def _client_errors() -> Iterator[None]:
    try:
        yield
    except tarantool.NetworkError as error:
        # an error at AUTH comes wrapped
        if error.args and isinstance(error.args[0], tarantool.DatabaseError):
            raise ClientError(*error.args[0].args[:2]) from error
        raise
    except tarantool.DatabaseError as error:
        raise ClientError(*error.args[:2]) from error
