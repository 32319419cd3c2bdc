"""The options of the data source: what they may be, and what is said about wrong ones."""

from __future__ import annotations

import pytest

from iproto_server.storage.vclock import VClock
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import Mode, ReadOptions, TuplesAs

PLACE = {"path": "dir", "space": "s"}


def test_only_a_path_and_a_space_are_needed() -> None:
    options = ReadOptions.parse(PLACE)
    assert (options.paths, options.space, options.mode) == (("dir",), "s", Mode.CURRENT)
    assert ReadOptions.parse({"paths": '["a", "b*"]', "mode": "changes"}).paths == ("a", "b*")


@pytest.mark.parametrize(
    ("given", "attribute", "value"),
    [
        ({"SPACE": "512"}, "space", 512),
        ({"mode": "SNAPSHOT"}, "mode", Mode.SNAPSHOT),
        ({"mode": "at_lsn", "lsn": "17"}, "lsn", 17),
        ({"mode": "at_lsn", "lsn": "{1: 10, 2: 7}"}, "lsn", VClock({1: 10, 2: 7})),
        ({"mode": "at_time", "time": "1700000000.5"}, "time", 1700000000.5),
        ({"mode": "at_time", "time": "2023-11-14T23:13:20+01:00"}, "time", 1700000000.0),
        ({"partition_bytes": "64m"}, "partition_bytes", 64 * 1024**2),
        ({"partition_bytes": "0"}, "partition_bytes", 0),
        ({"raw": "True"}, "raw", True),
        ({"mode": "changes"}, "tuples", TuplesAs.STRUCT),
        ({"mode": "changes", "tuples": "json"}, "tuples", TuplesAs.JSON),
    ],
)
def test_texts_become_values(given: dict[str, str], attribute: str, value: object) -> None:
    options = ReadOptions.parse(
        {**{name: text for name, text in PLACE.items() if name.upper() not in given}, **given}
    )
    assert getattr(options, attribute) == value


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {**PLACE, "starting": "latest", "starting_time": "1"},
            'the options "starting_time" and "starting": only one is allowed',
        ),
        (
            {**PLACE, "ending_time": "1"},
            'the option "ending_time" is for batch queries: a stream has no end',
        ),
        (
            {**PLACE, "tuples": "json", "schema_evolution": "fail"},
            'the option "schema_evolution" is for tuples=struct: JSON has all fields',
        ),
        (
            {**PLACE, "schema_evolution": "ask"},
            "the option \"schema_evolution\" is 'ask', not one of extra, fail, restart",
        ),
        ({**PLACE, "hold_path": ""}, 'the option "hold_path" is empty'),
    ],
)
def test_wrong_ones_of_streams_are_told_in_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SourceError) as error:
        ReadOptions.parse(given, streaming=True)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"space": "s"}, "there is no path: pass a file, directory or glob to load(PATH)"),
        ({"path": "dir"}, 'the option "space" is missing: the name or the id of a space'),
        ({**PLACE, "space": ""}, 'the option "space" is empty'),
        (
            {**PLACE, "mode": "x"},
            "the option \"mode\" is 'x', not one of snapshot, current, at_lsn, at_time, changes",
        ),
        ({**PLACE, "unsigned": "int"}, "the option \"unsigned\" is 'int', not one of decimal, bigint"),
        ({**PLACE, "damaged": "ignore"}, "the option \"damaged\" is 'ignore', not one of fail, skip"),
        ({**PLACE, "raw": "yes"}, "the option \"raw\" is 'yes', not true or false"),
        (
            {**PLACE, "partition_bytes": "-1"},
            "the option \"partition_bytes\" is '-1', not a number of bytes such as 64m",
        ),
        ({**PLACE, "mode": "at_lsn"}, 'the option "lsn" is missing'),
        ({**PLACE, "lsn": "1"}, 'the option "lsn" is for at_lsn only, not for current'),
        (
            {**PLACE, "mode": "at_lsn", "lsn": "one"},
            "the option \"lsn\" is 'one', neither a number nor a vector clock such as {1: 10, 2: 7}",
        ),
        ({**PLACE, "mode": "at_time"}, 'the option "time" is missing'),
        (
            {**PLACE, "mode": "at_time", "time": "2026-01-31T12:00:00"},
            "the option \"time\" is '2026-01-31T12:00:00' without a time zone: add Z or an offset",
        ),
        (
            {**PLACE, "mode": "at_time", "time": "noon"},
            "the option \"time\" is 'noon', neither seconds since 1970 "
            "nor a time such as 2026-01-31T12:00:00Z",
        ),
        (
            {"path": "dir", "mode": "changes", "tuples": "struct"},
            'tuples=struct is for the changes of one space: the option "space" is missing',
        ),
        ({**PLACE, "starting": "latest"}, 'the option "starting" is for streams only'),
        ({**PLACE, "starting_lsn": "1"}, 'the option "starting_lsn" is for changes only, not for current'),
        (
            {**PLACE, "mode": "changes", "starting_lsn": "1", "starting_time": "1"},
            'the options "starting_lsn" and "starting_time": only one is allowed',
        ),
        (
            {**PLACE, "mode": "changes", "ending_lsn": "1", "ending_time": "1"},
            'the options "ending_lsn" and "ending_time": only one is allowed',
        ),
        (
            {**PLACE, "mode": "changes", "ending_lsn": "x"},
            "the option \"ending_lsn\" is 'x', neither a number nor a vector clock such as {1: 10, 2: 7}",
        ),
        ({**PLACE, "schema_evolution": "fail"}, 'the option "schema_evolution" is for streams only'),
        ({**PLACE, "hold_path": "x"}, 'the option "hold_path" is for streams only'),
        ({**PLACE, "spcae": "s", "nodes": "1"}, 'there is no option "nodes", "spcae"'),
    ],
)
def test_wrong_ones_are_told_in_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(SourceError) as error:
        ReadOptions.parse(given)
    assert str(error.value) == sentence
