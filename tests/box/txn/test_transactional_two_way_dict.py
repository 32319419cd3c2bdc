"""A dict that is searched by value, too, in and outside of streams."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from iproto_server import ABSENT, Box, IncrementalDict, TransactionalTwoWayDict
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.native._native import Transaction
from tests.box.txn.interactive_clients import Client, others


class SlowJournal(MemoryJournal):
    """A journal whose rows are not written yet."""

    def append(self, transaction: Transaction, /) -> bool:
        super().append(transaction)
        return True


def keys_by_value(values: Mapping[Any, Any]) -> dict[Any, set[Any]]:
    return {value: {key for key, other in values.items() if other == value} for value in values.values()}


def found_in(owners: TransactionalTwoWayDict[Any, Any]) -> tuple[dict[Any, Any], dict[Any, set[Any]]]:
    return dict(owners.values), {value: set(keys) for value, keys in owners.keys.items()}


def incremental(entries: dict[Any, Any]) -> IncrementalDict[Any, Any]:
    made: IncrementalDict[Any, Any] = IncrementalDict()
    made.update(entries)
    return made


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
    values, keys = incremental({1: 7}), {7: incremental({1: 5})}
    owners: TransactionalTwoWayDict[int, int] = TransactionalTwoWayDict(box, values, keys)
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

    owners = Owners(box, incremental({1: 7}), {7: incremental({1: None})})
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


class Model:
    """The states of keys: pairs of value and moment, in the order of the last changes."""

    def __init__(self) -> None:
        self.states: dict[Any, tuple[int, int | None]] = {}

    def put(self, key: Any, value: int, moment: int | None) -> None:
        before = self.states.pop(key, None)
        self.states[key] = (value, before[1] if before and moment is None else moment)

    def remove(self, key: Any) -> int | None:
        return self.states.pop(key, (0, None))[1]

    @property
    def values(self) -> dict[Any, int]:
        return {key: value for key, (value, _) in self.states.items()}

    @property
    def keys(self) -> dict[int, dict[Any, int | None]]:
        keys: dict[int, dict[Any, int | None]] = {}
        for key, (value, moment) in self.states.items():
            keys.setdefault(value, {})[key] = moment
        return keys


def change(to: Any, dice: random.Random) -> list[int | None]:
    """Make some changes; return the moments of removed keys."""
    removed = []
    for place in range(dice.randrange(1, 6)):
        key, value = dice.choice([1, 2, 3, "a", 1.0, (1,)]), dice.randrange(1, 4)
        if dice.random() < 0.3:
            removed.append(to.remove(key))
        else:
            to.put(key, value, (None, place, 2**64)[value - 1])
    return removed


def check(owners: TransactionalTwoWayDict[Any, Any], model: Model) -> None:
    assert (owners.values, owners.keys) == (model.values, model.keys)
    for key in (1, 2, 3, "a", (1,), "missing"):
        value, moment = model.states.get(key, (None, None))
        assert (owners.values.get(key), owners.moment(key)) == (value, moment)


@pytest.mark.parametrize("seed", range(20))
def test_random_changes(seed: int, box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    dice = random.Random(seed)
    model = Model()
    for _ in range(60):
        steps = dice.randrange(2**32)
        if dice.random() < 0.4:
            with pytest.raises(ZeroDivisionError), box.in_transaction():
                change(owners, random.Random(steps))
                fail()
        else:
            removed = box.atomic(change, owners, random.Random(steps))
            assert removed == change(model, random.Random(steps))
            assert list(owners.values) == list(model.values)
        check(owners, model)
        # An undone change moves a key to the end.
        model.states = {key: model.states[key] for key in owners.values}


@pytest.mark.parametrize("seed", range(20))
def test_random_changes_in_streams(seed: int, box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    dice = random.Random(seed)
    model = Model()
    for _ in range(20):
        stream, inside, steps = Client(box), Model(), dice.randrange(2**32)
        inside.states = dict(model.states)
        assert stream.do(change, owners, random.Random(steps)) == change(inside, random.Random(steps))
        others(box, check, owners, model)
        if dice.random() < 0.5:
            stream.commit()
            model = inside
        else:
            stream.roll_back()
        check(owners, model)


class Odd:
    """A key or value that fails when it is compared the given number of times."""

    def __init__(self, fails_at: int) -> None:
        self.left = fails_at

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        self.left -= 1
        if not self.left:
            raise ArithmeticError
        return self is other


@pytest.mark.parametrize("is_put", [True, False])
@pytest.mark.parametrize("fails_at", range(1, 12))
def test_a_change_that_fails_halfway_is_undone(
    box: Box, owners: TransactionalTwoWayDict[Any, Any], is_put: bool, fails_at: int
) -> None:
    for key in (1, Odd(-1)):
        box.atomic(owners.put, key, 7, 100)
    key = Odd(-1)
    for each in (Odd(-1), key):
        box.atomic(owners.put, each, 8, 200)
    before = found_in(owners)
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        key.left = fails_at
        with suppress(ArithmeticError):
            if is_put:
                owners.put(key, 9)
            else:
                owners.remove(key)
        key.left = -1
        fail()
    assert found_in(owners) == before
    assert owners.moment(key) == 200


def test_values_must_be_hashable(box: Box, owners: TransactionalTwoWayDict[Any, Any]) -> None:
    owners.put(1, 7, 100)
    with pytest.raises(TypeError, match="unhashable"):
        owners.put(1, [])
    assert (owners.values, owners.keys) == ({1: 7}, {7: {1: 100}})


@pytest.mark.parametrize(
    ("arguments", "names"),
    [((1, 2, 3, 4), {}), ((1, 2), {"key": 1}), ((1,), {"valu": 1}), ((), {"value": 1}), ((), {"moment": 1})],
)
def test_wrong_arguments(
    owners: TransactionalTwoWayDict[Any, Any], arguments: tuple[int, ...], names: dict[str, int]
) -> None:
    with pytest.raises(TypeError, match="argument"):
        owners.put(*arguments, **names)
    assert not owners.values


def test_it_must_be_initialized(box: Box) -> None:
    made = TransactionalTwoWayDict.__new__(TransactionalTwoWayDict)
    for method, arguments in (
        (made.put, (1, 2)),
        (made.remove, (1,)),
        (made.moment, (1,)),
        (made._load, (1,)),
    ):
        with pytest.raises(RuntimeError, match="initialized"):
            method(*arguments)


def test_it_needs_incremental_dicts(box: Box) -> None:
    values: IncrementalDict[Any, Any] = IncrementalDict()
    with pytest.raises(TypeError, match="IncrementalTable"):
        TransactionalTwoWayDict(box, {})  # type: ignore[arg-type]
    owners = TransactionalTwoWayDict(box, values, {7: {}})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="IncrementalDict"):
        box.atomic(owners.put, 1, 7)
    assert owners.values == {}


def test_it_may_be_part_of_a_cycle(box: Box) -> None:
    class Owners(TransactionalTwoWayDict[Any, Any]):
        pass

    owners = Owners(box)
    owners.put("itself", 1)
    owners.values["itself"] = owners
    seen = weakref.ref(owners)
    del owners
    gc.collect()
    assert seen() is None
