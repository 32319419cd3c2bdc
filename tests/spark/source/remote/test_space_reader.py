"""Spaces read from a running server, ours and a real Tarantool: the rows are those of `select`."""

from __future__ import annotations

import math
import pickle
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from pyspark_tarantool.data_source import TarantoolDataSource
from pyspark_tarantool.source.batch.filtered_reader import FilteredReader
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.remote import space_reader
from tests.iproto_client import BEGIN, DELETE, INDEX_ID, KEY, REPLACE, SPACE_ID, TUPLE, IprotoClient
from tests.spark.source.remote.application import PASSWORD, USER


def url(server: IprotoClient) -> str:
    """The address of a server, as a user without a password."""
    host, port = server.socket.getpeername()
    return f"{host}:{port}"


def put(server: IprotoClient, space: str, rows: Sequence[Sequence[Any]]) -> None:
    """Store rows."""
    number = server.space_id(space)
    for row in rows:
        answer = server.request(REPLACE, {SPACE_ID: number, TUPLE: list(row)})
        assert answer.ok, answer.error


def stored(server: IprotoClient, space: str) -> list[list[Any]]:
    """The rows of a space, in the order of its primary key."""
    rows: list[list[Any]] = server.everything(server.space_id(space)).data
    return rows


def parts_of(
    server: IprotoClient, space: str, filters: Sequence[Filter] = (), **options: object
) -> Iterator[list[list[Any]]]:
    """The rows of each task of a query."""
    given = {"url": url(server), "space": space, "unsigned": "bigint", "extra_fields": "drop"}
    source = TarantoolDataSource(given | {name: str(value) for name, value in options.items()})
    reader = source.reader(source.schema())
    assert isinstance(reader, FilteredReader)
    assert reader.restrict(filters) == []
    for part in reader.partitions():
        copy, shipped = pickle.loads(pickle.dumps((reader, part)))
        yield [list(row.values()) for batch in copy.read(shipped) for row in batch.to_pylist()]


def read(
    server: IprotoClient, space: str, filters: Sequence[Filter] = (), **options: object
) -> list[list[Any]]:
    """The rows of a query."""
    return [row for part in parts_of(server, space, filters, **options) for row in part]


@contextmanager
def selects_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """The iterator, key and limit of each SELECT of the space's rows."""
    asked: list[tuple[Any, ...]] = []
    original = space_reader._select

    def select(connection: Any, space: Any, iterator: Any, key: Any, limit: int, stream: int = 0) -> Any:
        asked.append((iterator.name, key, limit))
        return original(connection, space, iterator, key, limit, stream)

    with monkeypatch.context() as patch:
        patch.setattr(space_reader, "_select", select)
        yield asked


NUMBERS = [-(2**63), -70, -1, 0, 1, 5, 6, 7, 100, 101, 102, 103, 2**40, 2**63 - 1]
TEXTS = ["", "a", "a\0", "aa", "ab", "abc", "b", "user:1", "user:10", "user:2", "ä", "\U0001f600"]


@pytest.mark.parametrize("partitions", [1, 2, 7, 100])
@pytest.mark.parametrize("page_rows", [1, 3, 1000])
def test_each_row_is_read_once_whatever_the_partitions_and_pages(
    server: IprotoClient, partitions: int, page_rows: int
) -> None:
    """Keys of several parts, with equal first parts, and of negative numbers."""
    put(server, "numbers", [(number, text) for number in NUMBERS for text in ("x", "y", "z")])
    put(server, "texts", [(part, text) for text in TEXTS for part in (1, 2)])
    put(server, "flags", [(number, flag) for number in range(5) for flag in (True, False)])
    put(server, "measured", [(number, "x") for number in (*NUMBERS, 0.5, -3.25, 6.5, 2**64 - 1, -(2**63))])
    for space in ("numbers", "texts", "flags", "unsigned"):
        rows = read(server, space, partitions=partitions, page_rows=page_rows)
        assert rows == stored(server, space)
    rows = read(server, "measured", partitions=partitions, page_rows=page_rows)
    assert [float(number) for number, _ in rows] == [
        float(number) for number, _ in stored(server, "measured")
    ]


def test_infinite_numbers_are_read_by_one_task(server: IprotoClient) -> None:
    put(server, "measured", [(number, "x") for number in (-math.inf, 1, 2.5, math.inf)])
    assert list(parts_of(server, "measured", number="double")) == [stored(server, "measured")]


def test_tasks_share_evenly_distributed_keys_evenly(server: IprotoClient) -> None:
    put(server, "measured", [(number + 0.5, "x") for number in range(400)])
    assert [len(part) for part in parts_of(server, "measured", partitions=4)] == [100] * 4
    put(server, "unsigned", [(number, "x") for number in range(100, 500)])
    assert [len(part) for part in parts_of(server, "unsigned", partitions=4)] == [100] * 4
    put(server, "texts", [(1, f"task:{number:03}") for number in range(400)])
    assert all(len(part) > 20 for part in parts_of(server, "texts", partitions=4))


@pytest.mark.parametrize(
    ("space", "filters", "expected"),
    [
        ("numbers", [EqualTo(("id",), 5)], [5]),
        ("numbers", [EqualTo(("id",), 4)], []),
        ("numbers", [GreaterThan(("id",), 5), LessThan(("id",), 101)], [6, 7, 100]),
        ("numbers", [GreaterThanOrEqual(("id",), 5), LessThanOrEqual(("id",), 7)], [5, 6, 7]),
        ("numbers", [In(("id",), (7, -70, 999))], [-70, 7]),
        ("numbers", [GreaterThan(("id",), 5), LessThan(("id",), 5)], []),
        ("unsigned", [GreaterThan(("id",), -5), LessThan(("id",), 2)], [0, 1]),
        ("unsigned", [LessThan(("id",), -1)], []),
    ],
)
def test_filters_on_the_key_are_sent_to_the_server(
    server: IprotoClient,
    space: str,
    filters: list[Filter],
    expected: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked for few rows beyond those that match."""
    put(server, "numbers", [(number, "x") for number in NUMBERS])
    put(server, "unsigned", [(number, "x") for number in range(200)])
    with selects_counted(monkeypatch) as asked:
        rows = read(server, space, filters, partitions=1, page_rows=2)
    assert [row[0] for row in rows] == expected
    assert len(asked) <= len(rows) // 2 + 5


def test_filters_on_texts_compare_bytes(server: IprotoClient) -> None:
    """As Spark and the server do."""
    put(server, "texts", [(1, text) for text in TEXTS])
    filters = [GreaterThan(("name",), "a"), LessThanOrEqual(("name",), "user:10")]
    expected = ["a\0", "aa", "ab", "abc", "b", "user:1", "user:10"]
    assert [name for _, name in read(server, "texts", filters, page_rows=2)] == expected


def test_only_the_pages_that_are_needed_are_requested(
    ours: IprotoClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a limited size, each after the last key of the one before."""
    put(ours, "numbers", [(number, "x") for number in range(7)])
    with selects_counted(monkeypatch) as asked:
        read(ours, "numbers", partitions=1, page_rows=3)
    assert asked == [("ALL", [], 3), ("GT", [2, "x"], 3), ("GT", [5, "x"], 3)]


def test_rows_that_are_changed_meanwhile_do_not_disturb_the_others(server: IprotoClient) -> None:
    """Each row that stays is returned once, though others are deleted and inserted around the last key."""
    generator = random.Random(1)
    put(server, "unsigned", [(number, "stays") for number in range(0, 200, 2)])
    number = server.space_id("unsigned")
    source = TarantoolDataSource({"url": url(server), "space": "unsigned", "page_rows": "5"})
    reader: Any = source.reader(source.schema())
    found: list[int] = []
    for part in reader.partitions():
        for batch in reader.read(part):
            found += [int(row["id"]) for row in batch.to_pylist()]
            for _ in range(20):
                odd = generator.randrange(100) * 2 + 1
                put(server, "unsigned", [(odd, "comes and goes")])
                server.request(
                    DELETE, {SPACE_ID: number, INDEX_ID: 0, KEY: [generator.randrange(100) * 2 + 1]}
                )
    assert [number for number in found if number % 2 == 0] == list(range(0, 200, 2))
    assert len(found) == len(set(found))


# -- consistent queries --


@pytest.mark.parametrize("space", ["unsigned", "any_order"])
def test_a_consistent_query_has_the_rows_of_one_point_in_time(ours: IprotoClient, space: str) -> None:
    """In one task, whatever is written between its pages."""
    put(ours, space, [(number, "old") for number in range(50)])
    source = TarantoolDataSource({"url": url(ours), "space": space, "page_rows": "7", "consistent": "true"})
    reader: Any = source.reader(source.schema())
    (part,) = reader.partitions()
    found: list[tuple[int, str]] = []
    for batch in reader.read(part):
        found += [(int(row["id"]), row["text"]) for row in batch.to_pylist()]
        put(ours, space, [(number, "new") for number in range(0, 70, 3)])
    assert sorted(found) == [(number, "old") for number in range(50)]


@pytest.mark.real_tarantool
@pytest.mark.parametrize("server", ["tarantool"], indirect=True)
def test_an_old_server_has_no_consistent_queries(server: IprotoClient) -> None:
    with pytest.raises(SourceError, match=r"consistent=true requires .* \(version 2\.6\)"):
        read(server, "unsigned", consistent="true")


def test_a_hash_index_has_no_order_for_pages(server: IprotoClient) -> None:
    """Rows would be left out without a word."""
    with pytest.raises(SourceError, match="'any_order' has a HASH primary index"):
        read(server, "any_order")


# -- what is refused --


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"space": ""}, '"space" is empty'),
        ({"space": "nowhere"}, "there is no space 'nowhere' on the server"),
        ({"mode": "changes"}, 'the option "mode" is for files, not for a server'),
        ({"partitions": "0"}, 'the option "partitions" is a whole number from 1 on, not "0"'),
        ({"page_rows": "x"}, 'the option "page_rows" is a whole number'),
        ({"consistent": "maybe"}, "the option \"consistent\" is 'maybe', not true or false"),
        ({"timeout": "0"}, 'the option "timeout" is a number of seconds'),
        ({"spcae": "x"}, 'there is no option "spcae"'),
        ({"tarantool.hosts": "h:1"}, 'the options "url" and "tarantool.hosts": only one is allowed'),
        ({"tarantool.password": "x"}, 'the option "tarantool.password" requires'),
        ({"tarantool.space": "y"}, 'the option "tarantool.space" contradicts the option "space"'),
    ],
)
def test_wrong_options_are_refused(ours: IprotoClient, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)):
        read(ours, options.pop("space", "unsigned"), **options)


def test_a_space_without_a_name_is_refused(ours: IprotoClient) -> None:
    with pytest.raises(SourceError, match='the option "space" is missing'):
        TarantoolDataSource({"url": url(ours)}).schema()


def test_a_server_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1: cannot connect"):
        TarantoolDataSource({"url": "127.0.0.1:1", "space": "s", "retries": "0"}).schema()


def test_a_stream_needs_files(ours: IprotoClient) -> None:
    with pytest.raises(SourceError, match="a stream follows the logs of a directory, not a server"):
        source = TarantoolDataSource({"url": url(ours), "space": "unsigned"})
        source.streamReader(source.schema())


def test_the_option_names_of_cartridge_spark(server: IprotoClient) -> None:
    """With its users and passwords."""
    put(server, "unsigned", [(1, "x")])
    options = {
        "tarantool.hosts": f"{url(server)},127.0.0.1:1",
        "tarantool.username": USER,
        "tarantool.password": PASSWORD,
        "tarantool.space": "unsigned",
    }
    source = TarantoolDataSource(options)
    assert source.schema().names == ["id", "text", "_extra"]
    with pytest.raises(SourceError) as error:
        TarantoolDataSource({**options, "tarantool.password": "wr0ng"}).schema()
    assert "wr0ng" not in str(error.value)


def test_spark_reads_a_server(spark: SparkSession, server: IprotoClient) -> None:
    """No plan shows the password."""
    put(server, "unsigned", [(number, f"text {number}") for number in range(1000)])
    address = f"{USER}:{PASSWORD}@{url(server)}"
    table = (
        spark.read.format("tarantool")
        .options(
            url=address, space="unsigned", page_rows="100", unsigned="bigint", where="id >= 10 and id < 13"
        )
        .load()
    )
    assert [tuple(row) for row in table.sort("id").select("id", "text").collect()] == [
        (10, "text 10"),
        (11, "text 11"),
        (12, "text 12"),
    ]
    plan = table._jdf.queryExecution().toString()
    assert PASSWORD not in plan
    assert url(server) not in plan


def test_a_transaction_of_the_test_is_not_disturbed(ours: IprotoClient) -> None:
    """Reading needs no lock: rows can be changed in an open transaction."""
    assert ours.request(BEGIN, {}, {0x0A: 5}).ok
    put(ours, "unsigned", [(1, "x")])
    assert read(ours, "unsigned") == [[1, "x"]]
