"""Requests for rows get the same answers from the fast path and from Python's handlers."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, BoxError, ErrorCode
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.storage.wal import WalMode
from tests.native.requests.sides import Side, request
from tests.plugins.profiles import examples

PLAIN, RANKED, HASHED, TRIGGERED, TEMPORARY, BEFORE, PAIRED = range(700, 707)
SPACES = (PLAIN, RANKED, HASHED, TRIGGERED, TEMPORARY, BEFORE, PAIRED)


def make_spaces(box: Box) -> None:
    """Usual spaces, and unusual ones."""
    for number in SPACES:
        space = box.schema.create_space(f"s{number}", id=number, temporary=number == TEMPORARY)
        kind = "hash" if number == HASHED else "tree"
        parts = [(1, "string"), (0, "unsigned")] if number == PAIRED else [(0, "unsigned")]
        space.create_index("primary", parts=parts, type=kind)
    box.space["s706"].create_index("second", parts=[(0, "unsigned")])
    ranked = box.space["s701"]
    ranked.format(
        [("id", "unsigned"), ("rank", "unsigned"), {"name": "name", "type": "string", "is_nullable": True}]
    )
    ranked.create_index("rank", parts=[(1, "unsigned")])
    ranked.create_index(
        "name", parts=[{"field": "name", "type": "string", "is_nullable": True}], unique=False
    )
    ranked.create_index("code", parts=[(1, "unsigned"), (0, "unsigned")], type="hash")

    def refuse(old: Any, new: Any) -> None:
        if new is not None and new[0] == 3:
            raise BoxError(ErrorCode.TUPLE_FOUND, "a", "trigger")
        if new is not None and new[0] == 2:
            raise ValueError("a fault")

    box.space["s703"].on_replace(refuse)
    box.space["s705"].before_replace(lambda old, new: new)


def sides(directory: Path | None = None, mode: WalMode = WalMode.WRITE) -> list[Side]:
    both = []
    for is_compiled in (True, False):
        if directory is not None:
            (directory / str(is_compiled)).mkdir()
        side = Side(is_compiled, None if directory is None else directory / str(is_compiled), mode)
        side.box.run(side.box.session.background, make_spaces, side.box)
        side.box.transactions.take_unwritten()
        both.append(side)
    return both


def rows_of(side: Side) -> dict[int, object]:
    return {
        number: [[list(row) for row in index.select()] for index in side.box.space[f"s{number}"].index]
        + [side.box.space[f"s{number}"].bsize()]
        for number in SPACES
    }


small = st.integers(0, 3)
values = st.integers(-1, 4) | st.sampled_from([None, "a", "", "é", 1.0, True, [1], 2**40, b"\x00"])
fields = st.lists(small | values, max_size=4) | st.tuples(small, small).map(list)
pairs = st.tuples(small, st.sampled_from(["", "a", "a much longer word", "b\x00"]), values).map(list)
keys = st.lists(small, min_size=1, max_size=1) | st.lists(values, max_size=3)
numbers = st.sampled_from([0, 0, 0, 1, 2, 3, 50, 2**32 - 1])
space_ids = st.sampled_from([*SPACES, RANKED, PLAIN, 280, 999])
named_fields = st.integers(-1, 4) | st.sampled_from(["rank", "none", "name"])
operations = (
    st.lists(
        st.tuples(st.sampled_from("====++-!#&|^"), named_fields, values).map(list)
        | st.tuples(st.just(":"), named_fields, small, st.integers(-2, 2), st.just("x")).map(list),
        max_size=3,
    )
    | st.tuples(st.just("="), st.integers(0, 3), values).map(lambda one: [list(one)])
    | st.tuples(st.sampled_from("+-"), st.integers(0, 2), small).map(lambda one: [list(one)])
)


def with_optional(body: dict[int, object], **options: int) -> dict[int, object]:
    return {**body, **{int(Key[name]): number for name, number in options.items() if number}}


def select(space: int, key: list[Any], index: int, iterator: int, offset: int, limit: int) -> bytes:
    body = {int(Key.SPACE_ID): space, int(Key.KEY): key, int(Key.LIMIT): limit}
    options = {"INDEX_ID": index, "ITERATOR": iterator, "OFFSET": offset}
    return request(RequestType.SELECT, with_optional(body, **options))


def update(space: int, key: list[Any], index: int, base: int, changes: list[Any]) -> bytes:
    body = {int(Key.SPACE_ID): space, int(Key.KEY): key, int(Key.TUPLE): changes}
    return request(RequestType.UPDATE, with_optional(body, INDEX_ID=index, INDEX_BASE=base))


def upsert(space: int, row: list[Any], base: int, changes: list[Any]) -> bytes:
    body = {int(Key.SPACE_ID): space, int(Key.TUPLE): row, int(Key.OPS): changes}
    return request(RequestType.UPSERT, with_optional(body, INDEX_BASE=base))


def delete(space: int, key: list[Any], index: int) -> bytes:
    body = with_optional({int(Key.SPACE_ID): space, int(Key.KEY): key}, INDEX_ID=index)
    return request(RequestType.DELETE, body)


def store(kind: int, space: int, row: list[Any]) -> bytes:
    return request(kind, {int(Key.SPACE_ID): space, int(Key.TUPLE): row})


requests = (
    st.builds(store, st.sampled_from([RequestType.INSERT, RequestType.REPLACE]), space_ids, fields)
    | st.builds(
        store, st.just(RequestType.REPLACE), space_ids, st.tuples(small, small, st.just("n")).map(list)
    )
    | st.builds(store, st.just(RequestType.REPLACE), st.just(PAIRED), pairs)
    | st.builds(delete, st.just(PAIRED), pairs.map(lambda row: row[1::-1]), st.just(0))
    | st.builds(update, st.just(PAIRED), small.map(lambda key: [key]), st.just(1), st.just(0), operations)
    | st.builds(select, space_ids, keys, numbers, st.integers(0, 13), numbers, numbers)
    | st.builds(select, space_ids, keys, st.integers(0, 2), st.just(0), st.just(0), st.just(1))
    | st.builds(update, space_ids, keys, numbers, st.integers(0, 1), operations)
    | st.builds(upsert, space_ids, fields, st.integers(0, 1), operations)
    | st.builds(
        upsert,
        space_ids,
        st.tuples(small, small, st.just("n")).map(list),
        st.sampled_from([0, 1, 2**32 - 1]),
        operations,
    )
    | st.builds(delete, space_ids, keys, numbers)
)


@pytest.mark.slow
@examples(60)
@given(st.lists(requests, max_size=25))
def test_random_requests(frames: list[bytes]) -> None:
    compiled, python = sides()
    for frame in frames:
        assert compiled.handle(frame) == python.handle(frame)
    assert compiled.state() == python.state()
    assert rows_of(compiled) == rows_of(python)


@pytest.mark.slow
@examples(60)
@given(st.lists(requests, max_size=25), st.lists(requests, max_size=25))
def test_random_requests_that_are_logged_and_undone(written: list[bytes], undone: list[bytes]) -> None:
    with TemporaryDirectory() as directory:
        compiled, python = sides(Path(directory))
        for frame in written:
            assert compiled.handle(frame) == python.handle(frame)
        assert compiled.write() == python.write()
        before = rows_of(compiled)
        assert before == rows_of(python)
        for side in (compiled, python):
            side.box.transactions.take_unwritten()
        for frame in undone:
            assert compiled.handle(frame) == python.handle(frame)
        assert compiled.state() == python.state()
        for side in (compiled, python):
            side.box.transactions.undo(side.box.transactions.take_unwritten())
        assert rows_of(compiled) == rows_of(python)
        # What changes only a temporary space does not wait for the log.
        assert rows_of(compiled) | {TEMPORARY: None} == before | {TEMPORARY: None}


many_operations = st.lists(
    st.tuples(st.sampled_from("!!!!!===#"), st.integers(1, 8), values | st.integers(1, 3)).map(list)
    | st.sampled_from([["!", -1, "end"], ["!", 1, 5], ["#", 2, 1], ["=", 1, 7], ["!", "rank", 7]]),
    min_size=30,
    max_size=130,
)
"""More than the core takes at once, of which most succeed."""
few_that_depend_on_others = st.lists(
    st.tuples(st.sampled_from("+-&|^"), st.integers(1, 3), st.integers(1, 3)).map(list), max_size=1
)


@pytest.mark.slow
@examples(60)
@given(
    st.lists(
        st.tuples(st.sampled_from([PLAIN, RANKED, HASHED]), many_operations, few_that_depend_on_others),
        max_size=4,
    )
)
def test_many_operations(changes: list[tuple[int, list[Any], list[Any]]]) -> None:
    compiled, python = sides()
    for side in (compiled, python):
        for space in (PLAIN, RANKED, HASHED):
            side.handle(store(RequestType.REPLACE, space, [1, 1, "a", *range(10)]))
            side.handle(store(RequestType.REPLACE, space, [2, 7, "b"]))
    for space, many, few in changes:
        for frame in (update(space, [1], 0, 0, many + few), update(space, [9], 0, 0, many)):
            assert compiled.handle(frame) == python.handle(frame)
    assert compiled.state() == python.state()
    assert rows_of(compiled) == rows_of(python)


@pytest.mark.parametrize(
    "changes",
    [
        [["!", 1, number] for number in range(4000)],
        [["!", 1, number] for number in range(4001)],
        [["!", -1, number] for number in range(200)],
        [*([["!", 1, 0]] * 40), ["#", 1, 40]],
        [*([["!", 1, 0]] * 40), ["=", 0, 3]],
        [["=", 0, 3], *([["!", 1, 0]] * 40)],
        [["!", 0, 1], *([["!", 1, 0]] * 40)],
        [*([["!", 1, 0]] * 40), ["!", 99, 0]],
        [*([["!", 1, 0]] * 40), ["+", 1, 1]],
        [["+", 1, 1], *([["!", 1, 0]] * 40)],
        [*([["!", 1, [{}]]] * 64)],
        [*([["!", 1, 0]] * 31), ["=", 1, 5], ["+", 1, 1]],
        [*([["!", 1, 0]] * 63), ["=", 1, 5], ["=", 1, 6]],
    ],
    ids=range(13),
)
def test_more_operations_than_are_read_at_once(changes: list[Any]) -> None:
    compiled, python = sides()
    for side in (compiled, python):
        side.handle(store(RequestType.REPLACE, PLAIN, [1, 1, "a"]))
    frame = update(PLAIN, [1], 0, 0, changes)
    assert compiled.handle(frame) == python.handle(frame)
    assert rows_of(compiled) == rows_of(python)


@pytest.mark.parametrize("mode", WalMode)
def test_what_is_logged(tmp_path: Path, mode: WalMode) -> None:
    frames = [
        store(RequestType.INSERT, PLAIN, [1, "a"]),
        store(RequestType.REPLACE, RANKED, [1, 1, "a"]),
        store(RequestType.REPLACE, RANKED, [2, 1, "a"]),
        store(RequestType.REPLACE, TEMPORARY, [1]),
        store(RequestType.REPLACE, TRIGGERED, [3]),
        update(RANKED, [1], 0, 0, [["=", 1, 5]]),
        update(RANKED, [5], 1, 0, [["=", 2, None]]),
        update(RANKED, [1], 0, 1, [["=", 1, 7]]),
        update(RANKED, [1], 0, 0, [["+", "rank", 3], [":", 2, 0, 0, "n"]]),
        update(RANKED, [1], 0, 0, [["+", "rank", 3], ["=", 2, "n"]]),
        update(PLAIN, [1], 0, 0, [["!", 1, 5], ["#", 2, 1], ["|", 1, 2]]),
        upsert(PLAIN, [1], 1, [["-", 2, 10]]),
        upsert(PLAIN, [1], 0, [["-", 7, 10]]),
        upsert(PLAIN, [2, 0], 0, [["+", 1, 1]]),
        upsert(RANKED, [7, 5, None], 0, [["+", 1, 1]]),
        upsert(RANKED, [8, 9, None], 0, [["+", 1, 1]]),
        upsert(RANKED, [1, 9, None], 0, [["=", 1, 9]]),
        upsert(RANKED, [1, 9, None], 0, [["=", 0, 9]]),
        upsert(TEMPORARY, [1, 9], 0, [["=", 2, 9]]),
        delete(RANKED, [5], 1),
        delete(PLAIN, [1], 0),
        delete(PLAIN, [1], 0),
        store(RequestType.INSERT, PAIRED, [1, "a"]),
        store(RequestType.INSERT, PAIRED, [1, "b"]),
        store(RequestType.REPLACE, PAIRED, [1, "a", 2]),
        update(PAIRED, [1], 1, 0, [["=", 2, 3]]),
        update(PAIRED, ["a", 1], 0, 0, [["=", 0, 2]]),
        delete(PAIRED, ["a", 1], 0),
        store(RequestType.INSERT, HASHED, [2, "a"]),
        store(RequestType.INSERT, HASHED, [2, "b"]),
        store(RequestType.REPLACE, HASHED, [1, "b"]),
        update(HASHED, [2], 0, 0, [["=", 1, "c"]]),
        upsert(HASHED, [3], 0, [["=", 1, "d"]]),
        *(select(HASHED, [2], 0, iterator, 0, 5) for iterator in range(8)),
        *(select(HASHED, [], 0, iterator, 0, 5) for iterator in range(8)),
        delete(HASHED, [1], 0),
        store(RequestType.REPLACE, RANKED, [30, 31, "a"]),
        update(RANKED, [31, 30], 3, 0, [["=", 1, 32]]),
        select(RANKED, [32], 3, 0, 0, 5),
        select(RANKED, [32, 30], 3, 0, 0, 5),
        delete(RANKED, [32, 30], 3),
    ]
    compiled, python = sides(tmp_path, mode)
    for frame in frames:
        assert compiled.handle(frame) == python.handle(frame)
    assert compiled.write() == python.write()
    assert compiled.state() == python.state()


SPACE_ID, KEY, TUPLE, LIMIT = int(Key.SPACE_ID), int(Key.KEY), int(Key.TUPLE), int(Key.LIMIT)
ODD = {
    "no space": request(RequestType.INSERT, {TUPLE: [1]}),
    "no tuple": request(RequestType.INSERT, {SPACE_ID: PLAIN}),
    "no key": request(RequestType.DELETE, {SPACE_ID: PLAIN}),
    "no limit": request(RequestType.SELECT, {SPACE_ID: PLAIN, KEY: [1]}),
    "no operations": request(RequestType.UPDATE, {SPACE_ID: PLAIN, KEY: [1]}),
    "a key that is no array": request(RequestType.DELETE, {SPACE_ID: PLAIN, KEY: 1}),
    "a tuple that is a map": request(RequestType.INSERT, {SPACE_ID: PLAIN, TUPLE: {1: 2}}),
    "an unknown key": request(RequestType.DELETE, {SPACE_ID: PLAIN, KEY: [1], 0x77: 1}),
    "a space by name": request(RequestType.DELETE, {int(Key.SPACE_NAME): "s700", KEY: [1]}),
    "an index by name": request(
        RequestType.DELETE, {SPACE_ID: RANKED, int(Key.INDEX_NAME): "rank", KEY: [1]}
    ),
    "a large number": request(RequestType.DELETE, {SPACE_ID: 2**32 + PLAIN, KEY: [1]}),
    "a negative number": request(RequestType.DELETE, {SPACE_ID: -1, KEY: [1]}),
    "a key twice": request(RequestType.DELETE, None) + b"\x82\x20\x91\x01\x20\x91\x01",
    "half a body": delete(PLAIN, [1], 0)[:-1],
    "bytes behind the body": delete(PLAIN, [1], 0) + b"\x00",
    "a body that is no map": request(RequestType.DELETE, [1]),
    "a long array": store(RequestType.INSERT, PLAIN, list(range(20))),
    "an array with a long head": request(RequestType.INSERT, None)
    + b"\x82\x10\xcd\x02\xbc\x21\xdd\x00\x00\x00\x01\x01",
    "extension types": store(RequestType.INSERT, PLAIN, [1, msgpack.ExtType(1, b"\x00\x1c")]),
    "a schema version": request(
        RequestType.DELETE, {SPACE_ID: PLAIN, KEY: [1]}, {int(Key.SCHEMA_VERSION): 1}
    ),
    "a page": request(
        RequestType.SELECT, {SPACE_ID: PLAIN, KEY: [], LIMIT: 1, int(Key.FETCH_POSITION): True}
    ),
    "an operation that is too short": update(PLAIN, [0], 0, 0, [["="]]),
    "an operation that is too long": update(PLAIN, [0], 0, 0, [["=", 1, 2, 3]]),
    "a field beyond": update(PLAIN, [0], 0, 0, [["=", 2**31, 2]]),
    "a field before the first": update(PLAIN, [0], 0, 1, [["=", 0, 2]]),
    "the field behind the last": update(PLAIN, [0], 0, 0, [["=", 2, "new"]]),
    "another primary key": update(PLAIN, [0], 0, 0, [["=", 0, 5]]),
    "the same primary key": update(PLAIN, [0], 0, 0, [["=", 0, 0]]),
    "another primary key by a sum": update(PLAIN, [0], 0, 0, [["+", 0, 1]]),
    "a primary key that moves": update(PLAIN, [0], 0, 0, [["!", 0, 0], ["=", 1, "b"]]),
    "a primary key that goes": update(PLAIN, [0], 0, 0, [["#", 0, 1]]),
    "an operation without a row": update(PLAIN, [7], 0, 0, [["+", "none", 1]]),
    "a decimal": update(PLAIN, [0], 0, 0, [["=", 1, msgpack.ExtType(1, b"\x00\x1c")], ["!", 1, 2]]),
    "what is no decimal": update(PLAIN, [0], 0, 0, [["=", 1, msgpack.ExtType(1, b"\x00")]]),
    "a map of maps": update(PLAIN, [0], 0, 0, [["=", 1, {"a": {1: [None]}}], ["!", 1, 2]]),
    "no operations at all": update(PLAIN, [0], 0, 0, []),
    "forty operations": update(PLAIN, [0], 0, 0, [["=", 1, number] for number in range(40)]),
    "an upsert without operations": upsert(PLAIN, [0, "a"], 0, []),
    "an upsert without an array of operations": request(
        RequestType.UPSERT, {SPACE_ID: PLAIN, TUPLE: [0], int(Key.OPS): 5}
    ),
    "an upsert that misses operations": request(RequestType.UPSERT, {SPACE_ID: PLAIN, TUPLE: [0]}),
    "an upsert with a key": request(
        RequestType.UPSERT, {SPACE_ID: PLAIN, TUPLE: [0], KEY: [5], int(Key.OPS): [["=", 1, 2]]}
    ),
    "an upsert of a row that does not fit": upsert(PLAIN, ["a"], 0, [["=", 1, 2]]),
    "an upsert of a new row with a malformed operation": upsert(PLAIN, [5], 0, [["=", 1]]),
    "an upsert with an operation that fails": upsert(PLAIN, [0], 0, [["+", 1, 1], ["=", 2, 5]]),
    "an upsert by the name of a field": upsert(RANKED, [0, 0, None], 0, [["+", "rank", 1]]),
    "an insert with operations": request(
        RequestType.INSERT, {SPACE_ID: PLAIN, TUPLE: [5], int(Key.OPS): [["=", 1, 2]]}
    ),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("user", ["admin", "guest"])
def test_odd_requests(name: str, user: str) -> None:
    compiled, python = sides()
    for side in (compiled, python):
        side.handle(store(RequestType.INSERT, PLAIN, [0, "zero"]))
    assert compiled.handle(ODD[name], user) == python.handle(ODD[name], user)
    assert compiled.state() == python.state()
    assert rows_of(compiled) == rows_of(python)


def test_spaces_that_are_dropped_and_made_anew() -> None:
    compiled, python = sides()
    frame = store(RequestType.REPLACE, PLAIN, [1])
    for step in ("", "drop", "create", "format", "read only"):
        for side in (compiled, python):
            box = side.box
            if step == "drop":
                box.space["s700"].drop()
            elif step == "create":
                box.schema.create_space("s700", id=PLAIN).create_index("primary")
            elif step == "format":
                box.space["s700"].truncate()
                box.space["s700"].format([("id", "unsigned"), ("more", "string")])
            elif step:
                box.set_read_only(True)
        for each in (frame, store(RequestType.REPLACE, PLAIN, [1, "a"]), select(PLAIN, [1], 0, 0, 0, 1)):
            assert compiled.handle(each) == python.handle(each), step
    assert compiled.state() == python.state()
