"""The engine's ordered map against a sorted list of entries."""

from __future__ import annotations

import bisect
import gc
import itertools
import random
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.native._native import Tree

# Few different ones, some of them beginnings of others; none is empty, as no key of an index is.
keys = st.binary(min_size=1, max_size=2).map(lambda key: key[:1] + b"\x80" + key[1:]) | st.binary(
    min_size=1, max_size=3
)
bounds = st.none() | keys


def key(number: int) -> bytes:
    """A key as those of numbers are: of a fixed width, and not ending in 00."""
    return number.to_bytes(4, "big") + b"\x01"


def filled(numbers: Iterable[int]) -> tuple[Tree, dict[bytes, bytes]]:
    expected = {key(number): b"%d" % number for number in numbers}
    tree = Tree()
    for each, value in expected.items():
        assert tree.insert(each, value) == 1
    return tree, expected


@contextmanager
def counted() -> Iterator[Callable[[], int]]:
    """Gives a function that tells how many bytes there are that lines of this module have allocated.

    What else goes on in the process, in other threads or where garbage is collected, does not count.
    """

    def allocated() -> int:
        gc.collect()
        traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
        return sum(each.size for each in traces.statistics("filename"))

    tracemalloc.start()
    try:
        yield allocated
    finally:
        tracemalloc.stop()


def check(tree: Tree, expected: dict[bytes, bytes]) -> None:
    """Check that a tree has these entries and no others, in order."""
    in_order = sorted(expected)
    assert len(tree) == len(expected)
    assert bool(tree) == bool(expected)
    assert tree.after(b"", len(expected) + 1) == (in_order, [expected[each] for each in in_order])
    for each in in_order[:: max(len(in_order) // 50, 1)]:
        assert tree.get(each) == expected[each]
        assert tree[each] == expected[each]


@pytest.mark.parametrize("count", [0, 1, 2, 127, 128, 129, 256, 257, 1000, 5000])
@pytest.mark.parametrize("order", ["up", "down", "random"])
def test_entries_that_come_in_any_order(count: int, order: str) -> None:
    numbers = list(range(count))
    if order == "down":
        numbers.reverse()
    elif order == "random":
        random.Random(5).shuffle(numbers)
    tree, expected = filled(numbers)
    check(tree, expected)
    random.Random(6).shuffle(numbers)
    for left, number in zip(range(count - 1, -1, -1), numbers, strict=True):
        del tree[key(number)]
        del expected[key(number)]
        if left % (count // 5 + 1) == 0:
            check(tree, expected)
    check(tree, {})


@pytest.mark.parametrize("count", [0, 1, 128, 129, 20_000])
def test_a_tree_made_at_once(count: int) -> None:
    expected = {key(number): b"%d" % number for number in range(count)}
    tree = Tree()
    tree.load(list(expected), list(expected.values()))
    check(tree, expected)


def test_a_queue_goes_in_at_the_end_and_out_at_the_beginning() -> None:
    tree, expected = filled(range(300))
    for number in range(3000):
        assert tree.first(b"") == (key(number), expected[key(number)])
        del tree[key(number)], expected[key(number)]
        tree[key(number + 300)] = expected[key(number + 300)] = b"new"
    check(tree, expected)


def test_what_is_there_is_not_inserted_again() -> None:
    tree, expected = filled(range(10))
    assert tree.insert(key(5), b"other") == 0
    check(tree, expected)


def test_what_is_not_there() -> None:
    tree, expected = filled(range(0, 1000, 2))
    for number in (-1 % 2**32, 1, 501, 999, 5000):
        assert tree.get(key(number)) is None
        assert tree.get(key(number), b"otherwise") == b"otherwise"
        with pytest.raises(KeyError):
            tree[key(number)]
        with pytest.raises(KeyError):
            del tree[key(number)]
    check(tree, expected)


@given(st.lists(st.tuples(st.sampled_from("sidc"), keys, st.binary(max_size=2)), max_size=200), st.data())
def test_it_does_what_a_sorted_list_does(
    changes: list[tuple[str, bytes, bytes]], data: st.DataObject
) -> None:
    tree, expected = Tree(), {}
    for change, each, value in changes:
        if change == "s":
            tree[each] = expected[each] = value
        elif change == "i":
            assert tree.insert(each, value) == (each not in expected)
            expected.setdefault(each, value)
        elif change == "d" and each in expected:
            del tree[each], expected[each]
        elif change == "c" and len(expected) > 50:
            tree.clear()
            expected.clear()
    check(tree, expected)
    in_order = sorted(expected)
    low, high, count = data.draw(bounds), data.draw(bounds), data.draw(st.integers(0, 5))
    offset, limit = data.draw(st.integers(0, 5)), data.draw(st.sampled_from([0, 1, 3, 1000]))
    at_low = 0 if low is None else bisect.bisect_left(in_order, low)
    at_high = len(in_order) if high is None else bisect.bisect_left(in_order, high)
    between = [expected[each] for each in in_order[at_low:at_high]]
    assert tree.count_between(low, high) == len(between)
    assert tree.range_values(low, high, offset, limit, False) == between[offset:][:limit]
    between.reverse()
    assert tree.range_values(low, high, offset, limit, True) == between[offset:][:limit]
    if low is not None:
        following = [(each, expected[each]) for each in in_order[at_low:]]
        assert tree.first(low) == (following[0] if following else None)
        starting = [expected[each] for each in in_order if each.startswith(low)]
        assert tree.first_value(low) == (starting[0] if starting else None)
        behind = in_order[at_low + (low in expected) :][:count]
        assert tree.after(low, count) == (behind, [expected[each] for each in behind])


@pytest.mark.parametrize("count", [0, 1, 128, 1000])
def test_the_last_entry_below_a_key(count: int) -> None:
    tree, expected = filled(range(0, 2 * count, 2))
    in_order = sorted(expected.items())
    assert tree.last(None) == (in_order[-1] if in_order else None)
    for number in range(0, 2 * count + 2, max(count // 20, 1)):
        below = [entry for entry in in_order if entry[0] < key(number)]
        assert tree.last(key(number)) == (below[-1] if below else None)


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize(
    ("offset", "limit"), list(itertools.product([0, 1, 300, 11_000, 12_001], [0, 1, 500, 2**62]))
)
def test_values_far_inside(offset: int, limit: int, is_descending: bool) -> None:
    tree, expected = filled(range(12_000))
    values = sorted(expected.items(), reverse=is_descending)
    found = tree.range_values(None, None, offset, limit, is_descending)
    assert found == [value for _, value in values[offset:][:limit]]


@pytest.mark.parametrize("wrong", [None, 5, "text", bytearray(b"key")])
def test_keys_and_values_are_bytes(wrong: Any) -> None:
    tree = Tree()
    for change in (
        lambda: tree.insert(wrong, b"value"),
        lambda: tree.insert(b"key", wrong),
        lambda: tree.first(wrong),
        lambda: tree.first_value(wrong),
        lambda: tree.after(wrong, 1),
        lambda: tree.load([wrong], [b"value"]),
        lambda: tree.load([b"key"], [wrong]),
    ):
        with pytest.raises(TypeError):
            change()
    assert tree.get(wrong) is None
    assert len(tree) == 0


@pytest.mark.parametrize("bad", [(b"", b"", -1, 1, False), (b"", b"", 0, -1, False)])
def test_counts_are_not_negative(bad: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        Tree().range_values(*bad)


def test_an_entry_belongs_to_the_tree_only_while_it_is_there() -> None:
    with counted() as allocated:
        for _ in range(3):
            tree, _expected = filled(range(5000))
            for number in range(0, 5000, 2):
                del tree[key(number)]
                tree[key(number + 1)] = b"another %d" % number
            assert allocated() > 300_000
            tree.clear()
            tree.load([b"a", b"b"], [b"1", b"2"])
            del tree, _expected
        assert allocated() < 20_000
