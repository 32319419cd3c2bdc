"""A read-only instance: refused and allowed operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iproto_server import Box, BoxError, ErrorCode

TEXT = "Can't modify data because this instance is in read-only mode."


@pytest.fixture
def box() -> Box:
    box = Box()
    box.schema.create_space("plain")
    box.schema.create_space("temporary", temporary=True)
    box.schema.create_space("local", is_local=True)
    for name in ("plain", "temporary", "local"):
        space = box.space[name]
        space.create_index("primary")
        space.insert([1, "one"])
    box.cfg(read_only=True)
    return box


CHANGES: dict[str, Callable[[Box], object]] = {
    "insert": lambda box: box.space.plain.insert([2]),
    "insert of a key that is there": lambda box: box.space.plain.insert([1]),
    "insert of what does not fit": lambda box: box.space.plain.insert(["one"]),
    "replace": lambda box: box.space.plain.replace([1]),
    "update": lambda box: box.space.plain.update(1, [("=", 1, "two")]),
    "update of nothing": lambda box: box.space.plain.update(9, [("=", 1, "two")]),
    "upsert": lambda box: box.space.plain.upsert([1], [("=", 1, "two")]),
    "delete": lambda box: box.space.plain.delete(1),
    "delete of nothing": lambda box: box.space.plain.delete(9),
    "truncate": lambda box: box.space.plain.truncate(),
    "truncate of a temporary space": lambda box: box.space.temporary.truncate(),
    "a new space": lambda box: box.schema.create_space("another"),
    "a new temporary space": lambda box: box.schema.create_space("another", temporary=True),
    "a new index": lambda box: box.space.temporary.create_index("second"),
    "a new user": lambda box: box.schema.user.create("alice", password="secret"),
    "a dropped space": lambda box: box.space.plain.drop(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_are_refused(box: Box, change: Callable[[Box], object]) -> None:
    before = box.info.lsn
    with pytest.raises(BoxError) as caught:
        change(box)
    assert (caught.value.code, caught.value.message) == (ErrorCode.READONLY, TEXT)
    assert [list(row) for row in box.space.plain.select()] == [[1, "one"]]
    assert box.info.lsn == before


@pytest.mark.parametrize("name", ["temporary", "local"])
def test_temporary_and_local_spaces_are_nobody_else_s_business(box: Box, name: str) -> None:
    space = box.space[name]
    space.insert([2, "two"])
    space.update(1, [("=", 1, "changed")])
    space.upsert([3, "three"], [])
    space.delete(2)
    assert [list(row) for row in space.select()] == [[1, "changed"], [3, "three"]]


def test_reading_goes_on(box: Box) -> None:
    assert box.space.plain.get(1) is not None
    assert box.space.plain.count() == 1


def test_a_transaction_that_changes_something_is_undone_as_a_whole(box: Box) -> None:
    with pytest.raises(BoxError), box.in_transaction():
        box.space.temporary.insert([2])
        box.space.plain.insert([2])
    assert box.space.temporary.count() == 1


def test_it_ends(box: Box) -> None:
    box.cfg(read_only=False)
    box.space.plain.insert([2])
    assert box.space.plain.count() == 2


def test_earlier_changes_can_still_be_undone() -> None:
    box = Box()
    box.schema.create_space("space").create_index("primary")
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        box.space.space.insert([1])
        box.cfg(read_only=True)
        raise ZeroDivisionError
    assert box.space.space.count() == 0


def test_it_is_told(box: Box) -> None:
    assert (box.info.ro, box.info.ro_reason, box.cfg.read_only) == (True, "config", True)
    assert box.info()["ro_reason"] == "config"
    assert box.watch_once("box.status") == {"is_ro": True, "is_ro_cfg": True, "status": "running"}
    assert box.watch_once("box.election")["is_ro"]
    told: list[object] = []
    box.watch("box.status", lambda key, value: told.append(value))
    box.cfg(read_only=True)
    assert len(told) == 1
    box.cfg(read_only=False)
    assert told[1:] == [{"is_ro": False, "is_ro_cfg": False, "status": "running"}]
    assert (box.info.ro, box.info.ro_reason, box.cfg["read_only"]) == (False, None, False)
    assert "ro_reason" not in box.info()
