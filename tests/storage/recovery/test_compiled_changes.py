"""Logs are loaded as by one row at a time, whatever their blocks hold."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import file_name
from iproto_server.storage.recovery.log_replay import LogReplay
from iproto_server.storage.xlog import FileType, RowEncoder, RowType, delete_body
from tests.plugins.profiles import examples
from tests.storage.databases import JOBS, start
from tests.storage.files import TIMESTAMP, Request, deletion, insertion, replacement, update, upsert
from tests.storage.recovery.blocks import (
    HASHED,
    MANY,
    NUMBERED,
    anything,
    check_same,
    system_rows,
    values,
    write_blocks,
    write_snapshot,
)


@pytest.fixture(autouse=True)
def no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "iproto_server")


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
