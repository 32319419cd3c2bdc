"""Spaces of the same definition share their formats and keys."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import pytest

from iproto_server import Box, BoxError, ErrorCode, Space
from tests.box.boxes import new_box

FIELDS = (("id", "unsigned"), ("state", "string"), ("price", "double"))


@pytest.fixture
def box() -> Box:
    return new_box()[0]


def create(box: Box, name: str, fields: Sequence[object] = FIELDS) -> Space:
    space = box.schema.create_space(name, format=fields)
    space.create_index("id")
    space.create_index("state", parts=["state", "id"], unique=False)
    return space


def test_spaces_of_one_definition_share_format_and_keys(box: Box) -> None:
    first, second = create(box, "first").core(), create(box, "second").core()
    assert first.format is second.format
    assert [index.key_def for index in first.indexes.values()] == [
        index.key_def for index in second.indexes.values()
    ]
    for number in first.indexes:
        assert first.indexes[number].key_def is second.indexes[number].key_def
        assert first.indexes[number].key_of is second.indexes[number].key_of


def test_another_definition_has_a_format_of_its_own(box: Box) -> None:
    plain = create(box, "plain").core()
    price = {"name": "price", "type": "double", "is_nullable": True}
    nullable = create(box, "nullable", [*FIELDS[:2], price])
    assert nullable.core().format is not plain.format
    nullable.insert([1, "r", None])
    with pytest.raises(BoxError) as refused:
        box.space.plain.insert([1, "r", None])
    assert refused.value.code == ErrorCode.FIELD_TYPE
    # The format of one space changes alone.
    box.space.plain.format(FIELDS[:2])
    assert len(box.space.plain.core().format.fields) == 2
    assert len(create(box, "another").core().format.fields) == 3


def test_the_collation_of_a_field_has_to_exist_for_each_space(box: Box) -> None:
    box.space._collation.insert([300, "mine", 1, "ICU", "", {}])
    stored = [{"name": "id", "type": "unsigned"}, {"name": "state", "type": "string", "collation": 300}]
    for number in (600, 601):
        box.space._space.insert([number, 1, f"space{number}", "memtx", 0, {}, stored])
        assert box.space[f"space{number}"].core().format.fields[1].collation_id == 300
        box.space._space.delete([number])
    box.space._collation.delete([300])
    with pytest.raises(BoxError, match="collation was not found by ID"):
        box.space._space.insert([602, 1, "space602", "memtx", 0, {}, stored])


def test_another_space_of_a_definition_adds_few_objects_to_the_collector(box: Box) -> None:
    """Pauses of the collector, and the memory of many tubes, grow with these objects."""
    create(box, "first")
    gc.collect()
    before = len(gc.get_objects())
    for number in range(10):
        create(box, f"space{number}")
    gc.collect()
    assert (len(gc.get_objects()) - before) / 10 < 60
