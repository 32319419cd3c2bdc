"""The ordered map, built at once, compared with a sorted list, also after changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import BTrees.check
import pytest
from BTrees.OOBTree import OOBTree
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.index.btrees_map import CHILDREN, LEAF_ENTRIES, Tree
from tests.plugins.profiles import examples


@pytest.fixture(autouse=True)
def the_checker_knows_the_tree() -> Iterator[None]:
    """Let the library's checker accept other classes than its own."""
    with pytest.MonkeyPatch.context() as patch:
        for known in (BTrees.check._type2kind, BTrees.check._btree2bucket):
            patch.setitem(known, Tree, known[OOBTree])
        yield


def key(number: int) -> bytes:
    return number.to_bytes(4, "big")


def loaded(count: int, step: int = 1) -> Any:
    """A tree with a number of entries, built at once."""
    tree = Tree()
    keys = [key(number * step) for number in range(count)]
    tree.load(keys, [b"value of " + each for each in keys])
    return tree


def check(tree: Any) -> None:
    """Check the invariants of the tree's nodes."""
    tree._check()
    BTrees.check.check(tree)


ONE_LEVEL, TWO_LEVELS = LEAF_ENTRIES * CHILDREN, LEAF_ENTRIES * CHILDREN * 2 + LEAF_ENTRIES + 7


@pytest.mark.parametrize(
    "count",
    [
        0,
        1,
        2,
        LEAF_ENTRIES - 1,
        LEAF_ENTRIES,
        LEAF_ENTRIES + 1,
        ONE_LEVEL - 1,
        ONE_LEVEL,
        ONE_LEVEL + 1,
        TWO_LEVELS,
    ],
)
def test_a_tree_made_at_once_is_sound_and_holds_what_it_was_given(count: int) -> None:
    tree = loaded(count)
    check(tree)
    keys = [key(number) for number in range(count)]
    assert list(tree.keys()) == keys
    assert list(tree.values()) == [b"value of " + each for each in keys]
    assert len(tree) == count
    assert all(tree[each] == b"value of " + each for each in keys)


@pytest.mark.parametrize("count", [LEAF_ENTRIES, ONE_LEVEL, TWO_LEVELS])
def test_entries_go_in_at_the_end_and_out_at_the_beginning_as_those_of_a_queue_do(count: int) -> None:
    tree = loaded(count)
    for number in range(count):
        assert tree.insert(key(count + number), b"new") == 1
        del tree[key(number)]
        if number % 5000 == 0:
            check(tree)
    check(tree)
    assert list(tree.keys()) == [key(number) for number in range(count, 2 * count)]
    for number in range(count, 2 * count):
        del tree[key(number)]
    check(tree)
    assert len(tree) == 0


STEP = 3
CHANGES = st.lists(
    st.tuples(st.booleans(), st.integers(0, LEAF_ENTRIES * STEP * 40)), min_size=1, max_size=2000
)


@examples(50)
@given(st.integers(0, LEAF_ENTRIES * 30), CHANGES)
def test_it_changes_as_a_dict_does(count: int, changes: list[tuple[bool, int]]) -> None:
    tree = loaded(count, STEP)
    expected = {key(number * STEP): b"value of " + key(number * STEP) for number in range(count)}
    for is_added, number in changes:
        if is_added:
            tree[key(number)] = expected[key(number)] = b"changed"
        elif expected.pop(key(number), None) is not None:
            del tree[key(number)]
    check(tree)
    assert list(tree.items()) == sorted(expected.items())
