"""Request rates for single rows of a space, without a queue, of servers that speak IPROTO."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Final

from bench.client.requests import Requests, payloads
from bench.peers.iproto import IprotoConnection, row_requests
from bench.workloads.rate import Rate, Setting, Shape

OPERATIONS: Final = ("insert", "select", "replace", "update", "delete")
SHAPES: Final = (Shape(10, 100), Shape(100, 1))
SECTION: Final = "raw"
_SPACE, _SPACE_ID, _ADMIN = "rows", 600, 1
_FIRST_KEY: Final = 1_000_000
"""The first key: from here on all keys, and so all requests, have equal lengths."""

_PIPELINED_ROWS: Final = 100_000
_SINGLE_ROWS: Final = 20_000


def usual_rows(shape: Shape) -> int:
    """Return the number of rows of a measurement that takes some tenths of a second for each operation."""
    return _PIPELINED_ROWS if shape.in_flight > 1 else _SINGLE_ROWS


def rates(setting: Setting, rows: int) -> Iterator[Rate]:
    """Measure all operations in a new space.

    Parameters:
        setting: the server and the load.
        rows: the number of rows per operation.
    """
    server = setting.server
    with IprotoConnection(server.address) as connection:
        # `box.schema.space.create` answers with functions, which Tarantool cannot send.
        connection.call("box.space._space:insert", [_SPACE_ID, _ADMIN, _SPACE, "memtx", 0, {}, []])
        try:
            primary = [_SPACE_ID, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]]
            connection.call("box.space._index:insert", primary)
            with server.load(setting.shape.connections, setting.shape.in_flight) as load:
                shares = tuple(load.shared(rows, _FIRST_KEY))
                for operation in OPERATIONS:
                    work = _work(operation, shares, setting.payload)
                    yield setting.measure(operation, partial(load.do, work))
        finally:
            connection.call(f"box.space.{_SPACE}:drop")


@lru_cache(maxsize=len(OPERATIONS) * len(SHAPES))
def _work(operation: str, shares: tuple[range, ...], payload: int) -> list[Requests]:
    """Encode the requests of each connection; all servers get the same."""
    return [row_requests(operation, _SPACE_ID, keys, payloads(len(keys), payload)) for keys in shares]
