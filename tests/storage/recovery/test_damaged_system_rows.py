"""Starting from system spaces with wrong rows: one sentence says what is wrong; `force` does without them."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest

from iproto_server import Box
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import StorageError
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.xlog import FileType
from tests.storage.databases import CLUSTER, insert, jobs_box, replace, save, start, write_log
from tests.storage.files import INSTANCE, TIMESTAMP, header

SCHEMA_ID, FUNC_ID, CLUSTER_ID = 272, 296, 320
NOBODY = "11111111-1111-4111-8111-111111111111"

WRONG: dict[str, tuple[int, list[Any], str]] = {
    "no UUID of a replica set": (SCHEMA_ID, ["cluster", "x"], "Invalid UUID: x"),
    "no text": (SCHEMA_ID, ["cluster", 5], "Tuple field 2 type does not match one required by operation"),
    "no value": (SCHEMA_ID, ["cluster"], "Field 2 was not found in the tuple"),
    "no UUID of a member": (CLUSTER_ID, [5, "x"], "Invalid UUID: x"),
    "the number 0": (CLUSTER_ID, [0, NOBODY], "Can't initialize replica id with a reserved value 0"),
    "a number that is too large": (CLUSTER_ID, [32, NOBODY], "Replica count limit reached: 32"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_row_in_a_snapshot(tmp_path: Path, what: str) -> None:
    space_id, row, reason = WRONG[what]
    box = jobs_box([1, "R"])
    space = box.catalog.space(space_id)
    primary = space.primary_index()
    primary.set(primary.key_of(row, b""), codec.pack(row))
    path = save(box, tmp_path, {1: 5})
    with pytest.raises(StorageError) as caught:
        start(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)
    box, recovered = start(tmp_path, force=True)
    assert row not in [list(each) for each in box.catalog.rows(space_id, 0, [])]
    assert len(recovered.damages) == 1
    assert len(box.space.jobs) == 1


@pytest.mark.parametrize("what", WRONG)
def test_a_row_in_a_log(tmp_path: Path, what: str) -> None:
    space_id, row, reason = WRONG[what]
    save(jobs_box([1, "R"]), tmp_path, {1: 5})
    path = write_log(tmp_path, {1: 5}, [[replace(*row, space=space_id)], [insert(2, "R")]])
    with pytest.raises(StorageError) as caught:
        start(tmp_path)
    assert str(caught.value).startswith(f"{path}, block at offset ")
    assert reason in str(caught.value)
    box, recovered = start(tmp_path, force=True)
    assert (recovered.instance_uuid, str(recovered.cluster_uuid)) == (INSTANCE, CLUSTER)
    assert len(box.space.jobs) == 2


def test_the_newer_name_of_the_replica_set_is_looked_at_where_the_older_is_missing(tmp_path: Path) -> None:
    box = jobs_box()
    schema = box.catalog.space(SCHEMA_ID)
    box.catalog.load(schema, codec.pack(["replicaset_uuid", "x"]))
    save(box, tmp_path, {1: 5})
    assert str(start(tmp_path)[1].cluster_uuid) == CLUSTER
    schema.primary_index().remove(schema.primary_index().key_of(["cluster"], b""))
    save(box, tmp_path, {1: 6})
    with pytest.raises(
        StorageError,
        match=r"\.snap: the row 'replicaset_uuid' of space '_schema': Invalid UUID: x; --force-recovery",
    ):
        start(tmp_path)
    assert start(tmp_path, force=True)[1].cluster_uuid is None


SYSTEM_SPACES = (272, 276, 280, 284, 285, 288, 296, 304, 312, 320, 328, 330, 340, 356, 364, 372)
ODD: list[Any] = [None, True, -1, 0, 1, 2**32, 2**64 - 1, 1.5, "", "x", b"x", "\udcff", [], [1], {}, {"a": 1}]


def damaged(chance: random.Random, row: list[Any]) -> list[Any]:
    """A row with something else in it, or without something."""
    place = chance.randrange(len(row))
    value = row[place]
    match chance.randrange(4):
        case 0:
            return row[:place]
        case 1:
            return [*row[:place], chance.choice(ODD), *row[place + 1 :]]
        case 2 if isinstance(value, list) and value and isinstance(value[0], list):
            return [*row[:place], [damaged(chance, value[0]), *value[1:]], *row[place + 1 :]]
        case 3 if isinstance(value, dict) and value:
            changed = {**value, chance.choice([*value, "x", 1]): chance.choice(ODD)}
            return [*row[:place], changed, *row[place + 1 :]]
    return [*row, chance.choice(ODD)]


@pytest.mark.parametrize("seed", range(40))
def test_any_damaged_row_is_taken_or_named(tmp_path: Path, seed: int) -> None:
    """Whatever is wrong with a row, it is a sentence that tells, and not a traceback."""
    chance = random.Random(seed)
    box = lived_in()
    wrong = []
    for _ in range(chance.choice([1, 1, 3])):
        space = chance.choice(SYSTEM_SPACES)
        rows = [codec.unpack(raw) for raw in box.catalog.space(space).rows()]
        if rows:
            wrong.append((space, damaged(chance, chance.choice(rows))))
    in_log, in_snapshot = tmp_path / "log", tmp_path / "snapshot"
    for directory in (in_log, in_snapshot):
        directory.mkdir()
    save(box, in_log, {1: 5})
    write_log(in_log, {1: 5}, [[replace(*row, space=space)] for space, row in wrong])
    with SnapshotWriter(in_snapshot, header(FileType.SNAPSHOT, {1: 5}), TIMESTAMP) as writer:
        for each in sorted(box.catalog, key=lambda each: each.id):
            if isinstance(each, SysviewSpace) or each.is_temporary:
                continue
            added = [row for space, row in wrong if space == each.id]
            kept = [raw for raw in each.rows() if codec.unpack(raw)[:1] not in [row[:1] for row in added]]
            writer.write(each.id, iter([*kept, *map(codec.pack, added)]))
    for directory in (in_log, in_snapshot):
        for force in (False, True):
            with contextlib.suppress(StorageError):
                start(directory, force=force)


def lived_in() -> Box:
    """A box with something in each system space that takes something."""
    box = jobs_box([1, "R"])
    box.schema.sequence.create("numbers")
    numbered = box.schema.create_space("numbered")
    numbered.create_index("primary", sequence="numbers")
    numbered.insert([None])
    numbered.truncate()
    box.schema.func.create("function")
    box.schema.user.create("ann", password="secret")
    box.schema.user.grant("ann", "read", "space", "jobs")
    box.schema.user.grant("ann", "execute", "function", "function")
    return box
