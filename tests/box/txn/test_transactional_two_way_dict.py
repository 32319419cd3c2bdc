"""A dict that is searched by value, too: compiled and in Python, in and outside of streams."""

from __future__ import annotations

import random
from typing import Any

import pytest

from iproto_server import ABSENT, Box, TransactionalTwoWayDict, native
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.box.txn.statement import Statement
from tests.box.txn.test_interactive import Client, others


class SlowJournal(MemoryJournal):
    """A journal whose rows are not written yet."""

    def append(self, statements: list[Statement]) -> bool:
        super().append(statements)
        return True


def keys_by_value(values: dict[Any, Any]) -> dict[Any, set[Any]]:
    return {value: {key for key, other in values.items() if other == value} for value in values.values()}


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
    assert owners.keys == {7: {2}, 8: {1, "three", 2.5}}
    box.atomic(owners.remove, 2)
    box.atomic(owners.remove, 99)
    assert (owners.values, owners.keys) == ({"three": 8, 2.5: 8, 1: 8}, {8: {1, "three", 2.5}})


def test_it_uses_dicts_that_are_kept(box: Box) -> None:
    values, keys = {1: 7}, {7: {1}}
    owners = TransactionalTwoWayDict(box, values, keys)
    owners.put(2, 7)
    assert (values, keys) == ({1: 7, 2: 7}, {7: {1, 2}})


def test_it_has_the_moments_of_its_keys(box: Box) -> None:
    moments: dict[int, int] = {}
    owners: TransactionalTwoWayDict[int, int] = TransactionalTwoWayDict(box, {}, {}, moments)
    owners.put(1, 7, 100)
    owners.put(2, 7)
    owners.put(3, 7, None)
    owners.put(4, 7, moment=400)
    assert moments == {1: 100, 4: 400}
    owners.put(1, 8, 101)
    owners.put(4, 8)
    assert moments == {1: 101, 4: 400}


def test_an_undone_removal_leaves_the_moment(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    box.atomic(owners.put, 1, 7, 100)
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        owners.remove(1)
        fail()
    assert (owners.values, owners.moments) == ({1: 7}, {1: 100})


@pytest.mark.parametrize("in_python", [False, True])
def test_moments_of_removed_keys_are_forgotten(
    box: Box, owners: TransactionalTwoWayDict[Any, Any], in_python: bool
) -> None:
    put = TransactionalTwoWayDict.put
    if in_python:
        put = native.in_python.get("TransactionalTwoWayDict.put", put)
    put(owners, "held", 7, 5)
    put(owners, "without", 7)
    for key in range(3000):
        box.atomic(put, owners, key, 8, key)
        box.atomic(owners.remove, key)
        assert len(owners.moments) <= 1006
    assert owners.moments["held"] == 5
    assert 2999 in owners.moments
    assert 0 not in owners.moments


@pytest.mark.parametrize("key", [1, "text", 1.5, (1, "text"), b"bytes", True])
def test_keys_and_values_may_be_anything_hashable(
    box: Box, owners: TransactionalTwoWayDict[Any, Any], key: object
) -> None:
    for value in (7, "ann", ("a", "tuple")):
        box.atomic(owners.put, key, value)
        assert (owners.values, owners.keys) == ({key: value}, {value: {key}})
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        owners.remove(key)
        fail()
    assert (owners.values, owners.keys) == ({key: ("a", "tuple")}, {("a", "tuple"): {key}})


def test_what_cannot_be_hashed_is_refused(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        box.atomic(owners.put, [], 7)
    with pytest.raises(TypeError, match="argument"):
        owners.put(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="argument"):
        owners.remove()  # type: ignore[call-arg]
    assert (owners.values, owners.keys) == ({}, {})


def test_names_of_arguments_are_known(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    owners.put(key=1, value=7)
    owners.put(2, value=7)
    owners.remove(key=1)
    assert (owners.values, owners.keys) == ({2: 7}, {7: {2}})


def test_an_undone_transaction_has_no_effect(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    box.atomic(owners.put, 1, 7)
    box.atomic(owners.put, 2, 7)
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        owners.put(1, 8)
        owners.put(3, 8)
        owners.remove(2)
        owners.put(3, 7)
        fail()
    assert (owners.values, owners.keys) == ({1: 7, 2: 7}, {7: {1, 2}})


def test_a_part_of_a_transaction_may_be_undone(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    with box.in_transaction():
        owners.put(1, 7)
        with pytest.raises(ZeroDivisionError), box.in_transaction():
            owners.remove(1)
            owners.put(2, 7)
            fail()
    assert (owners.values, owners.keys) == ({1: 7}, {7: {1}})


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
    assert (owners.values, owners.keys) == ({2: 8}, {8: {2}})
    box.transactions.undo(box.transactions.take_unwritten())
    assert (owners.values, owners.keys) == ({}, {})


def test_a_subclass_may_restore_in_its_own_way(box: Box) -> None:
    restored: list[tuple[int, int | None]] = []

    class Owners(TransactionalTwoWayDict[int, int]):
        def _restore(self, key: int, value: int) -> None:
            restored.append((key, None if value is ABSENT else value))
            super()._restore(key, value)

    owners = Owners(box, {1: 7}, {7: {1}})
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        owners.put(1, 8)
        owners.put(2, 8)
        fail()
    assert restored == [(2, None), (1, 7)]
    assert (owners.values, owners.keys) == ({1: 7}, {7: {1}})


def test_streams_see_their_own_changes_alone(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    stream = Client(box)
    others(box, owners.put, 1, 7)
    stream.do(owners.put, 1, 8)
    stream.do(owners.put, 2, 8)
    assert others(box, lambda: (dict(owners.values), dict(owners.keys))) == ({1: 7}, {7: {1}})
    stream.commit()
    assert (owners.values, owners.keys) == ({1: 8, 2: 8}, {8: {1, 2}})


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
        assert list(pairs[0][1].moments.items()) == list(pairs[1][1].moments.items())
        assert pairs[0][1].keys == pairs[1][1].keys == keys_by_value(pairs[0][1].values)


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
