"""Changes between two LSNs or two times, both included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_tarantool.source.errors import SourceError
from tests.spark.source.chronicle import START, STEP, Chronicle
from tests.spark.source.reading import Read


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Ten rows, two in each log, and two in each transaction."""
    database = Chronicle(tmp_path)
    database.snapshot()
    for number in range(0, 10, 2):
        database.commit(database.insert(number, "a", 0), database.insert(number + 1, "a", 0))
        database.rotate()
    return tmp_path


def lsns(directory: Path, **options: Any) -> list[int]:
    """The LSNs of the changes that a query has."""
    found: list[int] = Read(directory, mode="changes", space="t", **options).column("lsn")
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"starting_lsn": 4}, range(4, 11)),
        ({"ending_lsn": 4}, range(1, 5)),
        ({"starting_lsn": 4, "ending_lsn": 7}, range(4, 8)),
        ({"starting_lsn": 7, "ending_lsn": 4}, []),
        ({"starting_lsn": 11}, []),
        ({"starting_lsn": "{1: 9}"}, range(9, 11)),
        ({"ending_lsn": "{1: 2}"}, range(1, 3)),
        ({"ending_lsn": 2**63 + 5}, range(1, 11)),
        ({"starting_time": START + 2 * STEP}, range(3, 11)),
        ({"starting_time": START + 2 * STEP + 1}, range(5, 11)),
        ({"ending_time": START + 2 * STEP}, range(1, 5)),
        ({"starting_time": START + 2 * STEP, "ending_time": START + 3 * STEP}, range(3, 7)),
        ({"starting_lsn": 4, "ending_time": START + 3 * STEP}, range(4, 7)),
        ({"starting_time": START + 100 * STEP}, []),
        ({"readChangeFeed": "true", "startingVersion": 4, "endingVersion": 7}, range(4, 8)),
    ],
)
def test_the_rows_of_both_ends_are_included(
    directory: Path, options: dict[str, Any], expected: range
) -> None:
    assert lsns(directory, **options) == list(expected)


def test_logs_outside_the_range_are_not_opened(directory: Path) -> None:
    """Their clocks tell."""
    read = Read(directory, mode="changes", space="t", starting_lsn=5, ending_lsn=6)
    assert read.partitions == 1


def test_a_number_says_too_little_of_several_members(tmp_path: Path) -> None:
    """A vector clock has a number for each; a member that is not in it has written nothing that is wanted."""
    database = Chronicle(tmp_path)
    database.snapshot()
    database.commit(database.insert(1, "a", 0), member=1)
    database.rotate()
    database.commit(database.insert(2, "a", 0), member=2)
    database.rotate()
    database.commit(database.insert(3, "a", 0), member=1)
    for option in ("starting_lsn", "ending_lsn"):
        with pytest.raises(
            SourceError, match=f'"{option}" is a number, but the members 1 and 2 have written'
        ):
            lsns(tmp_path, **{option: 1})
    read = Read(tmp_path, mode="changes", space="t", starting_lsn="{1: 2, 2: 1}")
    assert read.column("replica_id") == [2, 1]
    assert lsns(tmp_path, ending_lsn="{1: 2}") == [1, 2]


def test_a_member_that_only_the_newest_log_has_is_noticed(tmp_path: Path) -> None:
    """The headers of the logs do not name it."""
    database = Chronicle(tmp_path)
    database.snapshot()
    database.commit(database.insert(1, "a", 0), member=1)
    database.rotate()
    database.commit(database.insert(2, "a", 0), member=2)
    with pytest.raises(SourceError, match="the members 1 and 2 have written"):
        lsns(tmp_path, starting_lsn=1)


def test_changes_that_are_gone_are_an_error(tmp_path: Path) -> None:
    """The logs begin later, and not with the first row."""
    database = Chronicle(tmp_path, clock={1: 5})
    database.snapshot()
    database.commit(database.insert(1, "a", 0))
    with pytest.raises(SourceError, match=r"are not all there: the oldest log begins with \{1: 5\}"):
        lsns(tmp_path, starting_time=START)
    assert lsns(tmp_path, starting_time=START + STEP) == [6]
