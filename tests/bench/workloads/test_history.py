"""The files that benchmarks of Spark read."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.workloads.history import SPACE, History, HistoryWriter
from bench.workloads.special_logs import TRANSACTION_ROWS, LogKind, write_special_logs
from iproto_server.codec.msgpack import unpack
from iproto_server.storage.snapshot import read_snapshot
from iproto_server.storage.xlog import Row, RowType, XlogReader

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> HistoryWriter:
    return HistoryWriter(tmp_path_factory.mktemp("history") / "template")


def snapshot_of(history: History) -> list[list[object]]:
    """The tasks."""
    (path,) = history.directory.glob("*.snap")
    with XlogReader.open(path) as reader:
        return [unpack(raw) for block in read_snapshot(reader) for space, raw in block if space == SPACE]


def transactions_of(history: History) -> list[list[Row]]:
    """The rows of the logs, whose LSNs follow each other."""
    found: list[list[Row]] = []
    for path in sorted(history.directory.glob("*.xlog")):
        with XlogReader.open(path) as reader:
            lsn = reader.header.vclock.get(1, 0)
            for rows in reader.transactions():
                assert [row.lsn for row in rows] == list(range(lsn + 1, lsn + 1 + len(rows)))
                assert {row.space_id for row in rows} == {SPACE}
                lsn += len(rows)
                found.append(rows)
    return found


def replayed(history: History) -> dict[object, list[object]]:
    """The tasks after the changes, which fit: there is a task to take and to acknowledge."""
    tasks = {task[0]: task for task in snapshot_of(history)}
    for row in (row for rows in transactions_of(history) for row in rows):
        if row.type == RowType.DELETE:
            assert row.key_raw is not None
            assert tasks.pop(unpack(row.key_raw)[0])[1] == "T"
            continue
        assert row.tuple_raw is not None
        task = unpack(row.tuple_raw)
        if row.type == RowType.UPSERT:
            assert row.operations_raw is not None
            assert unpack(row.operations_raw) == [["+", 2, 1]]
            count = tasks.setdefault(task[0], [*task[:2], -1, task[3]])[2]
            assert isinstance(count, int)
            tasks[task[0]][2] = count + 1
            continue
        before = tasks.get(task[0])
        if row.type == RowType.REPLACE:
            assert before == [task[0], "R", *task[2:]]
            assert task[1] == "T"
        else:
            assert (row.type, before, task[1]) == (RowType.INSERT, None, "R")
        tasks[task[0]] = task
    return tasks


@pytest.mark.parametrize(
    ("standing", "added", "done"),
    [(0, 0, 0), (5000, 0, 0), (0, 5000, 2750), (5000, 500, 500), (300, 200, 400)],
)
def test_puts_takes_and_acknowledgements(
    writer: HistoryWriter, tmp_path: Path, standing: int, added: int, done: int
) -> None:
    history = writer.write(tmp_path / "files", standing, added, done)
    tasks = snapshot_of(history)
    assert len(tasks) == history.snapshot_rows == standing
    transactions = transactions_of(history)
    assert history.log_rows == len(transactions) == added + 2 * done
    remaining = replayed(history)
    assert len(remaining) == history.standing == standing + added - done
    ids = [task_id for task_id in remaining if isinstance(task_id, int)]
    assert len(ids) == len(remaining)
    assert ids == sorted(ids)
    assert all(
        isinstance(data, str) and len(data) == 100 and status == "R" and at == 0
        for _, status, at, data in remaining.values()
    )
    assert len({task[3] for task in tasks}) == standing


def test_the_rows_that_a_mode_reads(writer: HistoryWriter, tmp_path: Path) -> None:
    history = writer.write(tmp_path / "files", 100, 20, 10)
    assert [history.rows_read(mode) for mode in ("snapshot", "changes", "current")] == [100, 40, 140]


@pytest.mark.parametrize("kind", LogKind)
def test_special_logs(writer: HistoryWriter, tmp_path: Path, kind: LogKind) -> None:
    history = write_special_logs(writer, kind, tmp_path / "files", 10_000)
    transactions = transactions_of(history)
    assert 9_997 <= history.log_rows == sum(map(len, transactions)) <= 10_000
    remaining = replayed(history)
    assert len(remaining) == history.standing
    if kind is LogKind.TRANSACTIONS:
        assert [len(rows) for rows in transactions[:-1]] == [TRANSACTION_ROWS] * (len(transactions) - 1)
    else:
        assert {len(rows) for rows in transactions} == {1}
    if kind is LogKind.UPSERTS:
        # The first one of a task that is not in the snapshot inserts it.
        assert sorted({task[2] for task in remaining.values()}, key=str) == [10, 9]
        assert {row.type for (row,) in transactions} == {RowType.UPSERT}
