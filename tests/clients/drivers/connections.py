"""Connections with options of single client libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import asynctnt
import tarantool

from tests.clients.drivers.driver import Row, Target


class AsynctntConnection(asynctnt.Connection):  # type: ignore[misc]  # the library has no types
    """A connection that has streams although another one has met a server without.

    The library then takes them from its class for good.
    """

    stream = asynctnt.Connection.stream


def with_asynctnt(target: Target, **options: Any) -> AsynctntConnection:
    """A connection of asynctnt's; `async with` connects it. It does not reconnect unless told to.

    Parameters:
        target: The server.
        options: Those of `asynctnt.Connection`.
    """
    return AsynctntConnection(**{"host": target.host, "port": target.port, "reconnect_timeout": 0, **options})


@contextmanager
def with_python(target: Target, **options: Any) -> Iterator[tarantool.Connection]:
    """A connection of tarantool-python's.

    Parameters:
        target: The server.
        options: Those of `tarantool.Connection`.

    Yields:
        It, connected.
    """
    with closing(tarantool.Connection(target.host, target.port, **options)) as connection:
        yield connection


def rows(response: Iterable[Iterable[object]]) -> list[Row]:
    """The rows of an answer of asynctnt's as lists."""
    return [list(row) for row in response]
