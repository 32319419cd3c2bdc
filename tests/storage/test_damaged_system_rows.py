"""Starting from system spaces with wrong rows: one sentence says what is wrong; `force` does without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iproto_server import codec
from iproto_server.storage.errors import StorageError
from tests.storage.databases import CLUSTER, insert, jobs_box, replace, save, start, write_log
from tests.storage.files import INSTANCE

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
        StorageError, match=r"^the row 'replicaset_uuid' of space '_schema': Invalid UUID: x$"
    ):
        start(tmp_path)
    assert start(tmp_path, force=True)[1].cluster_uuid is None
