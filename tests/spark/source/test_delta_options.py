"""The option names of Delta's tables and change feeds, which mean what this source's options mean."""

from __future__ import annotations

import pytest

from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import Mode, ReadOptions

PLACE = {"path": "dir", "space": "s"}


@pytest.mark.parametrize(
    ("delta", "own"),
    [
        ({"versionAsOf": "17"}, {"mode": "at_lsn", "lsn": "17"}),
        ({"timestampAsOf": "2026-01-31T12:00:00Z"}, {"mode": "at_time", "time": "2026-01-31T12:00:00Z"}),
        ({"readChangeFeed": "true"}, {"mode": "changes"}),
        ({"readChangeFeed": "false"}, {}),
        (
            {"readChangeFeed": "true", "startingVersion": "5", "endingVersion": "9"},
            {"mode": "changes", "starting_lsn": "5", "ending_lsn": "9"},
        ),
        (
            {"readChangeFeed": "true", "startingTimestamp": "100", "endingTimestamp": "200.5"},
            {"mode": "changes", "starting_time": "100", "ending_time": "200.5"},
        ),
    ],
)
def test_names_of_batch_queries(delta: dict[str, str], own: dict[str, str]) -> None:
    assert ReadOptions.parse(PLACE | delta) == ReadOptions.parse(PLACE | own)


@pytest.mark.parametrize(
    ("delta", "own"),
    [
        ({"readChangeFeed": "true"}, {"starting": "snapshot"}),
        ({"readChangeFeed": "true", "startingVersion": "5"}, {"starting_lsn": "5"}),
        ({"readChangeFeed": "true", "startingVersion": "latest"}, {"starting": "latest"}),
        ({"readChangeFeed": "true", "startingTimestamp": "100"}, {"starting_time": "100"}),
        ({"readChangeFeed": "true", "starting": "earliest"}, {"starting": "earliest"}),
        ({"maxBytesPerTrigger": "64m"}, {"max_bytes_per_trigger": "64m"}),
    ],
)
def test_names_of_streams(delta: dict[str, str], own: dict[str, str]) -> None:
    """A change feed without a start begins with the rows of the newest snapshot."""
    assert ReadOptions.parse(PLACE | delta, streaming=True) == ReadOptions.parse(PLACE | own, streaming=True)


def test_a_name_may_repeat_an_option_but_not_contradict_it() -> None:
    given = {**PLACE, "mode": "changes", "readChangeFeed": "true"}
    assert ReadOptions.parse(given).mode is Mode.CHANGES
    with pytest.raises(SourceError, match='"readchangefeed" contradicts the option "mode"'):
        ReadOptions.parse({**given, "mode": "current"})
    with pytest.raises(SourceError, match='"versionasof" contradicts the option "lsn"'):
        ReadOptions.parse({**PLACE, "lsn": "1", "versionAsOf": "2"})


def test_wrong_values_are_errors() -> None:
    with pytest.raises(SourceError, match="\"readChangeFeed\" is 'yes', not true or false"):
        ReadOptions.parse({**PLACE, "readChangeFeed": "yes"})
    with pytest.raises(SourceError, match='"starting_lsn" is'):
        ReadOptions.parse({**PLACE, "readChangeFeed": "true", "startingVersion": "x"})
