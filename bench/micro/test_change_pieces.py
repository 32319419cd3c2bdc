"""Microbenchmarks of UPDATE and UPSERT with computing operations, as requests and in procedures.

    make bench-pieces PYTEST_ARGS="-k change"

Rows have a counter, 100 bytes of data and a secondary index of their owner. See `test_hot_path`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.micro.test_hot_path import PAYLOAD, REQUESTS, Pipeline, call, measure, request, requests
from iproto_server import Application, Box
from iproto_server.protocol.constants import Key, RequestType

SPACE_ID = 600
FORMAT = [("id", "unsigned"), ("counter", "unsigned"), ("data", "string"), ("owner", "string")]
OPERATIONS: dict[str, list[tuple[object, ...]]] = {
    "assignment": [("=", 1, 5)],
    "two assignments": [("=", 1, 5), ("=", 2, "data")],
    "assignment in an index": [("=", 3, "bench")],
    "arithmetic": [("+", 1, 1)],
    "arithmetic by name": [("+", "counter", 1)],
    "splice": [(":", 2, 10, 5, "spliced")],
    "insertion at the end": [("!", -1, "last")],
}


def filled(pipeline: Pipeline) -> None:
    """Create the space and its rows."""
    space = pipeline.box.schema.create_space("counters", id=SPACE_ID, format=FORMAT)
    space.create_index("primary", parts=["id"])
    space.create_index("owner", parts=["owner"], unique=False)
    for number in range(REQUESTS):
        space.insert([number, 0, PAYLOAD, "nobody"])


def prepared(frame: Callable[[int], bytes]) -> Callable[[Pipeline], list[bytes]]:
    """Return a function that fills a pipeline's box and returns a request for each row."""

    def prepare(pipeline: Pipeline) -> list[bytes]:
        pipeline.box.run(pipeline.box.session.background, filled, pipeline)
        pipeline.box.transactions.take_unwritten()
        return requests(frame(number) for number in range(REQUESTS))

    return prepare


def update(number: int, kind: str) -> bytes:
    body: dict[Key, object] = {Key.SPACE_ID: SPACE_ID, Key.KEY: [number], Key.TUPLE: OPERATIONS[kind]}
    return request(RequestType.UPDATE, body)


def upsert(number: int, kind: str) -> bytes:
    row = [number, 0, PAYLOAD, "nobody"]
    body: dict[Key, object] = {Key.SPACE_ID: SPACE_ID, Key.TUPLE: row, Key.OPS: OPERATIONS[kind]}
    return request(RequestType.UPSERT, body)


@pytest.mark.parametrize("kind", OPERATIONS)
def test_change_by_update(benchmark: BenchmarkFixture, kind: str) -> None:
    measure(benchmark, prepared(lambda number: update(number, kind)))


@pytest.mark.parametrize("kind", ["arithmetic", "splice"])
def test_change_by_upsert(benchmark: BenchmarkFixture, kind: str) -> None:
    measure(benchmark, prepared(lambda number: upsert(number, kind)))


def test_change_by_upsert_of_new_rows(benchmark: BenchmarkFixture) -> None:
    measure(benchmark, prepared(lambda number: upsert(REQUESTS + number, "arithmetic")))


@pytest.mark.parametrize("kind", OPERATIONS)
def test_change_in_procedure(benchmark: BenchmarkFixture, kind: str) -> None:
    """Call a procedure that updates a row and returns a field."""
    operations = OPERATIONS[kind]

    def add(app: Application) -> None:
        @app.procedure("change")
        def change(box: Box, number: int) -> object:
            row = box.space.counters.update(number, operations)
            assert row is not None
            return row[0]

    measure(benchmark, prepared(lambda number: call("change", number)), add)


def test_change_in_procedure_by_upsert(benchmark: BenchmarkFixture) -> None:
    """Call a procedure that counts in a row."""

    def add(app: Application) -> None:
        @app.procedure("change")
        def change(box: Box, number: int) -> None:
            box.space.counters.upsert([number, 0, PAYLOAD, "nobody"], [("+", 1, 1)])

    measure(benchmark, prepared(lambda number: call("change", number)), add)
