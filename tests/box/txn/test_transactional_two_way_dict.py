"""A dict that is searched by value, too: compiled and in Python, in and outside of streams."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from iproto_server import ABSENT, Box, IncrementalDict, TransactionalTwoWayDict, native
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.native._native import Transaction
from tests.box.txn.test_interactive import Client, others


class SlowJournal(MemoryJournal):
    """A journal whose rows are not written yet."""

    def append(self, transaction: Transaction, /) -> bool:
        super().append(transaction)
        return True


def keys_by_value(values: Mapping[Any, Any]) -> dict[Any, set[Any]]:
    return {value: {key for key, other in values.items() if other == value} for value in values.values()}


def found_in(owners: TransactionalTwoWayDict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, set[Any]]]:
    return dict(owners.values), {value: set(keys) for value, keys in owners.keys.items()}


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def owners(box: Box) -> TransactionalTwoWayDict[Any, Any]:
    return TransactionalTwoWayDict(box)


def fail() -> None:
    raise ZeroDivisionError


def test_it_has_the_keys_of_each_value(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    for key, value in ((1, 7), (2, 7), ("three", 8), (2.5, 8), (1, 8)):
        box.atomic(owners.put, key, value)
    assert owners.values == {2: 7, "three": 8, 2.5: 8, 1: 8}
    assert list(owners.values) == [2, "three", 2.5, 1]
    assert found_in(owners)[1] == {7: {2}, 8: {1, "three", 2.5}}
    assert box.atomic(owners.remove, 2) is None
    assert box.atomic(owners.remove, 99) is None
    assert found_in(owners) == ({"three": 8, 2.5: 8, 1: 8}, {8: {1, "three", 2.5}})


def test_a_removed_key_tells_when_it_was_put(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    box.atomic(owners.put, 1, 7, 1234)
    assert box.atomic(owners.remove, 1) == 1234
    assert box.atomic(owners.remove, 1) is None


def test_it_uses_dicts_that_are_kept(box: Box) -> None:
    values, keys = {1: 7}, {7: {1: 5}}
    owners: TransactionalTwoWayDict[int, int] = TransactionalTwoWayDict(box, values, keys)  # type: ignore[arg-type]
    owners.put(2, 7)
    assert (values, keys) == ({1: 7, 2: 7}, {7: {1: 5, 2: None}})


def test_it_has_the_moments_of_its_keys(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    owners.put(1, 7, 100)
    owners.put(2, 7)
    owners.put(3, 7, None)
    owners.put(4, 7, moment=400)
    assert owners.keys == {7: {1: 100, 2: None, 3: None, 4: 400}}
    owners.put(1, 8, 101)
    owners.put(4, 8)
    assert [owners.moment(key) for key in (1, 2, 4, 5)] == [101, None, 400, None]
    owners.remove(4)
    owners.put(4, 7)
    assert owners.moment(4) is None


def test_an_undone_change_leaves_the_moment(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    box.atomic(owners.put, 1, 7, 100)
    for change in ((owners.remove, 1), (owners.put, 1, 8, 200), (owners.put, 1, 8)):
        with pytest.raises(ZeroDivisionError), box.in_transaction():
            change[0](*change[1:])
            fail()
        assert (owners.values, owners.keys) == ({1: 7}, {7: {1: 100}})


def test_streams_keep_moments(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    stream = Client(box)
    others(box, owners.put, 1, 7, 100)
    stream.do(owners.put, 1, 8, 200)
    stream.do(owners.put, 2, 8, 300)
    assert others(box, lambda: (owners.moment(1), owners.moment(2))) == (100, None)
    stream.commit()
    assert owners.keys == {8: {1: 200, 2: 300}}


def test_a_rolled_back_stream_leaves_moments(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    stream = Client(box)
    others(box, owners.put, 1, 7, 100)
    stream.do(owners.remove, 1)
    assert others(box, owners.moment, 1) == 100
    stream.roll_back()
    assert owners.keys == {7: {1: 100}}


@pytest.mark.parametrize("key", [1, "text", 1.5, (1, "text"), b"bytes", True])
def test_keys_and_values_may_be_anything_hashable(
    box: Box, owners: TransactionalTwoWayDict[Any, Any], key: object
) -> None:
    for value in (7, "ann", ("a", "tuple")):
        box.atomic(owners.put, key, value)
        assert found_in(owners) == ({key: value}, {value: {key}})
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        owners.remove(key)
        fail()
    assert found_in(owners) == ({key: ("a", "tuple")}, {("a", "tuple"): {key}})


def test_what_cannot_be_hashed_is_refused(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        box.atomic(owners.put, [], 7)
    with pytest.raises(TypeError, match="argument"):
        owners.put(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="argument"):
        owners.remove()  # type: ignore[call-arg]
    assert found_in(owners) == ({}, {})


def test_names_of_arguments_are_known(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    owners.put(key=1, value=7)
    owners.put(2, value=7)
    owners.remove(key=1)
    assert found_in(owners) == ({2: 7}, {7: {2}})


def test_an_undone_transaction_has_no_effect(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    box.atomic(owners.put, 1, 7)
    box.atomic(owners.put, 2, 7)
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        owners.put(1, 8)
        owners.put(3, 8)
        owners.remove(2)
        owners.put(3, 7)
        fail()
    assert found_in(owners) == ({1: 7, 2: 7}, {7: {1, 2}})


def test_a_part_of_a_transaction_may_be_undone(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    with box.in_transaction():
        owners.put(1, 7)
        with pytest.raises(ZeroDivisionError), box.in_transaction():
            owners.remove(1)
            owners.put(2, 7)
            fail()
    assert found_in(owners) == ({1: 7}, {7: {1}})


def test_it_follows_when_the_log_cannot_be_written(
    box: Box, owners: TransactionalTwoWayDict[Any, Any]
) -> None:
    space = box.schema.create_space("rows")
    space.create_index("primary", parts=[(0, "unsigned")])
    box.transactions.journal = SlowJournal()
    for key, value in ((1, 7), (2, 8)):
        with box.in_transaction():
            space.insert([key])
            owners.put(key, value)
    with box.in_transaction():
        space.delete(1)
        owners.remove(1)
    assert found_in(owners) == ({2: 8}, {8: {2}})
    box.transactions.undo(box.transactions.take_unwritten())
    assert found_in(owners) == ({}, {})


def test_a_subclass_may_restore_in_its_own_way(box: Box) -> None:
    restored: list[tuple[int, int | None]] = []

    class Owners(TransactionalTwoWayDict[int, int]):
        def _restore(self, key: int, state: Any) -> None:
            restored.append((key, None if state is ABSENT else state[0]))
            super()._restore(key, state)

    owners = Owners(box, {1: 7}, {7: {1: None}})
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        owners.put(1, 8)
        owners.put(2, 8)
        fail()
    assert restored == [(2, None), (1, 7)]
    assert found_in(owners) == ({1: 7}, {7: {1}})


def test_streams_see_their_own_changes_alone(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    stream = Client(box)
    others(box, owners.put, 1, 7)
    stream.do(owners.put, 1, 8)
    stream.do(owners.put, 2, 8)
    assert others(box, lambda: found_in(owners)) == ({1: 7}, {7: {1}})
    stream.commit()
    assert found_in(owners) == ({1: 8, 2: 8}, {8: {1, 2}})


def test_plain_dicts_of_keys_stay(box: Box) -> None:
    values: IncrementalDict[int, int] = IncrementalDict()
    values[1] = 7
    of_seven: dict[int, int | None] = {1: 5}
    owners: TransactionalTwoWayDict[int, int] = TransactionalTwoWayDict(box, values, {7: of_seven})
    box.atomic(owners.put, 2, 7, 6)
    assert of_seven == {1: 5, 2: 6}
    assert box.atomic(owners.remove, 1) == 5
    assert (owners.values, owners.keys) == ({2: 7}, {7: {2: 6}})


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_are_as_in_python(seed: int) -> None:
    dice = random.Random(seed)
    pairs = [
        (box, TransactionalTwoWayDict[Any, Any](box), in_python)
        for box, in_python in ((Box(), False), (Box(), True))
    ]
    for _ in range(60):
        steps = [
            (
                dice.choice(["put", "put", "remove"]),
                dice.choice([1, 2, 3, "a", 1.0, (1,)]),
                dice.randrange(1, 4),
            )
            for _ in range(dice.randrange(1, 6))
        ]
        is_undone = dice.random() < 0.4
        for box, owners, in_python in pairs:
            play(box, owners, steps, is_undone=is_undone, in_python=in_python)
        assert pairs[0][1].values == pairs[1][1].values
        assert list(pairs[0][1].values) == list(pairs[1][1].values)
        assert pairs[0][1].keys == pairs[1][1].keys
        assert found_in(pairs[0][1])[1] == keys_by_value(pairs[0][1].values)


def play(
    box: Box,
    owners: TransactionalTwoWayDict[Any, Any],
    steps: list[tuple[str, Any, int]],
    *,
    is_undone: bool,
    in_python: bool,
) -> None:
    try:
        with box.in_transaction():
            for place, (what, key, value) in enumerate(steps):
                name = f"TransactionalTwoWayDict.{what}"
                present = getattr(TransactionalTwoWayDict, what)
                method = native.in_python.get(name, present) if in_python else present
                method(owners, *((key, value, (None, place, 2**64)[value - 1]) if what == "put" else (key,)))
            if is_undone:
                fail()
    except ZeroDivisionError:
        pass
