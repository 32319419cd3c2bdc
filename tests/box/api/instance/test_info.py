"""State of the instance: `box.info`, `box.stat`, `box.slab`, `box.runtime`, `box.cfg`."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode


@pytest.fixture
def box() -> Box:
    return Box(version="2.11.0-test")


def test_info_tells_all_or_one_thing(box: Box) -> None:
    told = box.info()
    assert told["version"] == box.info.version == "2.11.0-test"
    assert told["uuid"] == box.info.uuid == str(box.uuid)
    assert told["cluster"] == {"uuid": str(box.cluster_uuid)}
    assert told["status"] == "running"
    assert told["election"] == {"state": "follower", "term": 1, "vote": 0, "leader": 0}
    assert box.info.replication == {1: {"id": 1, "uuid": str(box.uuid), "lsn": box.info.lsn}}
    assert told["listen"] is None
    # As in Tarantool, functions appear as empty tables here.
    assert told["memory"] == told["gc"] == told["sql"] == []


def test_info_follows_the_changes(box: Box) -> None:
    lsn, signature = box.info.lsn, box.info.signature
    box.schema.create_space("space").create_index("primary")
    box.space.space.insert([1])
    assert box.info.lsn > lsn
    assert box.info.signature - signature == box.info.lsn - lsn
    assert box.info.vclock == {1: box.info.lsn}
    assert box.info.schema_version == box.catalog.schema_version


@pytest.mark.parametrize(
    "attribute", ["info.nothing", "stat.nothing", "stat.net.nothing", "cfg.nothing", "info._started_at"]
)
def test_unknown_attributes(box: Box, attribute: str) -> None:
    target: Any = box
    *path, last = attribute.split(".")
    for name in path:
        target = getattr(target, name)
    with pytest.raises(AttributeError, match=last):
        getattr(target, last)


def test_memory_knows_the_rows(box: Box) -> None:
    box.schema.create_space("space").create_index("primary")
    before = box.info.memory()["data"]
    box.space.space.insert([1, "x" * 100_000])
    header = box.info.memory()["data"] - before - 100_007
    assert header in (8, 12)  # 12 in a build with checksums
    assert box.slab.info()["items_used"] == box.info.memory()["data"]
    box.space.space.delete(1)
    assert box.info.memory()["data"] == before


def test_the_process_is_told_apart_from_its_rows(box: Box) -> None:
    data, index = box.memory.data(), box.memory.indexes()
    rows = data + index
    box.memory.used, box.memory.limit, box.memory.network = lambda: rows + 1000, lambda: 8 * data, lambda: 300
    memory = box.info.memory()
    assert memory == {"cache": 0, "data": data, "index": index, "lua": 700, "net": 300, "tx": 0}
    assert box.runtime.info() == {"lua": index + 1000, "maxalloc": 8 * data, "used": rows + 1000}


def test_slab_tells_of_rows_indexes_and_the_limit(box: Box) -> None:
    data, index = box.memory.data(), box.memory.indexes()
    box.memory.used, box.memory.limit = lambda: data + 1000, lambda: 8 * data
    slab: dict[str, Any] = dict(box.slab.info())
    held = box.memory.arena()
    assert slab == {
        "items_size": held - index,
        "items_used": data,
        "items_used_ratio": f"{100 * data / slab['items_size']:.2f}%",
        "arena_size": held,
        "arena_used": data + index,
        "arena_used_ratio": f"{100 * slab['arena_used'] / slab['arena_size']:.1f}%",
        "quota_size": 8 * data,
        "quota_used": slab["arena_size"],
        "quota_used_ratio": f"{100 * slab['arena_size'] / (8 * data):.2f}%",
    }
    assert 0 < slab["items_used"] <= slab["items_size"]


def test_gc_tells_of_snapshots(box: Box) -> None:
    assert box.info.gc() == {
        "vclock": {},
        "signature": 0,
        "checkpoint_is_in_progress": False,
        "checkpoints": [],
        "consumers": [],
    }
    box.kept_snapshots = lambda: [{1: 5}, {0: 2, 1: 9}]
    box.is_taking_snapshot = lambda: True
    told = box.info.gc()
    assert (told["vclock"], told["signature"], told["checkpoint_is_in_progress"]) == ({1: 5}, 5, True)
    assert told["checkpoints"][1] == {"vclock": {0: 2, 1: 9}, "signature": 11, "references": []}


def test_a_box_without_clients_counts_nothing(box: Box) -> None:
    box.stat.reset()
    assert box.stat() == box.stat.net() == {}
    assert box.stat.net.thread() == [{}]


def test_the_options_of_a_box_without_a_server(box: Box) -> None:
    assert dict(box.cfg) == {"read_only": False}
    box.cfg({"read_only": True})
    assert box.cfg.read_only
    box.cfg()
    assert box.cfg.read_only


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"net_msg_max": 5}, "Incorrect value for option 'net_msg_max': unexpected option"),
        ({"read_only": "yes"}, "Incorrect value for option 'read_only': should be of type boolean"),
        ({"read_only": True, "nothing": 1}, "Incorrect value for option 'nothing': unexpected option"),
    ],
)
def test_wrong_options_change_nothing(box: Box, options: dict[str, Any], text: str) -> None:
    with pytest.raises(BoxError) as caught:
        box.cfg(options)
    assert (caught.value.code, caught.value.message) == (ErrorCode.CFG, text)
    assert not box.cfg.read_only
