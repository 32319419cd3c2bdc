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
        ({"starting_lsn": 11}, []),
        ({"starting_lsn": "{1: 9}"}, range(9, 11)),
        ({"ending_lsn": "{1: 2}"}, range(1, 3)),
        ({"ending_lsn": 10}, range(1, 11)),
        ({"starting_lsn": "{1: 11}"}, []),
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


@pytest.mark.parametrize(
    "options",
    [
        {"starting_lsn": 12},
        {"starting_lsn": "{1: 12}"},
        {"starting_lsn": "{1: 3, 2: 5}"},
        {"ending_lsn": 11},
        {"ending_lsn": 2**63 + 5},
        {"ending_lsn": "{1: 4, 2: 1}"},
        {"starting_time": 9_999_999_999},
        {"ending_time": 9_999_999_999},
        {"starting_lsn": 4, "ending_time": 99_999_999_999},
        {"readChangeFeed": "true", "startingVersion": 4, "endingVersion": 70},
    ],
)
def test_positions_in_the_future_are_errors(directory: Path, options: dict[str, Any]) -> None:
    """There is no answer about them yet; the next LSN may be a start, of which nothing is there so far."""
    with pytest.raises(SourceError, match="in the future"):
        lsns(directory, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"starting_lsn": 7, "ending_lsn": 4},
        {"starting_lsn": 5, "ending_lsn": 4},
        {"starting_lsn": "{1: 3, 2: 5}", "ending_lsn": "{1: 7, 2: 4}"},
        {"starting_time": START + 2, "ending_time": START + 1},
    ],
)
def test_a_range_that_ends_before_it_begins_is_an_error(directory: Path, options: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match=r'"starting_\w+" is .*"ending_'):
        lsns(directory, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "at_lsn", "lsn": 11},
        {"mode": "at_lsn", "lsn": "{1: 11}"},
        {"mode": "at_lsn", "lsn": "{1: 4, 3: 1}"},
        {"mode": "at_lsn", "lsn": "{0: 2, 1: 5}"},
        {"mode": "at_time", "time": 9_999_999_999},
        {"versionAsOf": 1000},
    ],
)
def test_states_of_the_future_are_errors(directory: Path, options: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match="in the future"):
        Read(directory, space="t", **options)


def test_the_newest_state_is_not_in_the_future(directory: Path) -> None:
    newest: tuple[dict[str, Any], ...] = (
        {"mode": "at_lsn", "lsn": 10},
        {"mode": "at_time", "time": START + 1000 * STEP},
    )
    for options in newest:
        assert len(Read(directory, space="t", **options).rows) == 10


def test_a_server_whose_clock_is_ahead(directory: Path) -> None:
    """Its rows were logged at times that have passed by its own clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: START - 1000)
        assert lsns(directory, starting_time=START + 4 * STEP) == [7, 8, 9, 10]
        with pytest.raises(SourceError, match="in the future"):
            lsns(directory, ending_time=START + 100 * STEP)


def test_an_lsn_in_a_damaged_log_is_not_in_the_future(directory: Path) -> None:
    """Rows may be missing where it is damaged; whoever reads them says so."""
    newest = sorted(directory.glob("*.xlog"))[-1]
    content = bytearray(newest.read_bytes())
    content[-30:-20] = bytes(10)
    newest.write_bytes(content)
    assert len(Read(directory, mode="changes", space="t", ending_lsn=10, damaged="skip").rows) < 10
