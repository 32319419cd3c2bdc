"""A dict that grows and shrinks in small steps is a dict in all other respects."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import IncrementalDict

keys = (
    st.integers(0, 40)
    | st.integers(-(2**70), 2**70)
    | st.sampled_from(["", "a", 1.0, 2.5, True, None, (1, "x")])
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["set", "set", "set", "delete", "pop", "setdefault", "clear"]),
        keys,
        st.integers(0, 9),
    ),
    max_size=200,
)


def _apply(one: Any, what: str, key: Any, value: int) -> object:
    match what:
        case "set":
            one[key] = value
        case "delete":
            try:
                del one[key]
            except KeyError as error:
                return error.args
        case "pop":
            return one.pop(key, "none")
        case "setdefault":
            return one.setdefault(key, value)
        case "clear" if value == 9:
            one.clear()
    return None


@given(steps)
def test_it_is_a_dict(changes: list[tuple[str, Any, int]]) -> None:
    same: dict[Any, int] = {}
    other: IncrementalDict[Any, int] = IncrementalDict()
    for what, key, value in changes:
        assert _apply(other, what, key, value) == _apply(same, what, key, value)
        assert other.get(key) == same.get(key)
        assert (key in other) == (key in same)
        assert len(other) == len(same)
        assert bool(other) == bool(same)
    assert list(other.items()) == list(same.items())
    assert list(other.values()) == list(same.values())
    assert other == same
    assert same == other
    assert repr(same) in repr(other)


@pytest.mark.parametrize("step", [1, 3, 64, 1000, 2**20, 2**40])
def test_many_keys(step: int) -> None:
    dice = random.Random(step)
    same: dict[int, int] = {}
    other: IncrementalDict[int, int] = IncrementalDict()
    for number in range(20_000):
        same[number * step] = other[number * step] = number
        if number % 3 == 2:
            gone = dice.randrange(number) * step
            assert other.pop(gone, None) == same.pop(gone, None)
    assert list(other.items()) == list(same.items())
    for key in dice.sample(list(same), len(same)):
        assert other.pop(key) == same.pop(key)
        if len(same) % 1000 == 0:
            assert list(other.items()) == list(same.items())
    assert not other


def test_a_change_adds_or_removes_a_few_buckets() -> None:
    changed: Any = IncrementalDict()
    least = changed.buckets
    for number in range(50_000):
        before = changed.buckets
        changed[number] = number
        assert 0 <= changed.buckets - before <= 1
    assert len(changed) <= changed.buckets <= len(changed) + least
    for number in range(50_000):
        before = changed.buckets
        del changed[number]
        assert 0 <= before - changed.buckets <= 4
        assert changed.buckets <= 4 * len(changed) + least
    assert changed.buckets == least


@pytest.mark.parametrize("step", [1, 8, 64, 1000, 2**20, 2**40, 3 * 2**50])
def test_keys_are_spread_over_the_buckets(step: int) -> None:
    class Counted(int):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    found: IncrementalDict[int, int] = IncrementalDict()
    for number in range(5000):
        found[Counted(number * step)] = number
    assert [found[number * step] for number in range(5000)] == list(range(5000))
    # Keys of other hashes are not compared, and there is one key of each hash.
    assert Counted.compared == 5000


def test_missing_and_wrong_keys_are_refused() -> None:
    empty: IncrementalDict[Any, int] = IncrementalDict()
    removals: tuple[Callable[[Any], object], ...] = (empty.__getitem__, empty.__delitem__, empty.pop)
    for what in removals:
        with pytest.raises(KeyError, match="'a'"):
            what("a")
    searches: tuple[Callable[[Any], object], ...] = (empty.get, empty.pop, empty.__contains__, *removals)
    empty["b"] = 1
    for what in searches:
        with pytest.raises(TypeError, match="unhashable"):
            what([])
    with pytest.raises(TypeError, match="unhashable"):
        empty[[]] = 1
    with pytest.raises(TypeError):
        hash(empty)
    with pytest.raises(TypeError):
        IncrementalDict({1: 2})  # type: ignore[call-arg]
    assert list(empty) == ["b"]


def test_a_change_ends_an_iteration() -> None:
    changed: IncrementalDict[int, int] = IncrementalDict()
    changed[1] = changed[2] = 0
    present = iter(changed)
    assert next(present) == 1
    changed[1] = 5  # no other keys
    assert next(present) == 2
    changed[3] = 0
    with pytest.raises(RuntimeError, match="during iteration"):
        next(present)


def test_a_comparison_may_raise_or_change_the_dict() -> None:
    class Key:
        def __init__(self, compare: Any) -> None:
            self.compare = compare

        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            return bool(self.compare(other))

    changed: IncrementalDict[Any, int] = IncrementalDict()
    changed[Key(lambda other: 1 // 0)] = 1
    with pytest.raises(ZeroDivisionError):
        changed.get(7)
    changed.clear()

    def remove_all(other: object) -> bool:
        changed.clear()
        return False

    changed[Key(remove_all)] = 1
    assert changed.get(7) is None
    changed[7] = 2
    assert changed == {7: 2}


def test_values_that_are_dropped_may_use_the_dict() -> None:
    changed: IncrementalDict[int, Any] = IncrementalDict()

    class Last:
        def __del__(self) -> None:
            changed[2] = len(changed)

    changed[1] = Last()
    changed[1] = 5
    assert changed == {1: 5, 2: 1}
    changed[1] = Last()
    del changed[1]
    assert changed == {2: 1}
    changed[3] = Last()
    changed.clear()
    assert changed == {2: 0}


def test_it_may_be_part_of_a_cycle() -> None:
    class Owner:
        kept: object

    owner = Owner()
    cycle: IncrementalDict[int, Owner] = IncrementalDict()
    cycle[1] = owner
    owner.kept = cycle
    seen = weakref.ref(owner)
    del owner, cycle
    gc.collect()
    assert seen() is None


def test_collections_pass_over_numbers_and_texts() -> None:
    numbers: IncrementalDict[Any, Any] = IncrementalDict()
    numbers[1] = "text"
    numbers["text"] = 2.5
    assert not gc.is_tracked(numbers)
    numbers[2] = []
    assert gc.is_tracked(numbers)
