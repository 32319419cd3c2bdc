"""Snapshots are loaded as by one row at a time, whatever their blocks hold."""

from __future__ import annotations

import logging
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread, current_thread
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.system_space_ids import SYSTEM_ID_MAX
from iproto_server.box.index.index import Index
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.box.memtx import index_build
from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import RowType, insert_body
from tests.plugins.profiles import examples
from tests.storage.databases import JOBS, start
from tests.storage.files import Request
from tests.storage.recovery.blocks import (
    MANY,
    NUMBERED,
    anything,
    check_same,
    fitting,
    outcome,
    system_rows,
    write_snapshot,
)
from tests.storage.recovery.careful_loading import careful_loading


@pytest.fixture(autouse=True)
def no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "iproto_server")


def arranged(data: st.DataObject) -> list[list[Request]]:
    """Rows of users' spaces, some in order and some not, in blocks."""
    rows: list[tuple[int, list[Any]]] = []
    for space in data.draw(st.permutations(list(fitting))):
        of_space = data.draw(st.lists(fitting[space], max_size=12))
        if data.draw(st.booleans()):
            of_space = sorted(
                {tuple(row[:2]) if space == MANY else row[0]: row for row in of_space}.values(),
                key=lambda row: (row[1], row[0]) if space == MANY else row[0],
            )
        rows += [(space, row) for row in of_space]
    for place, row in data.draw(st.lists(st.tuples(st.integers(0, 40), anything), max_size=3)):
        rows.insert(place, row)
    requests: list[Request] = [(RowType.INSERT, insert_body(space, codec.pack(row))) for space, row in rows]
    cuts = sorted({0, len(requests), *data.draw(st.lists(st.integers(0, len(requests)), max_size=4))})
    return [requests[start:end] for start, end in pairwise(cuts)]


@examples(50)
@given(st.data(), st.booleans())
def test_snapshots(data: st.DataObject, force: bool) -> None:
    first = system_rows()
    blocks = arranged(data)
    joined = data.draw(st.booleans())
    blocks = [first + blocks[0], *blocks[1:]] if joined and blocks else [first, *blocks]
    with TemporaryDirectory() as directory:
        write_snapshot(Path(directory), blocks)
        check_same(Path(directory), force=force)


def job(number: object, status: object = "R", *more: object) -> Request:
    return RowType.INSERT, insert_body(JOBS, codec.pack([number, status, *more]))


@pytest.mark.parametrize(
    "rows",
    [
        [job(number) for number in range(1000)],
        [job(number) for number in reversed(range(1000))],
        [*(job(number, "R" * 20, {"a": [number]}) for number in range(500)), job(3), job(7), job(600)],
        [job(1), job(2, "R", Decimal("1.5")), job(3), job(4, "R", UUID(int=1)), job(5)],
        [job(1), job("two"), job(3)],
        [job(1), job(2, 2), job(3)],
        [job(1), (RowType.INSERT, insert_body(JOBS, b"\x93\x02\xa1R\xd4\x01\xff")), job(3)],
        [job(1), (RowType.INSERT, insert_body(JOBS, b"\x92\xd0\x02\xa1R")), job(3)],
        [job(1), (RowType.REPLACE, insert_body(JOBS, b"\x92\x02\xa1R")), job(3)],
        [job(1), (RowType.INSERT, b"\x82\x10\xcd\x02\x00\x21\x01"), job(3)],
        [job(1), (RowType.INSERT, b"\x82\x10\xd1\x02\x00\x21\x92\x02\xa1R"), job(3)],
        [job(1), (RowType.INSERT, b"\x83\x10\xcd\x02\x00\x21\x92\x02\xa1R\x30\x01"), job(3)],
        [job(1), (RowType.INSERT, b"\x82\x21\x92\x02\xa1R\x10\xcd\x02\x00"), job(3)],
        [job(1), (RowType.INSERT, insert_body(7000, b"\x91\x01")), job(3)],
        [job(1), (RowType.INSERT, insert_body(272, b"\x92\xa4late\x01")), job(3)],
        [job(1), (RowType.INSERT, insert_body(JOBS, b"\x93\x02\xa1R" + b"\x91" * 500 + b"\xc0")), job(3)],
    ],
)  # fmt: skip
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("at_a_time", [1, 2, 1000])
def test_rows_of_all_kinds(rows: list[Request], force: bool, at_a_time: int, tmp_path: Path) -> None:
    blocks = [rows[place : place + at_a_time] for place in range(0, len(rows), at_a_time)]
    write_snapshot(tmp_path, [system_rows(), *blocks])
    check_same(tmp_path, force=force)


def test_whole_blocks_are_appended(tmp_path: Path) -> None:
    """The compiled function does the work, and Python has none of it."""
    rows = [job(number, "R" * (number % 9)) for number in range(5000)]
    write_snapshot(tmp_path, [system_rows(), *([row] for row in rows[:50]), rows[50:]])
    with patch.object(Loader, "load", autospec=True, side_effect=Loader.load) as loaded:
        box, _ = start(tmp_path)
    assert all(call.args[1] <= SYSTEM_ID_MAX for call in loaded.call_args_list)
    assert len(box.space.jobs) == 5000


def test_rows_of_other_spaces_of_a_block_are_appended_all_the_same(tmp_path: Path) -> None:
    """Only rows that move a sequence, and those behind one that is out of order, are loaded one by one."""
    numbered = [(RowType.INSERT, insert_body(NUMBERED, codec.pack([number]))) for number in range(10)]
    many = [(RowType.INSERT, insert_body(MANY, codec.pack(["a", number, None, "x"]))) for number in range(9)]
    rows = [*(job(number) for number in (1, 2, 5, 3, 9)), *many, *numbered]
    write_snapshot(tmp_path, [system_rows(), rows])
    with patch.object(Loader, "load", autospec=True, side_effect=Loader.load) as loaded:
        box, _ = start(tmp_path)
    calls = [call.args[1:] for call in loaded.call_args_list if call.args[1] > SYSTEM_ID_MAX]
    assert [(space_id, len(tuples)) for space_id, tuples in calls] == [(JOBS, 2), (NUMBERED, 10)]
    assert [box.space[name].len() for name in ("jobs", "many", "numbered")] == [5, 9, 10]
    check_same(tmp_path, force=False)


@pytest.mark.parametrize("are_in_order", [True, False])
def test_secondary_indexes_of_many_rows_are_built_by_threads(tmp_path: Path, are_in_order: bool) -> None:
    texts = ["x", "x" if are_in_order else "w"]
    rows: list[list[Any]] = [
        ["a", number, number if are_in_order else number ^ 5, texts[number * 3 // 1000 % 2]]
        for number in range(1000)
    ]
    requests: list[Request] = [(RowType.INSERT, insert_body(MANY, codec.pack(row))) for row in rows]
    write_snapshot(tmp_path, [system_rows(), requests])
    builders: set[Thread] = set()

    def build_from(index: TreeIndex, primary: Index) -> bool:
        builders.add(current_thread())
        return in_place(index, primary)

    in_place = TreeIndex.build_from
    with (
        patch.object(index_build, "MANY", len(rows)),
        patch.object(TreeIndex, "build_from", build_from),
    ):
        compiled = outcome(tmp_path, force=False)
    with careful_loading():
        assert compiled == outcome(tmp_path, force=False)
    assert any(thread is not current_thread() and not thread.is_alive() for thread in builders)
