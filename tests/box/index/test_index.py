"""Indexes: all iterators compared with a plain list, also during changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.index.factory import parse_index
from iproto_server.box.index.hash_index import HashIndex
from iproto_server.box.index.index import Index
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.tuple.format import Format
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType
from tests.box.key.test_key_encoding import exact

NO_FORMAT = Format.parse([], "s")
ORDERED = [IteratorType(number) for number in range(7)]
DESCENDING = (IteratorType.REQ, IteratorType.LT, IteratorType.LE)


def index(
    parts: list[Any],
    *,
    kind: str = "tree",
    unique: bool = True,
    primary: KeyDef | None = None,
    options: dict[str, Any] | None = None,
) -> Index:
    row = [512, 0 if primary is None else 1, "i", kind, {"unique": unique, **(options or {})}, parts]
    return parse_index(row, "s", primary)


def nullable(number: int, field_type: str) -> dict[str, Any]:
    return {"field": number, "type": field_type, "is_nullable": True}


class Rows:
    """Rows in a primary and a secondary index, as in a space."""

    def __init__(self, primary: Index, secondary: Index | None = None) -> None:
        self.primary = primary
        self.secondary = secondary

    def add(self, fields: list[Any]) -> None:
        """Store a row; one with the same primary key must not be there."""
        primary_key = self.primary.key_of(fields, b"")
        self.primary.insert(primary_key, codec.pack(fields))
        if self.secondary is not None:
            self.secondary.insert(self.secondary.key_of(fields, primary_key), primary_key)

    def remove(self, fields: list[Any]) -> None:
        """Remove an existing row."""
        primary_key = self.primary.key_of(fields, b"")
        self.primary.remove(primary_key)
        if self.secondary is not None:
            self.secondary.remove(self.secondary.key_of(fields, primary_key))

    @property
    def index(self) -> Index:
        """The index under test."""
        return self.primary if self.secondary is None else self.secondary

    def rows(self, values: Sequence[bytes] | Iterator[bytes]) -> list[Any]:
        """The decoded rows of values in the index under test."""
        if self.secondary is None:
            return [codec.unpack(value) for value in values]
        return [codec.unpack(self.primary.get(value) or b"") for value in values]

    def select(self, iterator: int, key: list[Any], offset: int = 0, limit: int = 1000) -> list[Any]:
        """The rows that `select` of the index under test finds."""
        return self.rows(self.index.select(iterator, key, offset, limit))


def ids(count: int) -> Rows:
    rows = Rows(index([[0, "unsigned"]]))
    for number in range(count):
        rows.add([number])
    return rows


def refused(function: Any, *arguments: Any) -> tuple[int, str]:
    with pytest.raises(BoxError) as caught:
        function(*arguments)
    return caught.value.code, caught.value.message


def expected(rows: list[list[Any]], order: list[int], iterator: IteratorType, key: list[Any]) -> list[Any]:
    """The expected result of an iterator, from a plain sort and a comparison of all rows.

    Parameters:
        rows: all rows.
        order: the fields that order them, those that make the order total included.
        iterator, key: what is asked.
    """

    def reference(values: list[Any]) -> list[Any]:
        return [(-1,) if value is None else exact(value) for value in values]

    def position(row: list[Any]) -> list[Any]:
        return reference([row[number] if number < len(row) else None for number in order])

    bound = reference(key)
    found = []
    for row in sorted(rows, key=position):
        start = position(row)[: len(bound)]
        if (
            not key
            or {
                IteratorType.EQ: start == bound,
                IteratorType.REQ: start == bound,
                IteratorType.ALL: start >= bound,
                IteratorType.GE: start >= bound,
                IteratorType.GT: start > bound,
                IteratorType.LT: start < bound,
                IteratorType.LE: start <= bound,
            }[iterator]
        ):
            found.append(row)
    return found[::-1] if iterator in DESCENDING else found


small = st.integers(0, 3)
nil_or = st.none() | small
ROWS = st.lists(st.tuples(small, nil_or, st.sampled_from(["", "a", "a\0", "b"]), small), max_size=12)
PRIMARY: list[Any] = [[0, "unsigned"], [2, "string"]]
SHAPES: list[tuple[Any, ...]] = [
    # parts of the secondary index, whether it is unique, the fields that order it
    (None, True, [0, 2]),
    ([[2, "string"]], False, [2, 0]),
    ([[3, "number"]], False, [3, 0, 2]),
    ([[2, "scalar"], [0, "integer"]], True, [2, 0]),
    ([nullable(1, "unsigned")], False, [1, 0, 2]),
    ([nullable(1, "unsigned"), {"field": 2, "type": "string"}], False, [1, 2, 0]),
    ([nullable(1, "unsigned"), {"field": 0, "type": "unsigned"}, nullable(2, "string")], True, [1, 0, 2]),
    ([nullable(5, "unsigned")], True, [5, 0, 2]),
]


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_every_iterator_with_every_key(shape: tuple[Any, ...], data: st.DataObject) -> None:
    parts, unique, order = shape
    primary = index(PRIMARY)
    space = Rows(primary, parts and index(parts, unique=unique, primary=primary.key_def))
    rows = {(row[0], row[2]): list(row) for row in data.draw(ROWS)}
    for row in rows.values():
        space.add(row)
    columns = {0: small, 1: nil_or, 2: st.sampled_from(["", "a", "a\0", "b"]), 3: small, 5: nil_or}
    length = data.draw(st.integers(0, space.index.part_count))
    key = [data.draw(columns[number]) for number in order[:length]]
    offset, limit = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4) | st.just(2**32))
    for iterator in ORDERED:
        found = expected(list(rows.values()), order, iterator, key)
        assert space.select(iterator, key, offset, limit) == found[offset : offset + limit]
        assert space.rows(space.index.iterate(iterator, key)) == found
        assert space.index.count(iterator, key) == len(found)
    equal = expected(list(rows.values()), order, IteratorType.EQ, key)
    for answer, place in (
        (space.index.range_first(space.index.encode_key(key)), 0),
        (space.index.min(key), 0),
        (space.index.max(key), -1),
    ):
        assert space.rows([] if answer is None else [answer]) == (equal and [equal[place]])
    for row in rows.values():
        space.remove(row)
    assert len(space.index) == 0


COUNT = 30_000


@pytest.fixture(scope="module")
def large() -> Rows:
    """A tree of many leaves."""
    return ids(COUNT)


class TestLargeTree:
    @pytest.mark.parametrize("iterator", [IteratorType.ALL, IteratorType.REQ])
    @pytest.mark.parametrize("offset", [0, 255, 256, 10_001, 29_999, 30_000, 30_001])
    @pytest.mark.parametrize("limit", [1, 256, 2**64])
    def test_offset_and_limit(self, large: Rows, iterator: IteratorType, offset: int, limit: int) -> None:
        everything = list(range(COUNT))[:: -1 if iterator is IteratorType.REQ else 1]
        found = large.select(iterator, [], offset, limit)
        assert [row[0] for row in found] == everything[offset : offset + limit]

    def test_a_walk_reads_no_further_than_it_is_asked_to(self, large: Rows) -> None:
        for iterator in ORDERED:
            walk = large.index.iterate(iterator, [15_000])
            assert len(list(islice(walk, 2))) == (1 if iterator in (IteratorType.EQ, IteratorType.REQ) else 2)

    def test_random_is_any_row(self, large: Rows) -> None:
        assert large.rows([large.index.random(COUNT + 7) or b""]) == [[7]]
        assert index([[0, "unsigned"]]).random(7) is None


class TestChangesDuringAWalk:
    def test_rows_behind_are_removed(self) -> None:
        for iterator in (IteratorType.ALL, IteratorType.REQ):
            rows = ids(300)
            seen = []
            for value in rows.index.iterate(iterator, []):
                fields = codec.unpack(value)
                seen.append(fields[0])
                rows.remove(fields)
            assert sorted(seen) == list(range(300))
            assert len(rows.index) == 0

    def test_rows_ahead_are_removed_and_added(self) -> None:
        rows = ids(10)
        walk = rows.index.iterate(IteratorType.ALL, [])
        next(walk)
        rows.remove([1])
        rows.add([100])
        assert [row[0] for row in rows.rows(walk)] == [2, 3, 4, 5, 6, 7, 8, 9, 100]

    def test_everything_is_removed(self) -> None:
        for iterator in (IteratorType.ALL, IteratorType.REQ):
            rows = ids(10)
            walk = rows.index.iterate(iterator, [])
            next(walk)
            rows.index.clear()
            assert list(walk) == []

    def test_a_hash_passes_over_what_was_removed(self) -> None:
        rows = Rows(index([[0, "unsigned"]], kind="hash"))
        for number in range(4):
            rows.add([number])
        walk = rows.index.iterate(IteratorType.ALL, [])
        (first,) = rows.rows([next(walk)])[0]
        gone = (first + 1) % 4
        rows.remove([gone])
        rows.add([9])
        left = {row[0] for row in rows.rows(walk)}
        assert left - {9} == set(range(4)) - {first, gone}


class TestUniqueness:
    def test_nil_is_never_a_duplicate(self) -> None:
        primary = index([[0, "unsigned"]])
        unique = index([nullable(1, "unsigned")], primary=primary.key_def)
        one, other = ([number, None] for number in (1, 2))
        assert unique.key_of(one, b"1") != unique.key_of(other, b"2")
        assert unique.key_of([1, 5], b"1") == unique.key_of([2, 5], b"2") == unique.encode_unique_key([5])

    def test_a_key_that_holds_the_primary_key_does_not_repeat_it(self) -> None:
        primary = index([[0, "number"]])
        status = index([[1, "string"], [0, "number"]], unique=False, primary=primary.key_def)
        assert status.key_of([1, "R"], primary.key_of([1, "R"], b"")) == status.encode_key(["R", 1])

    def test_one_row_is_found_by_a_whole_key_of_a_unique_index_only(self) -> None:
        primary = index([[0, "unsigned"]])
        many = index([[1, "unsigned"]], unique=False, primary=primary.key_def)
        assert refused(many.encode_unique_key, [1, 2, 3]) == (
            ErrorCode.MORE_THAN_ONE_TUPLE,
            "Get() doesn't support partial keys and non-unique indexes",
        )
        assert refused(primary.encode_unique_key, [])[0] == ErrorCode.EXACT_MATCH


@pytest.mark.parametrize("kind", ["tree", "hash"])
class TestEveryKind:
    def test_entries(self, kind: str) -> None:
        entries = index([[0, "unsigned"]], kind=kind)
        entries.insert(b"1", b"one")
        entries.set(b"1", b"eins")
        entries.insert(b"2", b"two")
        entries.insert(b"3", b"three")
        entries.remove(b"3")
        assert (entries.get(b"1"), entries.get(b"3"), len(entries)) == (b"eins", None, 2)
        assert sorted(entries.keys()) == [b"1", b"2"]
        assert sorted(entries.items()) == [(b"1", b"eins"), (b"2", b"two")]
        with pytest.raises(KeyError):
            entries.remove(b"3")

    def test_many_entries_at_once(self, kind: str) -> None:
        keys = [str(number).encode() for number in range(1000)]
        entries = index([[0, "unsigned"]], kind=kind)
        assert entries.build(keys, keys[::-1]) == []
        assert sorted(entries.items()) == sorted(zip(keys, keys[::-1], strict=True))
        entries.insert(b"1000", b"another")
        assert len(entries) == 1001

    def test_of_many_entries_with_one_key_the_first_is_taken(self, kind: str) -> None:
        entries = index([[0, "unsigned"]], kind=kind)
        assert entries.build([b"2", b"1", b"2", b"1", b"3", b"2"], [b"a", b"b", b"c", b"d", b"e", b"f"]) == [
            2,
            3,
            5,
        ]
        assert sorted(entries.items()) == [(b"1", b"b"), (b"2", b"a"), (b"3", b"e")]

    def test_an_empty_copy_shares_nothing_and_adopting_shares_all(self, kind: str) -> None:
        entries = index([[0, "unsigned"]], kind=kind)
        entries.insert(b"1", b"one")
        copy = entries.empty_copy()
        assert type(copy) is (TreeIndex if kind == "tree" else HashIndex)
        assert copy.kind_equals(entries)
        assert len(copy) == 0
        copy.adopt(entries)
        assert copy.get(b"1") == b"one"

    def test_indexes_of_one_kind(self, kind: str) -> None:
        one = index([[0, "unsigned"]], kind=kind)
        assert one.kind_equals(index([[0, "UNSIGNED"]], kind=kind.upper()))
        assert not one.kind_equals(index([[0, "integer"]], kind=kind))
        assert not one.kind_equals(index([[0, "unsigned"]], kind="hash" if kind == "tree" else "tree"))

    def test_an_iterator_that_nobody_has(self, kind: str) -> None:
        entries = index([[0, "unsigned"]], kind=kind)
        for iterator in (12, 255, -1):
            assert refused(entries.iterate, iterator, [1])[0] == ErrorCode.ILLEGAL_PARAMS

    @pytest.mark.parametrize("iterator", range(7, 12))
    def test_an_iterator_of_other_index_types(self, kind: str, iterator: int) -> None:
        entries = index([[0, "unsigned"]], kind=kind)
        for function in (entries.iterate, entries.select, entries.count):
            assert refused(function, iterator, [1]) == (
                ErrorCode.UNSUPPORTED_INDEX_FEATURE,
                f"Index 'i' ({kind.upper()}) of space 's' (memtx) does not support requested iterator type",
            )


class TestHash:
    @pytest.fixture
    def pairs(self) -> Rows:
        rows = Rows(index([[0, "unsigned"], [1, "string"]], kind="hash"))
        for number in range(3):
            rows.add([number, "a"])
        return rows

    def test_a_whole_key(self, pairs: Rows) -> None:
        assert pairs.select(IteratorType.EQ, [1, "a"]) == [[1, "a"]]
        assert pairs.select(IteratorType.EQ, [1, "b"]) == []
        assert pairs.select(IteratorType.EQ, [1, "a"], 1) == []
        assert pairs.index.count(IteratorType.EQ, [1, "a"]) == 1

    @pytest.mark.parametrize("iterator", [IteratorType.ALL, IteratorType.GT])
    def test_everything(self, pairs: Rows, iterator: IteratorType) -> None:
        assert sorted(pairs.select(iterator, [])) == [[0, "a"], [1, "a"], [2, "a"]]
        assert pairs.index.count(iterator, []) == 3

    def test_all_takes_no_notice_of_a_key(self, pairs: Rows) -> None:
        assert len(pairs.select(IteratorType.ALL, [1, "a"])) == 3

    def test_all_rows_are_in_the_order_of_their_keys(self) -> None:
        rows = Rows(index([[0, "unsigned"]], kind="hash"))
        for number in (300, 5, 70_000, 0, 2, 256):
            rows.add([number])
        assert rows.select(IteratorType.ALL, []) == [[0], [2], [5], [256], [300], [70_000]]

    def test_gt_leads_through_all_rows(self) -> None:
        rows = Rows(index([[0, "unsigned"]], kind="hash"))
        for number in range(1000):
            rows.add([number])
        seen = page = rows.select(IteratorType.GT, [], 0, 7)
        while page:
            page = rows.select(IteratorType.GT, page[-1], 0, 7)
            seen = seen + page
        assert sorted(seen) == [[number] for number in range(1000)]
        assert seen == rows.select(IteratorType.ALL, [])

    def test_gt_goes_on_behind_a_row(self, pairs: Rows) -> None:
        first, *rest = pairs.select(IteratorType.GT, [])
        assert pairs.select(IteratorType.GT, first) == rest
        assert pairs.rows(pairs.index.iterate(IteratorType.GT, first)) == rest
        assert pairs.index.count(IteratorType.GT, first) == 2
        assert pairs.select(IteratorType.GT, [9, "a"]) == []

    @pytest.mark.parametrize(
        "iterator", [IteratorType.EQ, IteratorType.REQ, IteratorType.LT, IteratorType.GE]
    )
    @pytest.mark.parametrize("key", [[], [1]])
    def test_a_partial_key(self, pairs: Rows, iterator: IteratorType, key: list[Any]) -> None:
        assert refused(pairs.index.select, iterator, key) == (
            ErrorCode.PARTIAL_KEY,
            f"HASH index  does not support selects via a partial key (expected 2 parts, got {len(key)}). "
            "Please Consider changing index type to TREE.",
        )

    @pytest.mark.parametrize(
        "iterator", [IteratorType.REQ, IteratorType.LT, IteratorType.LE, IteratorType.GE]
    )
    def test_no_order(self, pairs: Rows, iterator: IteratorType) -> None:
        assert refused(pairs.index.iterate, iterator, [1, "a"])[0] == ErrorCode.UNSUPPORTED_INDEX_FEATURE
        assert refused(pairs.index.iterate, iterator, [1, 1])[0] == ErrorCode.KEY_PART_TYPE
        assert refused(pairs.index.iterate, iterator, [1, "a", 1])[0] == ErrorCode.KEY_PART_COUNT

    def test_no_least_and_no_greatest(self, pairs: Rows) -> None:
        text = "Index 'i' (HASH) of space 's' (memtx) does not support {}()"
        assert refused(pairs.index.min, []) == (ErrorCode.UNSUPPORTED_INDEX_FEATURE, text.format("min"))
        assert refused(pairs.index.max, [1]) == (ErrorCode.UNSUPPORTED_INDEX_FEATURE, text.format("max"))

    def test_random_and_first(self, pairs: Rows) -> None:
        in_order = pairs.select(IteratorType.ALL, [])
        assert pairs.rows([pairs.index.random(4) or b""]) == [in_order[1]]
        assert pairs.index.empty_copy().random(4) is None
        assert pairs.index.range_first(pairs.index.encode_key([2, "a"])) == codec.pack([2, "a"])
        assert pairs.index.range_first(b"") == codec.pack(in_order[0])
