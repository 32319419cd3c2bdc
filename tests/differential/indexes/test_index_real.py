"""The same rows in indexes of a real Tarantool and of our server: the answers must be equal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.iterator_type import IteratorType
from tests.box.index.test_index import Rows, index, nullable
from tests.box.index.test_index_def import CASES, Case
from tests.box.key.test_key_encoding import HARD_FLOATS, HARD_INTEGERS
from tests.conftest import StartTarantool
from tests.differential.ddl.system_rows import INDEX
from tests.iproto_client import (
    DELETE,
    INDEX_ID,
    INSERT,
    ITERATOR,
    KEY,
    LIMIT,
    OFFSET,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    IprotoClient,
)
from tests.real_tarantool import GUEST_IS_SUPER

NUMBERS, SCALARS, ROWS, EMPTY = 600, 601, 602, 603
SCRIPT: Final = f"""
{GUEST_IS_SUPER}
for id, parts in pairs({{
    [{NUMBERS}] = {{2, 'number', 1, 'unsigned'}}, [{SCALARS}] = {{2, 'scalar', 1, 'unsigned'}}
}}) do
    box.schema.space.create('s' .. id, {{id = id}}):create_index('pk', {{parts = parts}})
end
local value = {{field = 2, type = 'unsigned', is_nullable = true}}
local s = box.schema.space.create('s', {{id = {ROWS}}})
s:create_index('i', {{parts = {{1, 'unsigned', 3, 'string'}}}})
s:create_index('i1', {{id = 1, unique = false, parts = {{value}}}})
s:create_index('i2', {{id = 2, parts = {{value, {{field = 4, type = 'scalar', is_nullable = true}}}}}})
box.schema.space.create('defined', {{id = {EMPTY}}}):create_index('pk')
box.schema.space.create('bare', {{id = {EMPTY} + 1}})
"""

# Tarantool rounds a double to 15 digits before it compares it with a decimal, which is no order of all
# numbers; here are doubles that have so few.
DECIMALS: Final[list[Any]] = [
    *(
        Decimal(text)
        for text in ("0.1", "1.00", "9007199254740992.5", "-0.5", "1E-30", "18446744073709551615.5")
    ),
    *(1, 0.125, -1, -0.5, 2**53, 2**53 + 1, 2**64 - 1),
]
SCALAR_VALUES: Final[list[Any]] = [
    *(False, True, -1, 0.5, 2**64 - 1, math.nan),
    *("", "a", "a\0", "a\0b", "b", "ё", b"", b"\0", b"a", b"\xff"),
]


@pytest.fixture(scope="module")
def client(real_tarantool: StartTarantool) -> Iterator[IprotoClient]:
    """A connection to a real Tarantool with the spaces of these tests."""
    server = real_tarantool(SCRIPT)
    with IprotoClient(server.host, server.port) as client:
        yield client


def select(client: IprotoClient, space: int, number: int, iterator: int, key: list[Any]) -> Any:
    """Return the real server's answer: rows, or the error's number and text."""
    body = {SPACE_ID: space, INDEX_ID: number, ITERATOR: iterator, OFFSET: 0, LIMIT: 10000, KEY: key}
    answer = client.request(SELECT, codec.pack(body))
    if not answer.ok:
        return answer.error_code, answer.error
    return codec.unpack(answer.raw_body)[0x30]


@pytest.mark.parametrize(
    ("space", "values"),
    [(NUMBERS, [*HARD_INTEGERS, *HARD_FLOATS]), (NUMBERS, DECIMALS), (SCALARS, SCALAR_VALUES)],
    ids=["numbers", "decimals", "scalars"],
)
def test_hard_values_are_in_the_same_order(client: IprotoClient, space: int, values: list[Any]) -> None:
    client.call(f"box.space.s{space}:truncate")
    ours = Rows(index([[1, "number" if space == NUMBERS else "scalar"], [0, "unsigned"]]))
    for number, value in enumerate(values):
        answer = client.request(REPLACE, codec.pack({SPACE_ID: space, TUPLE: [number, value]}))
        assert answer.ok, answer.error
        ours.add([number, value])
    for key in ([], *([value] for value in values)):
        for iterator in (IteratorType.EQ, IteratorType.LT, IteratorType.GT):
            theirs = select(client, space, 0, iterator, key)
            assert [row[0] for row in ours.select(iterator, key)] == [row[0] for row in theirs], key


def test_every_iterator_finds_the_same_rows(client: IprotoClient) -> None:
    pairs = [(value, text) for value in (None, 0, 1, 2**64 - 1) for text in ("", "a", "a\0")]
    rows = [
        [number, value, text, None if number % 2 else text]
        for number, (value, text) in enumerate(pairs)
        if number not in (7, 9)
    ]
    rows += [[100, None, "x"], [101, 1, "x"]]
    primary = index([[0, "unsigned"], [2, "string"]])
    secondaries = [
        None,
        index([nullable(1, "unsigned")], unique=False, primary=primary.key_def),
        index([nullable(1, "unsigned"), nullable(3, "scalar")], primary=primary.key_def),
    ]
    for row in rows:
        assert client.request(REPLACE, codec.pack({SPACE_ID: ROWS, TUPLE: row})).ok
    keys: list[list[list[Any]]] = [
        [[], [0], [5], [5, "a"], [5, "x"], [200], ["x"], [None], [1, 1], [1, "a", 2]],
        [[], [None], [0], [1], [7], [2**64 - 1], [-1], ["x"], [1, 1]],
        [[], [None], [None, None], [None, "a"], [1], [1, None], [1, "a"], [1, b"a"], [1, []], [0, "", 1]],
    ]
    for number, secondary in enumerate(secondaries):
        ours = Rows(primary.empty_copy(), secondary)
        for row in rows:
            ours.add(row)
        ours.index.name = f"i{number or ''}"
        for key in keys[number]:
            for iterator in range(13):
                try:
                    found: Any = ours.select(iterator, key)
                except BoxError as error:
                    found = (error.code, error.message)
                assert found == select(client, ROWS, number, iterator, key), (number, key, iterator)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_definitions_are_refused_alike(client: IprotoClient, case: Case) -> None:
    space = EMPTY + (case.index_id == 0)
    row = [space, *case.row[1:]]
    answer = client.request(INSERT, codec.pack({SPACE_ID: INDEX, TUPLE: row}))
    if answer.ok:
        client.request(DELETE, codec.pack({SPACE_ID: INDEX, INDEX_ID: 0, KEY: [space, case.index_id]}))
    expected = case.theirs and case.theirs[1].replace(
        "space 's'", "space 'bare'" if case.index_id == 0 else "space 'defined'"
    )
    assert (answer.error_code, answer.error) == ((case.theirs[0], expected) if case.theirs else (0, None))
