"""Procedures find spaces and indexes in the same way with compiled methods and with Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from iproto_server import Box, BoxError, Space
from tests.native.python_methods import use_python_methods


@pytest.fixture(params=["compiled", "python"], autouse=True)
def methods(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compiled methods, where there are any, and then Python's."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            use_python_methods(patch)
        yield


@pytest.fixture
def box() -> Box:
    return Box()


def create(box: Box, name: str = "jobs") -> Space:
    space = box.schema.create_space(name)
    space.create_index("primary")
    return space


def find_in_all_ways(box: Box, space: Space) -> None:
    for _ in range(2):
        for which in (space.name, space.id):
            assert box.space[which].id == space.id
            assert box.space[which] is box.space[space.id]
        assert getattr(box.space, space.name) is box.space[space.id]


def test_a_space_is_found_by_name_and_number(box: Box) -> None:
    find_in_all_ways(box, create(box))
    find_in_all_ways(box, create(box, "others"))


@pytest.mark.parametrize("which", ["none", "", 999, -1, True, None, 1.5])
def test_no_space_is_found(box: Box, which: Any) -> None:
    create(box)
    for _ in range(2):
        with pytest.raises(BoxError, match="does not exist"):
            box.space[which]


def test_a_key_that_cannot_be_one(box: Box) -> None:
    with pytest.raises(TypeError):
        box.space[[]]  # type: ignore[index]


def test_names_of_python_are_no_spaces(box: Box) -> None:
    create(box, "__own__")
    assert box.space["__own__"].name == "__own__"
    for holder in (box.space, box.space["__own__"].index):
        with pytest.raises(AttributeError, match="__own__"):
            holder.__own__  # noqa: B018


def test_a_dropped_space_is_not_found(box: Box) -> None:
    space = create(box)
    find_in_all_ways(box, space)
    space.drop()
    for which in ("jobs", space.id):
        with pytest.raises(BoxError, match="does not exist"):
            box.space[which]
    other = create(box)
    other.insert([1])
    find_in_all_ways(box, other)
    assert box.space.jobs.len() == 1


def test_a_renamed_space_is_found_by_its_new_name(box: Box) -> None:
    space = create(box)
    find_in_all_ways(box, space)
    space.rename("tasks")
    find_in_all_ways(box, space)
    with pytest.raises(BoxError, match="Space 'jobs' does not exist"):
        box.space["jobs"]
    find_in_all_ways(box, create(box))


def test_a_space_of_an_undone_transaction_is_not_found(box: Box) -> None:
    space = create(box)
    for _ in range(2):
        box.begin()
        space.drop()
        made = create(box)
        find_in_all_ways(box, made)
        box.rollback()
        box.commit()
        find_in_all_ways(box, space)


def test_an_index_is_found_by_name_and_number(box: Box) -> None:
    space = create(box)
    space.create_index("second", parts=[(1, "string")])
    for number, name in enumerate(("primary", "second")):
        for index in (space.index[number], space.index[name], getattr(space.index, name)):
            assert (index.id, index.name, index.space) == (number, name, space)
    space.insert([1, "a"])
    assert space.index.second.get("a") == [1, "a"]


@pytest.mark.parametrize("which", ["none", "", 2, -1, 1.5])
def test_no_index_is_found(box: Box, which: Any) -> None:
    space = create(box)
    with pytest.raises(BoxError, match="No index"):
        space.index[which]


def test_indexes_follow_their_definition(box: Box) -> None:
    space = create(box)
    space.create_index("second", parts=[(1, "string")])
    space.index.second.rename("other")
    assert space.index.other.id == space.index[1].id == 1
    with pytest.raises(BoxError, match="No index 'second'"):
        space.index["second"]
    space.index["other"].drop()
    with pytest.raises(BoxError, match="No index #1"):
        space.index[1]
    space.drop()
    with pytest.raises(BoxError, match="does not exist"):
        space.index["primary"]
