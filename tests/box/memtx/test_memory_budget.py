"""The memory budget of rows and indexes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import count
from random import Random
from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode, Space
from iproto_server.box.memtx.consistency import faults_of
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.box.memtx.read_view import ReadView
from iproto_server.native import _native as engine_memory
from tests.box.boxes import new_box
from tests.box.refusal import refusal

MEBIBYTE = 2**20
PAGE = 64 * 1024
FIELDS = [("id", "unsigned"), ("state", "string"), ("data", "any")]


@pytest.fixture
def limit() -> Iterator[Callable[[int], None]]:
    """Limit the memory to so many bytes more than are in use, with a sixteenth of them as the reserve."""

    def set_limit(room: int) -> None:
        gc.collect()
        budget.limit = budget.held() + room
        engine_memory.set_memory_limit(budget.limit, max(room, 0) // 16)

    yield set_limit
    budget.end()


def tree(box: Box) -> Space:
    space = box.schema.create_space("rows", format=FIELDS)
    space.create_index("primary")
    space.create_index("state", parts=["state"], unique=False)
    return space


def hashed(box: Box) -> Space:
    space = box.schema.create_space("rows", format=FIELDS)
    space.create_index("primary", type="hash")
    space.create_index("state", parts=["state", "id"], type="hash")
    return space


def multikey(box: Box) -> Space:
    space = tree(box)
    space.create_index(
        "words", parts=[{"field": "data", "type": "unsigned", "path": "words[*]"}], unique=False
    )
    return space


def decimal(box: Box) -> Space:
    space = tree(box)
    space.create_index("price", parts=[{"field": "data", "type": "number", "path": "price"}], unique=False)
    return space


def triggered(box: Box) -> Space:
    space = tree(box)
    space.before_replace(lambda old, new: None)
    return space


KINDS = [tree, hashed, multikey, decimal, triggered]
every_kind = pytest.mark.parametrize("kind", KINDS)


def row(number: int, size: int = 500, state: str = "ready") -> list[Any]:
    return [number, state, {"words": list(range(5)), "price": Decimal(number), "text": "x" * size}]


def fill(space: Space, size: int = 500) -> int:
    """Insert rows until one is refused; return how many were inserted."""
    numbers = count()
    text = "^Failed to allocate [0-9]+ bytes in slab allocator for memtx_tuple$"
    with refusal(ErrorCode.MEMORY_ISSUE, text):
        while space.insert(row(next(numbers), size)):
            pass
    return next(numbers) - 1


class TestALimit:
    @every_kind
    def test_new_rows_are_refused_within_it(
        self, kind: Callable[[Box], Space], limit: Callable[[int], None]
    ) -> None:
        box, _ = new_box()
        space = kind(box)
        limit(2 * MEBIBYTE)
        before = budget.refused
        rows = fill(space)
        assert budget.limit is not None
        assert budget.held() <= budget.limit
        # Not far from it: keys that are kept beside rows are asked for with much to spare.
        assert budget.held() > budget.limit - MEBIBYTE
        assert len(space) == rows > 500
        assert space.get(rows) is None
        assert budget.refused == before + 1
        assert not list(faults_of(box.catalog.space_by_name("rows")))

    @every_kind
    def test_what_is_refused_changes_nothing(
        self, kind: Callable[[Box], Space], limit: Callable[[int], None]
    ) -> None:
        box, _ = new_box()
        space = kind(box)
        limit(2 * MEBIBYTE)
        fill(space)
        large = row(3, 3 * MEBIBYTE, "taken")
        before = [list(each) for each in space.select()]
        held, lsn = budget.held(), box.info.lsn
        with refusal(ErrorCode.MEMORY_ISSUE):
            space.replace(large)
        with refusal(ErrorCode.MEMORY_ISSUE):
            space.update(3, [("=", 2, large[2])])
        with refusal(ErrorCode.MEMORY_ISSUE):
            space.upsert(large, [("=", 2, large[2])])
        with refusal(ErrorCode.MEMORY_ISSUE):
            space.upsert([10**9, *large[1:]], [])
        with refusal(ErrorCode.MEMORY_ISSUE):
            space.insert([10**9, *large[1:]])
        assert [list(each) for each in space.select()] == before
        assert (budget.held(), box.info.lsn) == (held, lsn)

    @every_kind
    def test_updates_that_do_not_grow_and_deletes_succeed(
        self, kind: Callable[[Box], Space], limit: Callable[[int], None]
    ) -> None:
        box, _ = new_box()
        space = kind(box)
        limit(2 * MEBIBYTE)
        rows = fill(space)
        full = budget.held()
        for number in range(rows):
            space.update(number, [("=", 1, "taken")])
            assert space.replace(row(number))[1] == "ready"
        assert budget.held() <= full + 10 * PAGE
        assert not list(faults_of(box.catalog.space_by_name("rows")))
        for number in range(rows):
            space.delete(number)
        assert len(space) == 0
        assert budget.held() < full - MEBIBYTE
        # There is as much room as at first, less the pages that stay.
        assert fill(space) > 0.8 * rows

    @every_kind
    def test_a_rollback_brings_rows_back(
        self, kind: Callable[[Box], Space], limit: Callable[[int], None]
    ) -> None:
        box, _ = new_box()
        space = kind(box)
        limit(2 * MEBIBYTE)
        fill(space)
        before = [list(each) for each in space.select()]
        box.begin()
        for each in before[::2]:
            space.delete(each[0])
        with pytest.raises(BoxError):
            for number in range(10**6, 2 * 10**6):
                space.insert(row(number, 100))
        box.transactions.rollback()
        assert sorted(list(each) for each in space.select()) == sorted(before)
        assert not list(faults_of(box.catalog.space_by_name("rows")))

    @every_kind
    def test_random_changes_are_made_or_refused_as_a_whole(
        self, kind: Callable[[Box], Space], limit: Callable[[int], None]
    ) -> None:
        box, _ = new_box()
        space = kind(box)
        random = Random(1)
        limit(MEBIBYTE)
        committed: dict[int, list[Any]] = {}
        refusals: list[int] = []
        for number in range(600):
            kept = dict(committed)
            box.begin()
            for _ in range(random.randrange(1, 6)):
                key, size = random.randrange(300), random.choice((0, 10, 1000, 5000, 50_000))
                new = row(key, size, random.choice(("ready", "taken")))
                try:
                    if random.random() < 0.2 + 0.4 * (number % 100 > 70):
                        space.delete(key)
                        kept.pop(key, None)
                    elif key in kept and random.random() < 0.5:
                        space.update(key, [("=", 1, new[1]), ("=", 2, new[2])])
                        kept[key] = new
                    else:
                        space.upsert(new, [("=", 2, new[2])])
                        kept[key] = [key, kept[key][1], new[2]] if key in kept else new
                except BoxError as error:
                    refusals.append(error.code)
            if random.random() < 0.3:
                box.transactions.rollback()
            else:
                box.transactions.commit()
                committed = kept
            assert budget.limit is not None
            assert budget.held() <= budget.limit + 20 * PAGE
        assert len(refusals) > 50
        assert set(refusals) == {ErrorCode.MEMORY_ISSUE}
        assert {each[0]: list(each) for each in space.select()} == committed
        assert not list(faults_of(box.catalog.space_by_name("rows")))

    def test_a_part_of_it_is_for_rows_that_are_there(self, limit: Callable[[int], None]) -> None:
        box, _ = new_box()
        space = tree(box)
        limit(8 * MEBIBYTE)
        fill(space)
        assert space.replace(row(0, 20_000))
        with refusal(ErrorCode.MEMORY_ISSUE):
            for number in range(1000):
                space.insert(row(10**9 + number, 20_000))
        with pytest.raises(BoxError):
            for number in range(1000):
                space.replace(row(number, 20_000))
        assert budget.limit is not None
        assert budget.held() <= budget.limit

    def test_a_part_of_it_is_for_temporary_spaces(self, limit: Callable[[int], None]) -> None:
        box, _ = new_box()
        space = tree(box)
        temporary = box.schema.create_space("owners", temporary=True)
        temporary.create_index("primary")
        limit(8 * MEBIBYTE)
        fill(space, 5)
        assert temporary.insert([1, "owner"])

    def test_what_frees_memory_succeeds(self, limit: Callable[[int], None]) -> None:
        box, _ = new_box()
        space = tree(box)
        limit(2 * MEBIBYTE)
        fill(space)
        limit(-MEBIBYTE)
        space.truncate()
        assert fill(space) > 0
        space.drop()
        assert "rows" not in box.space

    @pytest.mark.parametrize("kind", ["tree", "hash"])
    def test_rows_that_a_view_keeps_count(self, kind: str, limit: Callable[[int], None]) -> None:
        box, _ = new_box()
        space = box.schema.create_space("rows")
        space.create_index("primary", type=kind)
        for number in range(1000):
            space.insert([number, "x" * 500])
        limit(100 * MEBIBYTE)
        held = budget.held()
        with ReadView(box.catalog) as view:
            for number in range(1000):
                space.update(number, [("=", 1, "y" * 500)])
            kept = budget.held() - held
            # Pages count, and rows of earlier tests may have left room in some.
            assert 250_000 < kept < 1_500_000
            found = [each for _, _, some in view.slices() for each in some if b"x" * 500 in each]
            assert len(found) == 1000
        assert budget.held() < held + 10 * PAGE

    def test_without_one_nothing_is_refused(self) -> None:
        box, _ = new_box()
        space = tree(box)
        assert budget.limit is None
        assert space.insert(row(0, 3 * MEBIBYTE))
        assert engine_memory.memory_allows(0, 2**40, 10, 2**40, False)


def test_rows_of_hash_indexes_are_in_the_engine() -> None:
    box, _ = new_box()
    space = hashed(box)
    gc.collect()
    _, before, _, outside = engine_memory.memory_usage()
    for number in range(100):
        space.insert(row(number))
    used = engine_memory.memory_usage()[1] - before
    assert 50_000 < used < 70_000
    for number in range(100):
        space.replace(row(number, 5))
    assert engine_memory.memory_usage()[1] - before < used - 40_000
    for number in range(50):
        space.delete(number)
    assert engine_memory.memory_usage()[3] == outside
    space.truncate()
    del space
    gc.collect()
    assert engine_memory.memory_usage()[1] - before < 500


def test_wrong_arguments_are_refused() -> None:
    for arguments in ((), (1,), (-1, 0), (10, 20), ("1", 0), (2**64, 0), (10, -1)):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            engine_memory.set_memory_limit(*arguments)
    for numbers in ((), (1, 2, 3, 4), (-1, 1, 1, 1, True), (0, None, 1, 1, True)):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            engine_memory.memory_allows(*numbers)
    for changes in ((), ("1",), (-(2**62),), (2**64,), (1, 2)):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            engine_memory.memory_outside(*changes)
    with pytest.raises(TypeError):
        engine_memory.memory_usage(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        engine_memory.release_free_memory(1)  # type: ignore[call-arg]
    assert budget.limit is None
    assert engine_memory.memory_allows(0, 2**40, 1, 0, False)


def take_all(limit: Callable[[int], None]) -> None:
    """Limit the memory to a byte."""
    gc.collect()
    limit(1 - budget.held())


class TestExemptions:
    @every_kind
    def test_updates_through_their_facade_are_made(
        self, kind: Callable[[Box], Space], limit: Callable[[int], None]
    ) -> None:
        box, _ = new_box()
        space = kind(box)
        exempt = space.beyond_memory_limit()
        space.insert(row(1))
        take_all(limit)
        longer = [("=", 1, "x" * 3 * MEBIBYTE)]
        for target in (space, space.index["primary"]):
            with refusal(ErrorCode.MEMORY_ISSUE):
                target.update(1, longer)
        assert exempt.update(1, longer)
        assert exempt.index["primary"].update(1, [("=", 1, "x" * 4 * MEBIBYTE)])
        for make in (exempt.insert, exempt.replace):
            with refusal(ErrorCode.MEMORY_ISSUE):
                make(row(2))
        assert not list(faults_of(box.catalog.space_by_name("rows")))

    @every_kind
    def test_new_rows_only_if_they_are_exempt_too(
        self, kind: Callable[[Box], Space], limit: Callable[[int], None]
    ) -> None:
        box, _ = new_box()
        exempt = kind(box).beyond_memory_limit(new_rows=True)
        take_all(limit)
        assert exempt.insert(row(1))
        assert exempt.replace(row(2))
        assert exempt.replace(row(2, 600))
        assert not list(faults_of(box.catalog.space_by_name("rows")))

    def test_what_a_trigger_changes_elsewhere_is_limited(self, limit: Callable[[int], None]) -> None:
        box, _ = new_box()
        space = tree(box)
        other = box.schema.create_space("other")
        other.create_index("primary")
        space.insert(row(1))
        space.on_replace(lambda old, new: other.insert([1, "x"]))
        take_all(limit)
        with refusal(ErrorCode.MEMORY_ISSUE):
            space.beyond_memory_limit().update(1, [("=", 1, "taken")])
        assert space.get(1) == row(1)

    def test_a_block_is_one_for_all_spaces_and_ends(self, limit: Callable[[int], None]) -> None:
        box, _ = new_box()
        space = tree(box)
        take_all(limit)
        with pytest.raises(ZeroDivisionError), box.beyond_memory_limit():
            space.insert(row(1))
            space.beyond_memory_limit().update(1, [("=", 1, "taken")])
            box.schema.create_space("other").create_index("primary")
            space.insert(row(2))
            raise ZeroDivisionError
        with refusal(ErrorCode.MEMORY_ISSUE):
            space.insert(row(3))
