"""Decimals, UUIDs, datetimes and intervals in the client libraries.

A Tarantool of the 2.6 line knows decimals and UUIDs only.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import asynctnt
import msgpack
import pytest
import tarantool
from asynctnt.exceptions import TarantoolDatabaseError
from asynctnt.iproto.protocol import Adjust
from tarantool import Datetime, Interval, IntervalAdjust

from tests.clients.conftest import new_space
from tests.clients.drivers.connections import rows, with_asynctnt, with_python
from tests.clients.drivers.driver import ClientError, Target

Values = list[object]

NUMBERS = [
    *("0", "-0", "1", "-1", "42", "-12.345", "0.000", "100", "1e33", "-1.2345e33", "1e-38", "-9e-38"),
    *("9" * 38, "-" + "9" * 38, "0." + "1" * 38, "1234567890123456789.0987654321987654321"),
]
DECIMALS: Values = [Decimal(text) for text in NUMBERS]
UUIDS: Values = [
    UUID(int=0),
    UUID("ffffffff-ffff-ffff-bfff-ffffffffffff"),
    UUID("f6423bdf-b49e-4913-b361-0740c9702e4b"),
]
DATETIMES: Values = [
    Datetime(timestamp=0),
    Datetime(timestamp=0, nsec=1),
    Datetime(year=2022, month=8, day=31, hour=18, minute=7, sec=54, nsec=308543321),
    Datetime(year=1700, month=1, day=1),
    Datetime(year=1900, month=1, day=1, nsec=999_999_999),
    Datetime(year=2022, month=8, day=31, tzoffset=180),
    Datetime(year=2022, month=8, day=31, tzoffset=-450),
    Datetime(year=2022, month=8, day=31, hour=18, tz="Europe/Moscow"),
    Datetime(year=2022, month=1, day=1, tz="America/St_Johns"),
]
INTERVALS: Values = [
    Interval(),
    Interval(year=1, month=2, week=3, day=4, hour=5, minute=6, sec=7, nsec=8, adjust=IntervalAdjust.LAST),
    Interval(year=-1, month=-2, day=-100_000, adjust=IntervalAdjust.EXCESS),
    Interval(sec=2**31 - 1, nsec=-(2**31 - 1)),
]
PYTHON_DATETIMES: Values = [
    datetime(2000, 1, 1, 2, 17, 43, 230000, tzinfo=timezone(timedelta(hours=-8))),
    datetime(1004, 1, 1, 2, 17, 43, 250000, tzinfo=timezone(timedelta(hours=4))),
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=5, minutes=45))),
]
MP_INTERVALS: Values = [
    asynctnt.MPInterval(),
    asynctnt.MPInterval(year=1, month=2, week=3, day=4, hour=5, min=6, sec=7, nsec=8, adjust=Adjust.LAST),
    asynctnt.MPInterval(year=-1, sec=-(2**31), nsec=2**31 - 1, adjust=Adjust.EXCESS),
]


def come_back_to_python(target: Target, space: str, values: Values) -> None:
    """Store and read every value, alone and inside others, and return it from a procedure."""
    with with_python(target) as connection:
        for number, value in enumerate(values):
            for stored in (value, [value], {"key": value}):
                answers = [
                    connection.replace(space, [number, stored])[0][1],
                    connection.select(space, number)[0][1],
                    connection.call("features.echo", [stored])[0],
                ]
                assert answers == [stored] * 3


async def come_back_to_asynctnt(target: Target, space: str, values: Values) -> None:
    """Do the same with asynctnt."""
    async with with_asynctnt(target) as connection:
        for number, value in enumerate(values):
            for stored in (value, [value], {"key": value}):
                assert rows(await connection.replace(space, [number, stored])) == [[number, stored]]
                assert rows(await connection.select(space, [number])) == [[number, stored]]
                assert (await connection.call("features.echo", [stored])).body == [stored]


def test_decimals_and_uuids_come_back_to_tarantool_python(target: Target, values: str) -> None:
    come_back_to_python(target, values, DECIMALS + UUIDS)


def test_datetimes_and_intervals_come_back_to_tarantool_python(our_server: Target, our_values: str) -> None:
    come_back_to_python(our_server, our_values, DATETIMES + INTERVALS)


async def test_decimals_and_uuids_come_back_to_asynctnt(target: Target, values: str) -> None:
    await come_back_to_asynctnt(target, values, DECIMALS + UUIDS)


async def test_datetimes_and_intervals_come_back_to_asynctnt(our_server: Target, our_values: str) -> None:
    await come_back_to_asynctnt(our_server, our_values, PYTHON_DATETIMES + MP_INTERVALS)


@pytest.mark.parametrize("value", DATETIMES, ids=str)
def test_a_datetime_keeps_its_zone_and_its_nanoseconds(
    our_server: Target, our_values: str, value: Datetime
) -> None:
    with with_python(our_server) as connection:
        stored = connection.insert(our_values, [1, value])[0][1]
        assert (stored.timestamp, stored.nsec) == (value.timestamp, value.nsec)
        assert (stored.tzoffset, stored.tz) == (value.tzoffset, value.tz)


async def test_one_library_reads_what_the_other_wrote(our_server: Target, our_values: str) -> None:
    with with_python(our_server) as connection:
        connection.insert(our_values, [1, Decimal("1.50")])
        connection.insert(our_values, [2, UUID(int=7)])
        connection.insert(our_values, [3, Datetime(year=2022, month=8, day=31, nsec=1500, tzoffset=60)])
        connection.insert(our_values, [4, Interval(month=-1, nsec=3)])
    async with with_asynctnt(our_server) as reader:
        assert [row["value"] for row in await reader.select(our_values)] == [
            Decimal("1.50"),
            UUID(int=7),
            datetime(2022, 8, 31, 0, 0, 0, 1, tzinfo=timezone(timedelta(hours=1))),
            asynctnt.MPInterval(month=-1, nsec=3),
        ]


def test_arithmetic_goes_on_after_a_round_trip(our_server: Target, our_values: str) -> None:
    january = Datetime(year=2024, month=1, day=31, hour=12, tz="Europe/Berlin")
    month = Interval(month=1, adjust=IntervalAdjust.LAST)
    with with_python(our_server) as connection:
        connection.insert(our_values, [1, january])
        connection.insert(our_values, [2, month])
        stored, span = (row[1] for row in connection.select(our_values))
    assert stored + span == Datetime(year=2024, month=2, day=29, hour=12, tz="Europe/Berlin")
    assert stored - (stored - Interval(hour=5)) == Interval(hour=5)
    assert span + span == Interval(month=2, adjust=IntervalAdjust.LAST)


def test_decimals_are_added_and_subtracted_exactly_or_not_at_all(target: Target, values: str) -> None:
    with with_python(target) as connection:
        connection.insert(values, [1, Decimal("0.1")])
        assert connection.update(values, 1, [("+", 1, Decimal("0.2"))])[0] == [1, Decimal("0.3")]
        assert connection.update(values, 1, [("-", 1, Decimal("9" * 37))])[0] == [
            1,
            Decimal("-9999999999999999999999999999999999998.7"),
        ]
        with pytest.raises(tarantool.DatabaseError) as raised:
            connection.update(values, 1, [("-", 1, Decimal("9" * 38))])
        assert raised.value.args == (160, "Decimal overflow when performing operation '-' on field 2")


def keys_are_in_their_order(target: Target, field_type: str, keys: Values) -> None:
    """Keys in ascending order are stored, found and iterated."""
    with new_space(target, field_type, [["key", field_type]]) as space, with_python(target) as connection:
        for key in reversed(keys):
            connection.insert(space, [key])
            with pytest.raises(tarantool.DatabaseError) as raised:
                connection.insert(space, [key])
            assert raised.value.code == 3
        middle = len(keys) // 2
        assert list(connection.select(space)) == [[key] for key in keys]
        assert list(connection.select(space, keys[middle])) == [[keys[middle]]]
        after = connection.select(space, keys[middle], iterator=tarantool.const.ITERATOR_GT)
        assert list(after) == [[key] for key in keys[middle + 1 :]]
        assert list(connection.delete(space, keys[middle])) == [[keys[middle]]]
        assert list(connection.select(space, keys[middle])) == []


def test_decimals_and_uuids_are_keys(target: Target) -> None:
    keys_are_in_their_order(target, "decimal", [Decimal(key) for key in ("-1e37", "-1", "0", "1e-38", "0.5")])
    keys_are_in_their_order(target, "uuid", [UUID(int=key << 96) for key in range(5)])


def test_datetimes_are_keys_whose_zone_does_not_count(our_server: Target) -> None:
    moments = [(0, 0), (2, 60), (1, -60), (17, 840), (2, -120)]
    keys: Values = [Datetime(year=2022, month=1, day=1, hour=hour, tzoffset=zone) for hour, zone in moments]
    keys_are_in_their_order(our_server, "datetime", keys)
    with (
        new_space(our_server, "zones", [["key", "datetime"]]) as space,
        with_python(our_server) as connection,
    ):
        connection.insert(space, [Datetime(year=2022, month=1, day=1, hour=12, tz="Europe/Moscow")])
        assert len(connection.select(space, Datetime(year=2022, month=1, day=1, hour=9))) == 1


def test_intervals_are_no_keys(our_server: Target) -> None:
    with pytest.raises(ClientError) as raised, new_space(our_server, "intervals", [["key", "interval"]]):
        pass
    assert raised.value.code == 14
    assert raised.value.message.endswith("field type 'interval' is not supported")


@pytest.mark.parametrize(
    ("field_type", "right", "extension"),
    [("decimal", Decimal(1), 1), ("uuid", UUID(int=1), 2), ("datetime", Datetime(timestamp=1), 4)],
)
def test_a_field_of_such_a_type_takes_nothing_else(
    our_server: Target, field_type: str, right: object, extension: int
) -> None:
    text = f"Tuple field 1 type does not match one required by operation: expected {field_type}"
    wrong: Values = [1, 1.5, "1", None, True, b"1", Interval(year=1)]
    with new_space(our_server, field_type, [["key", field_type]]) as space:
        with with_python(our_server) as connection:
            for value in wrong:
                with pytest.raises(tarantool.DatabaseError) as raised:
                    connection.insert(space, [value])
                assert raised.value.args == (23, text)
            assert connection.insert(space, [right])[0] == [right]
        with with_python(our_server, packer_factory=lambda _: msgpack.Packer()) as connection:
            with pytest.raises(tarantool.DatabaseError) as raised:
                connection.insert(space, [msgpack.ExtType(extension, b"\xff")])
            assert raised.value.args == (23, text)


@pytest.mark.parametrize("value", [Decimal("1e38"), Decimal("-1e38"), Decimal("1e-39")], ids=str)
async def test_what_no_decimal_of_tarantool_s_holds_is_refused_or_rounded_by_the_libraries(
    our_server: Target, our_values: str, value: Decimal
) -> None:
    with with_python(our_server) as connection:
        if abs(value) > 1:
            with pytest.raises(tarantool.error.MsgpackError, match="maximum of 38 digits"):
                connection.insert(our_values, [1, value])
        else:
            with pytest.warns(tarantool.error.MsgpackWarning, match="loss of precision"):
                assert connection.insert(our_values, [1, value])[0] == [1, 0]
    async with with_asynctnt(our_server) as asyncio_connection:
        # asynctnt does not validate it
        await asyncio_connection.replace(our_values, [1, value])
        assert rows(await asyncio_connection.select(our_values)) == [[1, value]]
        with pytest.raises(TarantoolDatabaseError) as raised:
            await asyncio_connection.update(our_values, [1], [("+", "value", 1)])
        assert raised.value.code == 26


async def test_a_moment_in_utc_comes_back_to_asynctnt_in_the_machine_s_own_time(
    our_server: Target, our_values: str
) -> None:
    async with with_asynctnt(our_server) as connection:
        await connection.insert(our_values, [1, datetime(2022, 8, 31, 12, tzinfo=UTC)])
        [row] = await connection.select(our_values)
        assert row["value"].tzinfo is None
        assert row["value"].astimezone(UTC) == datetime(2022, 8, 31, 12, tzinfo=UTC)
