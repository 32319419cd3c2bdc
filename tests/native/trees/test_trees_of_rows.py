"""Trees that make keys from rows, against sorted lists of the keys that Python makes of the same rows."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iproto_server.box.key.key_def import KeyDef, distinct_key_of, key_layout
from iproto_server.box.key.key_encoding import prefix_end
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.native._native import Tree

texts = st.text(st.sampled_from("\0\x01ab\xff"), max_size=10)
edges = [2**bits - less for bits in range(64) for less in (0, 1)]
unsigned = st.integers(0, 300) | st.integers(0, 2**64 - 1) | st.sampled_from([*edges, 2**64 - 1])
integers = unsigned | st.integers(-300, 0) | st.integers(-(2**63), -1)
doubles = st.floats() | st.integers(-300, 300).map(float) | st.floats(0, 3)
decimals = st.decimals(-10, 10, places=3) | st.decimals(0, 9, places=20)
VALUES: dict[FieldType, st.SearchStrategy[Any]] = {
    FieldType.UNSIGNED: unsigned,
    FieldType.INTEGER: integers,
    FieldType.NUMBER: integers | doubles | decimals,
    FieldType.DOUBLE: doubles,
    FieldType.BOOLEAN: st.booleans(),
    FieldType.STRING: texts,
    FieldType.VARBINARY: st.binary(max_size=10) | st.sampled_from([b"\0", b"\0\0", b"\0\x01", b"\xff" * 9]),
}
TYPES = sorted(VALUES, key=lambda each: each.value)


def packed(values: Sequence[Any]) -> bytes:
    return codec.pack(list(values))


class Model:
    """A primary index and a secondary one, and the same entries in sorted lists.

    Args:
        types: the types of the fields; the first ones are the primary key.
        key_fields: how many.
        parts: fields of the secondary index, and whether each may be nil.
        is_unique: whether the secondary index is.
    """

    def __init__(
        self, types: list[FieldType], key_fields: int, parts: list[tuple[int, bool]], *, is_unique: bool
    ) -> None:
        primary = KeyDef([KeyPart(number, types[number]) for number in range(key_fields)])
        secondary = KeyDef([KeyPart(number, types[number], may_be_nil) for number, may_be_nil in parts])
        self.key_of = distinct_key_of(primary, True, None)
        self.other_key_of = distinct_key_of(secondary, is_unique, primary)
        self.encode, self.encode_other = primary.encode_key, secondary.encode_key
        self.rows = Tree(key_layout(primary, True, None))
        self.references = Tree(key_layout(secondary, is_unique, primary), self.rows)
        self.keys: dict[bytes, bytes] = {}
        self.other_keys: dict[bytes, bytes] = {}

    def add(self, fields: list[Any]) -> None:
        """Store a row, unless one of its keys is there."""
        key = self.key_of(fields, b"")
        other_key = self.other_key_of(fields, key)
        if key not in self.keys and other_key not in self.other_keys:
            self.keys[key] = self.rows[key] = packed(fields)
            self.other_keys[other_key] = self.references[other_key] = key

    def remove(self, key: bytes) -> None:
        fields = codec.unpack(self.keys.pop(key))
        other_key = self.other_key_of(fields, key)
        assert self.other_keys.pop(other_key) == key
        del self.references[other_key]
        del self.rows[key]

    def check(self, bounds: list[bytes]) -> None:
        for tree, entries in ((self.rows, self.keys), (self.references, self.other_keys)):
            keys = sorted(entries)
            assert len(tree) == len(keys)
            assert tree.after(b"", len(keys) + 1) == (keys, [entries[key] for key in keys])
            assert [tree.get(key) for key in keys] == [entries[key] for key in keys]
            for bound in bounds:
                place = bisect.bisect_left(keys, bound)
                assert tree.count_between(bound, None) == len(keys) - place
                first = (keys[place], entries[keys[place]]) if place < len(keys) else None
                assert tree.first(bound) == first
                if bound:
                    last = (keys[place - 1], entries[keys[place - 1]]) if place else None
                    assert tree.last(bound) == last


def bounds_of(model: Model, keys: list[bytes]) -> list[bytes]:
    """Whole keys, beginnings of keys, and what is just above them."""
    found = {b""}
    for key in keys:
        for size in range(len(key) + 1):
            found |= {key[:size], key[:size] + b"\0", prefix_end(key[:size]) or b"\xff"}
    return sorted(found)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[FieldType], int, list[tuple[int, bool]], bool]:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=4))
    parts = draw(st.permutations(range(len(types))))[: draw(st.integers(1, len(types)))]
    key_fields = draw(st.integers(1, len(types)))
    nullable = [number >= key_fields and draw(st.booleans()) for number in parts]
    return types, key_fields, list(zip(parts, nullable, strict=True)), draw(st.booleans())


@settings(deadline=None)
@given(st.data())
def test_the_order_is_that_of_the_keys_that_python_makes(data: st.DataObject) -> None:
    types, key_fields, parts, is_unique = data.draw(layouts())
    model = Model(types, key_fields, parts, is_unique=is_unique)
    may_be_nil = {number for number, nullable in parts if nullable}
    fields = [VALUES[kind] for kind in types]
    for number in may_be_nil:
        fields[number] |= st.none()
    for values in data.draw(st.lists(st.tuples(*fields).map(list), min_size=1, max_size=12)):
        model.add(values)
    some = sorted(model.keys)[:3]
    model.check(bounds_of(model, [*some, *sorted(model.other_keys)[:3]]))
    for key in data.draw(st.lists(st.sampled_from(sorted(model.keys)), unique=True)) if model.keys else ():
        model.remove(key)
    model.check(bounds_of(model, some[:1]))


NUMBERS = [
    0, 1, 2, 255, 256, 65535, 65536, 2**24, 2**53 - 1, 2**53, 2**53 + 1, 2**63, 2**64 - 1,
    -1, -255, -256, -(2**63), 0.5, 1.5, 1.25, 1.0000001, 255.5, 2.0**60, 1e300,
    math.inf, -math.inf, -0.5, -1.5, math.nan, 5e-324,
    Decimal("1.1"), Decimal("1.10000000000000000001"), Decimal("0.00000000000000000001"), Decimal("-3.3"),
    Decimal(2**60 + 1), Decimal("1.5"),
]  # fmt: skip


@pytest.mark.parametrize("after", [[], [1], [2**40]])
def test_numbers_of_every_kind_have_one_order(after: list[int]) -> None:
    """A number is followed by another part, so that a short form of it must not run into that one."""
    model = Model([FieldType.NUMBER, *[FieldType.UNSIGNED for _ in after]], 1, [(0, False)], is_unique=False)
    for number in NUMBERS:
        model.add([number, *after])
    assert len(model.keys) == len({model.encode([number]) for number in NUMBERS})
    model.check(bounds_of(model, [*model.keys, *model.other_keys]))


def test_thousands_of_rows_in_two_orders() -> None:
    model = Model([FieldType.UNSIGNED, FieldType.STRING], 1, [(1, False)], is_unique=False)
    for number in range(5000):
        model.add([number * 7919 % 5003, f"status {number % 3}"])
    model.check([model.encode_other([f"status {number}"]) for number in range(4)])
    for key in sorted(model.keys)[::2]:
        model.remove(key)
    model.check([model.encode_other([f"status {number}"]) for number in range(4)])


@settings(deadline=None)
@given(st.data())
def test_an_index_built_at_once_is_the_one_that_grew(data: st.DataObject) -> None:
    types, key_fields, parts, is_unique = data.draw(layouts())
    model = Model(types, key_fields, parts, is_unique=is_unique)
    may_be_nil = {number for number, nullable in parts if nullable}
    fields = [VALUES[kind] for kind in types]
    for number in may_be_nil:
        fields[number] |= st.none()
    has_repeated = False
    other_keys: dict[bytes, bytes] = {}
    for values in data.draw(st.lists(st.tuples(*fields).map(list), max_size=12)):
        key = model.key_of(values, b"")
        if key not in model.keys:
            model.keys[key] = model.rows[key] = packed(values)
            has_repeated |= model.other_key_of(values, key) in other_keys
            other_keys[model.other_key_of(values, key)] = key
    has_odd = any(isinstance(each, Decimal) for raw in model.keys.values() for each in codec.unpack(raw))
    was_built = model.references.build_from(model.rows)
    assert model.rows.values_size() == sum(map(len, model.keys.values()))
    assert was_built or has_repeated or has_odd
    if was_built:
        assert not has_repeated
        model.other_keys = other_keys
    else:
        assert len(model.references) == 0
        model.rows.clear()
        model.keys.clear()
    model.check(bounds_of(model, sorted(other_keys)[:2] if was_built else []))
    for key in sorted(model.keys)[::2]:
        model.remove(key)
    model.check([])


@pytest.mark.parametrize("count", [0, 1, 8, 9, 32, 33, 128, 129, 5000])
@pytest.mark.parametrize("status", ["", "one status that is longer than a hint"])
def test_thousands_of_rows_built_at_once(count: int, status: str) -> None:
    model = Model([FieldType.UNSIGNED, FieldType.STRING], 1, [(1, False)], is_unique=False)
    for number in range(count):
        fields = [number * 3, f"{status} {number * 7919 % 5003}"]
        key = model.key_of(fields, b"")
        model.keys[key] = model.rows[key] = packed(fields)
        model.other_keys[model.other_key_of(fields, key)] = key
    assert model.references.build_from(model.rows)
    model.check([model.encode_other([f"{status} {number}"]) for number in range(4)])
    for key in sorted(model.keys)[::2]:
        model.remove(key)
    model.check([])


class TestAppending:
    def keys(self, *numbers: int) -> list[bytes]:
        return [number.to_bytes(8, "big") for number in numbers]

    @pytest.mark.parametrize("layout", [None, (((0, "unsigned", False),), 1, False)])
    def test_only_what_is_above_all_others(self, layout: Any) -> None:
        tree = Tree(layout)
        assert tree.append(self.keys(1, 5, 300), [packed([1]), packed([5]), packed([300])])
        assert not tree.append(self.keys(300), [packed([300])])
        assert not tree.append(self.keys(2), [packed([2])])
        assert not tree.append(self.keys(400, 402, 401), [packed([400]), packed([402]), packed([401])])
        assert not tree.append(self.keys(400, 400), [packed([400]), packed([400])])
        assert tree.append(self.keys(301), [packed([301])])
        assert tree.append([], [])
        assert tree.after(b"", 9)[0] == self.keys(1, 5, 300, 301)

    def test_what_is_no_key_is_refused(self) -> None:
        tree: Any = Tree()
        for keys, values in [(["a"], [b""]), ([b"a"], ["b"]), ([b"a"], []), ((), ())]:
            with pytest.raises((TypeError, ValueError)):
                tree.append(keys, values)
        assert len(tree) == 0


class TestWhatDoesNotBelongTogether:
    def test_an_index_is_built_of_its_own_rows_and_once(self) -> None:
        rows, layout = self.rows(), (((1, "string", False), (0, "unsigned", False)), 1, False)
        rows[self.key(1)] = packed([1, "a"])
        references = Tree(layout, rows)
        others: list[Any] = [self.rows(), Tree(), references, None]
        assert [references.build_from(other) for other in others] == [False] * 4
        assert references.build_from(rows)
        with pytest.raises(ValueError, match="fills an empty tree"):
            references.build_from(rows)
        assert not Tree().build_from(rows)

    def test_a_row_without_the_field_leaves_the_index_empty(self) -> None:
        rows = self.rows()
        rows[self.key(1)], rows[self.key(2)] = packed([1, "a"]), packed([2])
        references = Tree((((1, "string", False), (0, "unsigned", False)), 1, False), rows)
        assert not references.build_from(rows)
        assert len(references) == 0

    def rows(self) -> Any:
        return Tree((((0, "unsigned", False),), 1, False))

    def key(self, number: int) -> bytes:
        return number.to_bytes(8, "big")

    def test_a_row_has_its_key(self) -> None:
        rows = self.rows()
        with pytest.raises(ValueError, match="the row does not have that key"):
            rows[self.key(1)] = packed([2])
        assert len(rows) == 0

    @pytest.mark.parametrize("raw", [b"", b"\xc0", b"\x91", b"\xc1", b"\x92\xa5abc", b"\x91\xd9"])
    def test_bytes_that_are_no_row_are_kept_under_the_key_that_is_given(self, raw: bytes) -> None:
        rows = self.rows()
        rows[self.key(1)] = raw
        assert rows.after(b"", 2) == ([self.key(1)], [raw])
        del rows[self.key(1)]
        assert len(rows) == 0

    def test_a_reference_needs_a_row(self) -> None:
        rows = self.rows()
        references = Tree((((1, "string", False), (0, "unsigned", False)), 1, False), rows)
        with pytest.raises(ValueError, match="there is no row with that primary key"):
            references[b"a\0\0" + self.key(1)] = self.key(1)
        assert len(references) == 0

    def test_a_reference_to_a_row_that_is_gone_is_reported(self) -> None:
        rows = self.rows()
        rows[self.key(1)] = packed([1, "a"])
        references = Tree((((1, "string", False), (0, "unsigned", False)), 1, False), rows)
        references[b"a\0\0" + self.key(1)] = self.key(1)
        del rows[self.key(1)]
        with pytest.raises(RuntimeError, match="an index refers to a row that was removed"):
            references.after(b"", 1)

    @pytest.mark.parametrize(
        "layout",
        [(), ((), 1, False), (((0, "unsigned", False),), 2, False), (((0, "unsigned", False),), 0, False),
         ((1,), 1, False), (((0, "decimal", False),), 1, False), (((0, "unsigned", False),) * 17, 1, False)],
    )  # fmt: skip
    def test_a_layout_is_refused(self, layout: Any) -> None:
        with pytest.raises((ValueError, TypeError)):
            Tree(layout)

    def test_only_trees_of_rows_are_referred_to(self) -> None:
        layout = (((0, "unsigned", False),), 1, False)
        references = Tree(layout, self.rows())
        others: list[Any] = [Tree(), references, {}]
        for primary in others:
            with pytest.raises(TypeError):
                Tree(layout, primary)
        with pytest.raises(TypeError):
            Tree(None, self.rows())
