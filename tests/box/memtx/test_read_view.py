"""Read views: they keep showing the old rows during changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, BoxError, Space
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.box.memtx.read_view import ReadView, Rows
from iproto_server.codec import msgpack as codec
from tests.box.boxes import accounts, new_box
from tests.plugins.profiles import examples

Everything = dict[int, list[bytes]]


def everything(box: Box) -> Everything:
    """The expected contents of a view: the stored rows of all spaces."""
    return {
        space.id: list(space.rows())
        for space in box.catalog
        if space.engine == "memtx" and not space.is_temporary and len(space)
    }


def shown(slices: Iterator[Rows]) -> Everything:
    """The contents of a view."""
    found: Everything = {}
    for space_id, _, rows in slices:
        if rows:
            found.setdefault(space_id, []).extend(rows)
    return found


def ids(rows: list[bytes]) -> list[int]:
    """The first fields."""
    return [codec.unpack(row)[0] for row in rows]


def numbers(box: Box, count: int, kind: str = "tree") -> Space:
    """A space with rows 0, 1, 2, ..."""
    space = box.schema.create_space("numbers")
    space.create_index("primary", type=kind)
    for number in range(count):
        space.insert([number, "as it was"])
    return space


class TestWhatIsShown:
    def test_all_kept_spaces_in_the_order_of_their_ids_and_keys(self) -> None:
        box, _ = new_box()
        accounts(box)
        box.schema.create_space("late", id=600, is_local=True).create_index("primary")
        box.schema.create_space("early", id=590).create_index("primary")
        box.schema.create_space("bare", id=591)
        box.schema.create_space("passing", id=592, temporary=True).create_index("primary")
        for name in ("late", "early", "passing"):
            for number in (3, 1, 2):
                box.space[name].insert([number])
        with ReadView.of_kept(box.catalog) as view:
            slices = list(view.slices())
        own = [(space_id, group_id, ids(rows)) for space_id, group_id, rows in slices if space_id >= 590]
        assert own == [(590, 0, [1, 2, 3]), (600, 1, [1, 2, 3])]
        assert shown(iter(slices)) == everything(box)
        order = [space_id for space_id, _, _ in slices]
        assert order == sorted(order)
        assert {system.SCHEMA, system.SPACE, system.INDEX, system.PRIV} < set(order)
        assert system.VSPACE not in order

    @pytest.mark.parametrize("kind", ["tree", "hash"])
    def test_a_slice_has_no_more_rows_than_asked_for(self, kind: str) -> None:
        box, _ = new_box()
        core = numbers(box, 1000, kind).core()
        with ReadView([core]) as view:
            slices = [rows for _, _, rows in view.slices(7)]
        assert max(map(len, slices)) == 7
        assert sorted(ids(list(chain.from_iterable(slices)))) == list(range(1000))

    @pytest.mark.parametrize("kind", ["tree", "hash"])
    def test_a_slice_ends_with_the_row_that_fills_it(self, kind: str) -> None:
        box, _ = new_box()
        space = box.schema.create_space("large")
        space.create_index("primary", type=kind)
        for number in range(100):
            space.insert([number, "x" * 1000])
        with ReadView([space.core()]) as view:
            slices = [rows for _, _, rows in view.slices(512, 3000)]
            assert max(len(rows) for rows in slices) == 3
        with ReadView([space.core()]) as view:
            assert max(len(rows) for _, _, rows in view.slices(512, 1)) == 1


class TestChangesDuringTheWalk:
    @pytest.mark.parametrize("kind", ["tree", "hash"])
    def test_everything_is_removed(self, kind: str) -> None:
        box, _ = new_box()
        space = numbers(box, 100, kind)
        with ReadView([space.core()]) as view:
            slices = view.slices(10)
            first = next(slices)[2]
            for number in range(100):
                space.delete(number)
            rest = shown(slices)[space.id]
        assert sorted(ids(first + rest)) == list(range(100))
        assert space.len() == 0

    @pytest.mark.parametrize("kind", ["tree", "hash"])
    def test_many_are_added_ahead_of_it(self, kind: str) -> None:
        box, _ = new_box()
        space = numbers(box, 100, kind)
        with ReadView([space.core()]) as view:
            for number in range(100, 1000):
                space.insert([number])
            assert sorted(ids(shown(view.slices(10))[space.id])) == list(range(100))
        assert space.len() == 1000

    def test_a_space_is_truncated_dropped_or_gets_another_primary_key(self) -> None:
        for change in ("truncate", "drop"):
            box, _ = new_box()
            space = numbers(box, 100)
            with ReadView([space.core()]) as view:
                slices = view.slices(10)
                first = next(slices)[2]
                getattr(space, change)()
                assert ids(first + shown(slices)[space.id]) == list(range(100))
        box, _ = new_box()
        space = box.schema.create_space("reversed")
        space.create_index("primary")
        for number in range(100):
            space.insert([number, 99 - number])
        with ReadView([space.core()]) as view:
            slices = view.slices(10)
            first = next(slices)[2]
            redefine(box, space.id, parts=[[1, "unsigned"]])
            space.delete(50)
            assert ids(first + shown(slices)[space.id]) == list(range(100))
        assert [row[1] for row in space.pairs()] == [*range(50), *range(51, 100)]

    def test_a_redefined_index_is_still_looked_after(self) -> None:
        box, _ = new_box()
        space = numbers(box, 100)
        with ReadView([space.core()]) as view:
            space.index["primary"].rename("renamed")
            space.delete(50)
            with pytest.raises(RuntimeError), box.in_transaction():
                space.index["renamed"].rename("again")
                space.delete(51)
                raise RuntimeError
            space.delete(52)
            assert ids(shown(view.slices(10))[space.id]) == list(range(100))
        assert space.len() == 98

    @pytest.mark.parametrize("kind", ["tree", "hash"])
    def test_rows_that_were_passed_are_not_kept(self, kind: str) -> None:
        box, _ = new_box()
        space = numbers(box, 100, kind)
        with ReadView([space.core()]) as view:
            slices = view.slices(50)
            next(slices)
            (reader,) = view._readers
            for number in range(45, 55):
                space.delete(number)
            assert reader.kept == 5
            next(slices)
            assert reader.kept == 0


class TestViews:
    @pytest.mark.parametrize("kind", ["tree", "hash"])
    def test_nothing_is_kept_after_one_was_closed(self, kind: str) -> None:
        box, _ = new_box()
        space = numbers(box, 10, kind)
        with ReadView([space.core()]) as view:
            (reader,) = view._readers
            space.delete(5)
            assert reader.kept == 1
        assert reader.is_done
        assert reader.kept == 0
        space.delete(6)
        assert reader.kept == 0
        assert list(view.slices()) == []

    def test_several_at_a_time_show_what_each_has_seen(self) -> None:
        box, _ = new_box()
        space = numbers(box, 10)
        with ReadView([space.core()]) as first:
            space.delete(1)
            with ReadView([space.core()]) as second:
                space.delete(2)
                assert ids(shown(second.slices(3))[space.id]) == [0, *range(2, 10)]
            space.delete(3)
            assert ids(shown(first.slices(3))[space.id]) == list(range(10))


def redefine(box: Box, space_id: int, **changes: Any) -> None:
    """Replace the row of a primary index."""
    rows = box.catalog.writable(system.INDEX)
    (row,) = box.catalog.rows(system.INDEX, 0, [space_id, 0])
    names = ("space_id", "id", "name", "type", "options", "parts")
    rows.replace(rows.row([changes.get(name, value) for name, value in zip(names, row, strict=True)]))


@dataclass(frozen=True)
class Step:
    """One random action between two slices; impossible ones are skipped."""

    what: str
    space: str
    number: int
    value: int

    def carry_out(self, box: Box) -> None:
        with suppress(BoxError):
            if self.what == "create":
                new_space(box, self.space)
            elif self.space in box.space:
                getattr(self, f"_{self.what}")(box, box.space[self.space])

    def _insert(self, box: Box, space: Space) -> None:
        space.insert([self.number, self.value])

    def _replace(self, box: Box, space: Space) -> None:
        space.replace([self.number, self.value])

    def _update(self, box: Box, space: Space) -> None:
        space.update(self.number, [("=", 1, self.value)])

    def _delete(self, box: Box, space: Space) -> None:
        space.delete(self.number)

    def _truncate(self, box: Box, space: Space) -> None:
        space.truncate()

    def _drop(self, box: Box, space: Space) -> None:
        space.drop()

    def _rename(self, box: Box, space: Space) -> None:
        space.index[0].rename(f"primary{self.value}")

    def _rekey(self, box: Box, space: Space) -> None:
        redefine(box, space.id, parts=[[self.value % 2, "unsigned"]])

    def _index(self, box: Box, space: Space) -> None:
        space.index["value"].drop() if "value" in space.index else value_index(space)


def value_index(space: Space) -> None:
    space.create_index("value", parts=[(1, "unsigned")], unique=False)


def new_space(box: Box, name: str) -> None:
    """A space named after the type of its primary index."""
    space = box.schema.create_space(name)
    space.create_index("primary", type=name)
    value_index(space)


@dataclass(frozen=True)
class Undone:
    """A transaction that is rolled back."""

    steps: list[Step]

    def carry_out(self, box: Box) -> None:
        box.begin()
        for step in self.steps:
            step.carry_out(box)
        box.transactions.rollback()


CHANGES = ["insert", "replace", "update", "delete"] * 4 + [
    "truncate",
    "drop",
    "create",
    "rename",
    "rekey",
    "index",
]
STEPS = st.builds(
    Step, st.sampled_from(CHANGES), st.sampled_from(["tree", "hash"]), st.integers(0, 30), st.integers(0, 5)
)
GO_ON = st.integers(1, 4)
"""The number of slices."""


class TestAnything:
    @pytest.mark.slow
    @examples(300)
    @given(
        rows=st.lists(st.integers(0, 30), unique=True),
        count=st.integers(1, 8),
        size=st.integers(1, 20),
        happening=st.lists(st.one_of(STEPS, STEPS, GO_ON, st.builds(Undone, st.lists(STEPS)))),
    )
    def test_a_view_shows_the_moment_it_was_opened_at(
        self, rows: list[int], count: int, size: int, happening: list[Step | Undone | int]
    ) -> None:
        box, _ = new_box()
        for name in ("tree", "hash"):
            new_space(box, name)
            for number in rows:
                box.space[name].insert([number, number % 7])
        spaces = [box.space[name].core() for name in ("tree", "hash")]
        spaces += [box.catalog.space(number) for number in (system.SPACE, system.INDEX)]
        expected = {space.id: list(space.rows()) for space in spaces if len(space)}
        found: list[Rows] = []
        with ReadView(spaces) as view:
            slices = view.slices(count, size)
            for step in happening:
                if isinstance(step, int):
                    found += islice(slices, step)
                else:
                    step.carry_out(box)
            found += slices
        seen = shown(iter(found))
        assert all(len(part) <= count for _, _, part in found)
        hash_id = spaces[1].id
        assert sorted(seen.pop(hash_id, [])) == sorted(expected.pop(hash_id, []))
        assert seen == expected
        for space in box.catalog:
            check_indexes(space)


def check_indexes(space: Any) -> None:
    """Check that all indexes of a space hold the same rows."""
    rows = dict(space.primary.items()) if space.primary is not None and space.engine == "memtx" else {}
    for index in space.indexes.values():
        if index.id and rows:
            assert sorted(value for _, value in index.items()) == sorted(rows)
            for key, primary_key in index.items():
                assert index.key_of(codec.unpack(rows[primary_key]), primary_key) == key
