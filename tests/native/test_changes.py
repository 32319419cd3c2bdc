"""Changes of rows, refused ones too, are the same with the compiled change of entries and with Python's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, BoxError, native
from iproto_server.box.memtx import memtx_space
from iproto_server.box.memtx.read_view import ReadView
from tests.plugins.profiles import examples

small = st.integers(0, 4)
names = st.sampled_from(["a", "b", "é", "\0", None])
changes = st.lists(
    st.tuples(st.just("insert") | st.just("replace"), small, small, names)
    | st.tuples(st.just("delete"), small)
    | st.tuples(st.just("update"), small, st.integers(1, 2), small | names),
    max_size=25,
)


def space_of(box: Box) -> Any:
    space = box.schema.create_space(
        "things",
        format=[
            ("id", "unsigned"),
            ("rank", "unsigned"),
            {"name": "name", "type": "string", "is_nullable": True},
        ],
    )
    space.create_index("primary", parts=["id"])
    space.create_index("rank", parts=["rank", "id"])
    space.create_index("name", parts=["name"], unique=False)
    space.create_index("both", parts=["name", "rank"])
    return space


def carry_out(given_changes: list[tuple[Any, ...]], is_watched: bool) -> tuple[list[object], list[list[Any]]]:
    """What each change answers, and what every index holds in the end."""
    box = Box()
    space = space_of(box)
    answers: list[object] = []
    view = ReadView.of_kept(box.catalog.spaces.values()) if is_watched else None
    for change, key, *rest in given_changes:
        try:
            if change == "delete":
                answers.append(space.delete(key))
            elif change == "update":
                answers.append(space.update(key, [("=", rest[0], rest[1])]))
            else:
                answers.append(getattr(space, change)([key, *rest]))
        except BoxError as error:
            answers.append((error.code, error.message))
    if view is not None:
        view.close()
    held = [[list(row) for row in space.index[number].select()] for number in range(4)]
    assert space.bsize() == sum(len(row.raw) for row in space.select())
    assert [len(space.core().index(number)) for number in range(4)] == [len(held[0])] * 4
    return answers, held


@examples(30)
@given(changes, st.booleans())
def test_changes_of_rows(given_changes: list[tuple[Any, ...]], is_watched: bool) -> None:
    compiled = carry_out(given_changes, is_watched)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memtx_space, "change_entries", native.in_python["change_entries"])
        assert carry_out(given_changes, is_watched) == compiled


def test_changes_stay_compiled_while_a_view_is_open() -> None:
    box = Box()
    space = space_of(box)
    space.insert([1, 1, "a"])
    quick = space.core().primary.quick
    assert quick is not None
    with ReadView.of_kept(box.catalog.spaces.values()) as view:
        assert space.core().primary.quick is quick
        space.replace([1, 2, "b"])
        rows = [row for space_id, _, found in view.slices() if space_id == space.id for row in found]
    assert rows == [b"\x93\x01\x01\xa1a"]
    assert list(space.get(1)) == [1, 2, "b"]
