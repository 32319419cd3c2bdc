"""Rows of the replica set and its members, where Tarantool 2.6 cannot serve as a reference."""

from __future__ import annotations

from uuid import UUID

import pytest

from iproto_server import Box, BoxError, ErrorCode
from tests.box.boxes import new_box, refused, rows
from tests.box.refusal import refusal

SET, OTHER = "11111111-1111-4111-8111-11111111111a", "22222222-2222-4222-8222-22222222222b"


@pytest.fixture
def box() -> Box:
    """A box that is member 1 of a replica set."""
    box = new_box()[0]
    box.space["_schema"].insert(["cluster", SET])
    box.space["_cluster"].insert([1, OTHER])
    box.catalog.replica_set.own_id = 1
    return box


def test_the_uuid_is_what_the_row_says(box: Box) -> None:
    assert box.cluster_uuid == UUID(SET)
    box.space["_schema"].replace(["cluster", OTHER])
    assert box.cluster_uuid == UUID(OTHER)


def test_a_change_that_is_undone_leaves_the_uuid(box: Box) -> None:
    def change() -> None:
        box.space["_schema"].replace(["cluster", OTHER])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        box.atomic(change)
    assert box.cluster_uuid == UUID(SET)
    assert rows(box.space["_schema"])[0] == ["cluster", SET]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (["cluster"], (37, "Field 2 was not found in the tuple")),
        (
            ["cluster", 5],
            (23, "Tuple field 2 type does not match one required by operation: expected string"),
        ),
        (["cluster", SET[:-1] + "x"], (64, f"Invalid UUID: {SET[:-1]}x")),
    ],
)
def test_uuids_that_tarantool_misreads_are_refused(
    box: Box, row: list[object], error: tuple[int, str]
) -> None:
    assert refused(box.space["_schema"].replace, row) == error
    assert box.cluster_uuid == UUID(SET)


def test_a_uuid_in_other_letters_is_the_same(box: Box) -> None:
    with refusal(ErrorCode.TUPLE_FOUND):
        box.space["_cluster"].insert([5, OTHER.upper()])


@pytest.mark.parametrize(
    "version", [[], ["x"], [2], [2, "x"], [2, 3, "x"], [2.5, 3], [-1, 3, 1], [None, None], [True, 1]]
)
def test_the_version_of_the_schema_is_one(box: Box, version: list[object]) -> None:
    reason = "Wrong _schema version: expected 'major.minor[.patch]'"
    assert refused(box.space["_schema"].replace, ["version", *version]) == (140, reason)


@pytest.mark.parametrize("version", [[1, 10], [2, 3], [2, 3, 0], [2, 2, 9]])
def test_the_version_of_the_schema_does_not_sink(box: Box, version: list[int]) -> None:
    """Tarantool would repeat the upgrade and not start."""
    reason = "This server does not support an older version of the schema"
    assert refused(box.space["_schema"].replace, ["version", *version]) == (5, reason)


@pytest.mark.parametrize("version", [[2, 3, 1], [2, 3, 1, "more"], [2, 3, 2], [2, 11], [3, 0, 0]])
def test_the_version_of_the_schema_rises(box: Box, version: list[object]) -> None:
    box.space["_schema"].replace(["version", *version])


def test_the_version_of_the_schema_stays(box: Box) -> None:
    reason = "This server does not support a schema without a version"
    assert refused(box.space["_schema"].delete, ["version"]) == (5, reason)


@pytest.mark.parametrize("engine", ["vinyl", "blackhole", "service", "sysview", "xx"])
def test_a_space_below_512_has_no_engine_of_its_own_choice(box: Box, engine: str) -> None:
    """This server has no engine of Tarantool except memtx."""
    with pytest.raises(BoxError) as caught:
        box.space["_space"].insert([400, 1, "four hundred", engine, 0, {}, []])
    assert caught.value.code in (ErrorCode.NO_SUCH_ENGINE, ErrorCode.UNSUPPORTED)


@pytest.mark.parametrize("name", ["_space", "_vspace", "_sequence_data", "_session_settings"])
@pytest.mark.parametrize(
    ("engine", "error"),
    [
        ("scalar", (57, "Space engine 'scalar' does not exist")),
        ("blackhole", (12, "Can't modify space '{}': can not change space engine")),
    ],
)
def test_a_system_space_keeps_its_engine(box: Box, name: str, engine: str, error: tuple[int, str]) -> None:
    """Existence of the other one is checked first."""
    found = box.space["_space"].index["name"].get([name])
    assert found is not None
    row = list(found)
    row[3] = engine
    code, text = error
    assert refused(box.space["_space"].replace, row) == (code, text.format(name))


def test_a_space_below_512_may_be_anybodys(box: Box) -> None:
    box.schema.create_space("four hundred", id=400).create_index("pk")
    box.space["four hundred"].insert([1])
