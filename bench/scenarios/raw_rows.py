"""Request rates for single rows of a space, without a queue, of servers that speak IPROTO."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from bench.client.requests import payloads
from bench.peers.iproto import IprotoConnection, row_requests
from bench.workloads.rate import Rate, Setting

OPERATIONS: Final = ("insert", "select", "replace", "update", "delete")
SECTION: Final = "raw"
_SPACE, _SPACE_ID, _ADMIN = "rows", 600, 1
_FIRST_KEY: Final = 1_000_000
"""The first key: from here on all keys, and so all requests, have equal lengths."""


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
                for operation in OPERATIONS:
                    work = [
                        row_requests(operation, _SPACE_ID, keys, payloads(len(keys), setting.payload))
                        for keys in load.shared(rows, _FIRST_KEY)
                    ]
                    yield setting.measure(operation, partial(load.do, work))
        finally:
            connection.call(f"box.space.{_SPACE}:drop")
