"""Databases loaded many rows at a time, against the same ones loaded by the careful path."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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

from iproto_server import Box
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.system_space_ids import SYSTEM_ID_MAX
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.box.index.index import Index
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.box.memtx import index_build
from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import file_name
from iproto_server.storage.errors import StorageError
from iproto_server.storage.recovery.log_replay import LogReplay
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.xlog import FileType, RowEncoder, RowType, XlogWriter, delete_body, insert_body
from tests.plugins.profiles import examples
from tests.storage.databases import JOBS, jobs_box, start
from tests.storage.files import TIMESTAMP, Request, deletion, header, insertion, replacement, update, upsert
from tests.storage.recovery.careful_loading import careful_loading

MANY, NUMBERED, HASHED = 600, 601, 602


def the_box() -> Box:
    """A box with spaces of several kinds, all empty."""
    box = jobs_box()
    many = box.schema.create_space("many", id=MANY)
    many.create_index("primary", parts=[(1, "number"), (0, "string")])
    many.create_index("unique", parts=[{"field": 2, "type": "number", "is_nullable": True}])
    many.create_index("text", parts=[(3, "string")], unique=False)
    many.create_index("hash", type="hash", parts=[(1, "number"), (0, "string")])
    numbered = box.schema.create_space("numbered", id=NUMBERED)
    box.schema.sequence.create("ids")
    numbered.create_index("primary", sequence="ids")
    hashed = box.schema.create_space("hashed", id=HASHED)
    hashed.create_index("primary", type="hash")
    hashed.create_index("tree", parts=[(1, "string")], unique=False)
    return box


def system_rows() -> list[Request]:
    return [
        (RowType.INSERT, insert_body(space.id, raw))
        for space in sorted(the_box().catalog, key=lambda space: space.id)
        if not isinstance(space, SysviewSpace)
        for raw in space.rows()
    ]


def write_blocks(path: Path, file_type: FileType, blocks: Sequence[Sequence[bytes]], clock: int) -> None:
    """Write a file of blocks."""
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header(file_type, {1: clock} if clock else {}))
        for rows in blocks:
            writer.write([b"".join(rows)])
        writer.end()


def write_snapshot(directory: Path, blocks: Sequence[Sequence[Request]]) -> None:
    """Write a snapshot whose rows are in these blocks."""
    encoder = RowEncoder()
    encoded = [[encoder.transaction(0, TIMESTAMP, (row,)) for row in rows] for rows in blocks]
    write_blocks(directory / file_name(FileType.SNAPSHOT, 1), FileType.SNAPSHOT, encoded, 1)


def contents(box: Box) -> dict[str, Any]:
    """All rows, as all indexes have them."""
    return {
        space.name: (
            space.bsize,
            len(space),
            [(index.name, len(index), sorted(index.items())) for index in space.indexes.values()],
        )
        for space in box.catalog
        if not isinstance(space, SysviewSpace)
    }


def outcome(directory: Path, *, force: bool) -> Any:
    """What a start results in."""
    box = Box()
    try:
        result = recover(box, directory, directory, force=force, read_only=True)
    except StorageError as error:
        return str(error)
    assert result is not None
    return contents(box), result.damages, result.rows, result.vclock


def check_same(directory: Path, *, force: bool) -> Any:
    """Start twice; return the result, which is the same one."""
    compiled = outcome(directory, force=force)
    with careful_loading():
        assert compiled == outcome(directory, force=force)
    return compiled


@pytest.fixture(autouse=True)
def no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "iproto_server")


values = st.one_of(
    st.integers(0, 9),
    st.integers(-5, 70_000),
    st.floats(0, 9),
    st.none(),
    st.text("ab\0", max_size=12),
    st.sampled_from(
        [Decimal("1.5"), UUID(int=7), b"bytes", {"a": [1, {}]}, [[[]]], {(): 1}, True, 2**64 - 1]
    ),
)
fitting = {
    JOBS: st.tuples(st.integers(0, 99), st.text("RT", max_size=9), values).map(list),
    MANY: st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 9) | st.floats(0, 9),
        st.integers(0, 30) | st.none(),
        st.text("xyz"),
        values,
    ).map(list),
    NUMBERED: st.tuples(st.integers(0, 99), values).map(list),
    HASHED: st.tuples(st.integers(0, 99), st.text("RT", max_size=9), values).map(list),
}
anything = st.one_of(
    *(
        st.tuples(st.just(space), rows | st.lists(values, max_size=5) if is_wild else rows)
        for space, rows in fitting.items()
        for is_wild in (False, True)
    ),
    st.tuples(st.just(700), st.just([1])),
)


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


# -- logs --

Transactions = list[list[Request]]
"""The transactions of a block."""


def write_log(directory: Path, first_lsn: int, blocks: Sequence[Transactions], *, member: int = 1) -> int:
    """Write a log after the snapshot; return the LSN behind its last row."""
    encoder = RowEncoder(member)
    lsn, encoded = first_lsn, []
    for transactions in blocks:
        rows = []
        for requests in transactions:
            rows.append(encoder.transaction(lsn, TIMESTAMP, requests))
            lsn += len(requests)
        encoded.append(rows)
    write_blocks(directory / file_name(FileType.LOG, first_lsn - 1), FileType.LOG, encoded, first_lsn - 1)
    return lsn


numbers = st.integers(0, 12)
operations = st.lists(
    st.tuples(
        st.sampled_from("====+#"), st.sampled_from([0, 1, 2, 3, 5, -1, "id", "status", "x"]), values
    ).map(list),
    max_size=3,
)
usual = st.one_of(
    st.builds(insertion, st.just(JOBS), numbers, st.text("RT", max_size=9)),
    st.builds(replacement, st.just(JOBS), numbers, st.text("RT", max_size=9), values),
    st.builds(deletion, st.just(JOBS), numbers),
    st.builds(
        update,
        st.just(JOBS),
        st.tuples(numbers),
        st.lists(
            st.tuples(st.just("="), st.sampled_from([1, 2, "status"]), st.text("RT", max_size=9)),
            min_size=1,
            max_size=2,
        ),
        st.just(0),
    ),
)
unusual = st.one_of(
    st.builds(update, st.just(JOBS), st.tuples(numbers), operations, st.integers(0, 1)),
    st.builds(upsert, st.just(JOBS), st.tuples(numbers, st.just("U")), operations, st.integers(0, 1)),
    st.builds(deletion, st.sampled_from([JOBS, MANY, NUMBERED, HASHED, 700]), values),
    st.builds(deletion, st.just(MANY), st.floats(0, 9) | numbers, st.sampled_from("abc")),
    anything.map(lambda pair: insertion(pair[0], *pair[1])),
    anything.map(lambda pair: replacement(pair[0], *pair[1])),
    st.sampled_from(
        [
            (RowType.DELETE, delete_body(JOBS, codec.pack(["R", 1]), 1)),
            (RowType.NOP, b"\x80"),
            replacement(330, JOBS, 1),  # truncates it
            deletion(288, JOBS, 1),
            insertion(288, JOBS, 2, "third", "tree", {"unique": False}, [[1, "string"]]),
            replacement(280, JOBS, 1, "jobs", "memtx", 0, {}, [{"name": "status", "type": "any"}]),
        ]
    ),
)


@examples(50)
@given(
    st.lists(
        st.lists(st.lists(usual | usual | usual | unusual, min_size=1, max_size=3), min_size=1, max_size=6),
        max_size=6,
    ),
    st.lists(st.lists(st.lists(usual, min_size=1, max_size=2), min_size=1, max_size=4), max_size=3),
    st.integers(-2, 1),
    st.booleans(),
)
def test_logs(first: list[Transactions], second: list[Transactions], gap: int, force: bool) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        write_snapshot(directory, [system_rows()])
        end = write_log(directory, 2, first)
        if second and end + gap > 2:
            write_log(directory, end + gap, second)
        check_same(directory, force=force)


@examples(50)
@given(
    st.lists(
        st.lists(st.lists(usual, min_size=1, max_size=3), min_size=1, max_size=6), min_size=1, max_size=4
    ),
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 255)), min_size=1, max_size=3),
    st.booleans(),
)
def test_rows_of_logs_with_other_bytes(
    blocks: list[Transactions], changes: list[tuple[int, int]], force: bool
) -> None:
    """The checksums are right, as a program writes them that makes other rows."""

    def damaged(rows: list[bytes]) -> list[bytes]:
        joined = bytearray(b"".join(rows))
        for place, change in changes:
            joined[place % len(joined)] ^= change
        return [bytes(joined)]

    encoder, lsn = RowEncoder(1), 2
    encoded: list[list[bytes]] = []
    for transactions in blocks:
        rows = []
        for requests in transactions:
            rows.append(encoder.transaction(lsn, TIMESTAMP, requests))
            lsn += len(requests)
        encoded.append(damaged(rows) if len(encoded) == len(blocks) // 2 else rows)
    with TemporaryDirectory() as name:
        directory = Path(name)
        write_snapshot(directory, [system_rows()])
        write_blocks(directory / file_name(FileType.LOG, 1), FileType.LOG, encoded, 1)
        check_same(directory, force=force)


def test_rows_of_another_member(tmp_path: Path) -> None:
    write_snapshot(tmp_path, [system_rows()])
    first, second = RowEncoder(1), RowEncoder(2)
    blocks = []
    for number in range(1, 30, 3):
        encoder, lsn = (first, number // 6 * 3 + 2) if number % 6 == 1 else (second, number // 6 * 3 + 1)
        blocks.append(
            [
                encoder.transaction(lsn + each, TIMESTAMP, (insertion(JOBS, number + each, "R"),))
                for each in range(3)
            ]
        )
    write_blocks(tmp_path / file_name(FileType.LOG, 1), FileType.LOG, blocks, 1)
    rows, damages, _, vclock = check_same(tmp_path, force=False)
    assert (rows["jobs"][1], damages, dict(vclock)) == (30, [], {1: 16, 2: 15})


def test_whole_blocks_of_a_log_are_applied(tmp_path: Path) -> None:
    """The compiled function does the work, but for the first block of a member."""
    write_snapshot(tmp_path, [system_rows()])
    blocks: list[Transactions] = [[[insertion(JOBS, 0, "R")]]]
    for number in range(1, 40):
        many = [insertion(JOBS, number * 10 + each, "R") for each in range(10)]
        assignment = [["=", "status", "taken for a while"]]
        blocks.append([*([each] for each in many), [update(JOBS, [number * 10], assignment)]])
        blocks.append(
            [[deletion(JOBS, number * 10 + 1), replacement(JOBS, number * 10 + 2, "T", {"a": 1.5})]]
        )
    write_log(tmp_path, 2, blocks)
    with patch.object(LogReplay, "_apply", autospec=True, side_effect=LogReplay._apply) as applied:
        box, _ = start(tmp_path)
    assert applied.call_count == 1
    assert len(box.space.jobs) == 1 + 39 * 9
    updated = box.space.jobs.get([50])
    assert updated is not None
    assert updated[1] == "taken for a while"
    check_same(tmp_path, force=False)


def test_only_rows_that_need_it_are_applied_one_by_one(tmp_path: Path) -> None:
    write_snapshot(tmp_path, [system_rows()])
    block: Transactions = [[insertion(JOBS, number, "R")] for number in range(50)]
    block[10] = [upsert(JOBS, [3, "U"], [["=", 1, "upserted"]])]
    block[20] = [insertion(JOBS, 20, "R", Decimal("1.5")), deletion(JOBS, 5)]
    block[30] = [insertion(NUMBERED, 1)]
    block[40] = [insertion(288, JOBS, 2, "third", "tree", {"unique": False}, [[1, "string"]])]
    write_log(tmp_path, 2, [[[insertion(JOBS, 1000, "first")]], block])
    with patch.object(LogReplay, "_apply", autospec=True, side_effect=LogReplay._apply) as applied:
        box, _ = start(tmp_path)
    rows = [(call.args[1][0], call.args[1][3]) for call in applied.call_args_list[1:]]
    assert rows == [
        (RowType.UPSERT, JOBS),
        (RowType.INSERT, JOBS),
        (RowType.INSERT, NUMBERED),
        (RowType.INSERT, 288),
    ]
    assert box.space.jobs.len() == 47
    assert len(box.space.jobs.index) == 3
    check_same(tmp_path, force=False)
