"""Streams and their transactions with asynctnt; Tarantool 2.6 has no streams."""

from __future__ import annotations

import asyncio

import pytest
from asynctnt.api import Isolation
from asynctnt.exceptions import ErrorCode, TarantoolDatabaseError

from tests.clients.drivers.connections import rows, with_asynctnt
from tests.clients.drivers.driver import Target

CONFLICT = "Transaction has been aborted by conflict"


class Abandoned(Exception):
    """Leaves a block of a test."""


async def test_a_block_that_ends_is_committed(our_server: Target, our_values: str) -> None:
    async with with_asynctnt(our_server) as connection:
        async with connection.stream() as stream:
            assert stream.stream_id > 0
            await stream.insert(our_values, [1, "a"])
            await stream.update(our_values, [1], [("=", "value", "b")])
            assert rows(await stream.select(our_values)) == [[1, "b"]]
            assert rows(await connection.select(our_values)) == []
        assert rows(await connection.select(our_values)) == [[1, "b"]]


async def test_a_block_that_raises_is_rolled_back(our_server: Target, our_values: str) -> None:
    async with with_asynctnt(our_server) as connection:
        await connection.insert(our_values, [1, "a"])
        with pytest.raises(Abandoned):
            async with connection.stream() as stream:
                await stream.delete(our_values, [1])
                await stream.upsert(our_values, [2, "b"], [("=", "value", "c")])
                raise Abandoned
        assert rows(await connection.select(our_values)) == [[1, "a"]]


async def test_a_statement_that_fails_leaves_the_transaction_as_it_was(
    our_server: Target, our_values: str
) -> None:
    async with with_asynctnt(our_server) as connection:
        async with connection.stream() as stream:
            await stream.insert(our_values, [1, "a"])
            with pytest.raises(TarantoolDatabaseError) as raised:
                await stream.insert(our_values, [1, "b"])
            assert raised.value.code == ErrorCode.ER_TUPLE_FOUND
        assert rows(await connection.select(our_values)) == [[1, "a"]]


@pytest.mark.parametrize("level", list(Isolation))
async def test_every_isolation_level_begins(our_server: Target, our_values: str, level: Isolation) -> None:
    async with with_asynctnt(our_server) as connection:
        stream = connection.stream()
        await stream.begin(level, tx_timeout=60)
        await stream.insert(our_values, [1, level.name])
        await stream.commit()
        assert rows(await connection.select(our_values)) == [[1, level.name]]


async def test_of_two_streams_that_read_and_write_the_same_the_second_fails(
    our_server: Target, our_values: str
) -> None:
    async with with_asynctnt(our_server) as connection:
        await connection.insert(our_values, [1, 10])
        first, second = connection.stream(), connection.stream()
        assert first.stream_id != second.stream_id
        for stream in (first, second):
            await stream.begin()
            [row] = await stream.select(our_values, [1])
            await stream.replace(our_values, [1, row["value"] + 1])
        await first.commit()
        with pytest.raises(TarantoolDatabaseError) as raised:
            await second.commit()
        assert (raised.value.code, raised.value.message) == (ErrorCode.ER_TRANSACTION_CONFLICT, CONFLICT)
        assert rows(await connection.select(our_values)) == [[1, 11]]
        async with second:
            await second.replace(our_values, [1, 12])
        assert rows(await connection.select(our_values)) == [[1, 12]]


async def test_who_tries_again_after_a_conflict_loses_nothing(our_server: Target, our_values: str) -> None:
    async def count_up(times: int) -> None:
        async with with_asynctnt(our_server) as connection:
            while times:
                try:
                    async with connection.stream() as stream:
                        [row] = await stream.select(our_values, [1])
                        await stream.replace(our_values, [1, row["value"] + 1])
                except TarantoolDatabaseError as error:
                    if error.code != ErrorCode.ER_TRANSACTION_CONFLICT:
                        raise
                else:
                    times -= 1

    async with with_asynctnt(our_server) as connection:
        await connection.insert(our_values, [1, 0])
        await asyncio.gather(*(count_up(10) for _ in range(5)))
        assert rows(await connection.select(our_values)) == [[1, 50]]


async def test_a_transaction_that_only_reads_goes_on_seeing_what_was_there(
    our_server: Target, our_values: str
) -> None:
    async with with_asynctnt(our_server) as connection:
        await connection.insert(our_values, [1, "old"])
        async with connection.stream() as stream:
            assert rows(await stream.select(our_values)) == [[1, "old"]]
            await connection.replace(our_values, [1, "new"])
            assert rows(await stream.select(our_values)) == [[1, "old"]]
            with pytest.raises(TarantoolDatabaseError) as raised:
                await stream.replace(our_values, [2, "too late"])
            assert (raised.value.code, raised.value.message) == (ErrorCode.ER_TRANSACTION_CONFLICT, CONFLICT)
        assert rows(await connection.select(our_values)) == [[1, "new"]]


async def test_streams_that_are_about_different_rows_go_side_by_side(
    our_server: Target, our_values: str
) -> None:
    async with with_asynctnt(our_server) as connection:

        async def fill(begin: int) -> None:
            async with connection.stream() as stream:
                for number in range(begin, begin + 20):
                    await stream.insert(our_values, [number, begin])
                    assert rows(await stream.select(our_values, [number])) == [[number, begin]]

        await asyncio.gather(*(fill(begin) for begin in range(0, 200, 20)))
        expected = [[number, number // 20 * 20] for number in range(200)]
        assert rows(await connection.select(our_values)) == expected


async def test_requests_of_a_stream_may_be_sent_at_once_and_are_done_in_their_order(
    our_server: Target, our_values: str
) -> None:
    async with with_asynctnt(our_server) as connection:
        stream = connection.stream()
        requests = [
            stream.begin(),
            *(stream.insert(our_values, [number, number]) for number in range(10)),
            stream.delete(our_values, [3]),
            stream.commit(),
        ]
        await asyncio.gather(*requests)
        assert [row["id"] for row in await connection.select(our_values)] == [0, 1, 2, 4, 5, 6, 7, 8, 9]


async def test_procedures_are_a_part_of_the_transaction(our_server: Target, our_values: str) -> None:
    async with with_asynctnt(our_server) as connection:
        stream = connection.stream()
        await stream.begin()
        answer = await stream.call(f"box.space.{our_values}:insert", [[1, "called"]])
        assert rows(answer) == [[1, "called"]]
        assert (await connection.call(f"box.space.{our_values}:len")).body == [0]
        await stream.rollback()
        assert rows(await connection.select(our_values)) == []


@pytest.mark.parametrize(("end", "expected"), [("box.commit", [[1, "a"]]), ("box.rollback", [])])
async def test_a_transaction_begins_and_ends_by_call_too(
    our_server: Target, our_values: str, end: str, expected: list[object]
) -> None:
    async with with_asynctnt(our_server) as connection:
        stream = connection.stream()
        await stream.call("box.begin", [{"txn_isolation": "best-effort", "timeout": 60}])
        await stream.insert(our_values, [1, "a"])
        assert rows(await connection.select(our_values)) == []
        assert (await stream.call(end)).body == []
        assert rows(await connection.select(our_values)) == expected


async def test_a_procedure_that_waits_holds_its_stream_and_no_other(our_server: Target) -> None:
    async with with_asynctnt(our_server) as connection:
        first, second = connection.stream(), connection.stream()
        waiting = first.call("features.wait", ["stream"])
        behind = first.call("features.echo", ["behind"])
        assert (await second.call("features.echo", ["beside"])).body == ["beside"]
        assert not waiting.done()
        assert not behind.done()
        await connection.call("features.open", ["stream"])
        assert [answer.body for answer in await asyncio.gather(waiting, behind)] == [["open"], ["behind"]]


async def test_a_procedure_that_waits_is_refused_in_a_transaction_which_goes_on(
    our_server: Target, our_values: str
) -> None:
    async with with_asynctnt(our_server) as connection:
        await connection.call("box.space.queue:truncate")
        async with connection.stream() as stream:
            await stream.insert(our_values, [1, "a"])
            for procedure, arguments, what in (
                ("features.wait", ["never"], "async procedures"),
                ("queue.take", [10], "calls that wait"),
            ):
                with pytest.raises(TarantoolDatabaseError) as raised:
                    await stream.call(procedure, arguments)
                assert (raised.value.code, raised.value.message) == (
                    ErrorCode.ER_UNSUPPORTED,
                    f"An interactive transaction does not support {what}",
                )
        assert rows(await connection.select(our_values)) == [[1, "a"]]


async def test_a_transaction_that_takes_too_long_is_undone_and_its_commit_tells(
    our_server: Target, our_values: str
) -> None:
    async with with_asynctnt(our_server) as connection:
        stream = connection.stream()
        await stream.begin(tx_timeout=0.01)
        await stream.insert(our_values, [1, "a"])
        with pytest.raises(TarantoolDatabaseError) as raised:
            while True:  # until the time is over
                await stream.select(our_values)
        failure = (ErrorCode.ER_TRANSACTION_TIMEOUT, "Transaction has been aborted by timeout")
        assert (raised.value.code, raised.value.message) == failure
        with pytest.raises(TarantoolDatabaseError) as raised:
            await stream.commit()
        assert (raised.value.code, raised.value.message) == failure
        assert rows(await connection.select(our_values)) == []


async def test_the_end_of_the_connection_is_a_rollback(our_server: Target, our_values: str) -> None:
    async with with_asynctnt(our_server) as witness:
        async with with_asynctnt(our_server) as connection:
            stream = connection.stream()
            await stream.begin()
            await stream.insert(our_values, [1, "a"])
        await witness.insert(our_values, [1, "b"])
        assert rows(await witness.select(our_values)) == [[1, "b"]]


async def test_what_a_user_may_not_do_it_may_not_do_in_a_stream(our_server: Target, our_values: str) -> None:
    async with with_asynctnt(our_server) as connection:
        await connection.call("box.schema.user.create", ["stranger", {"if_not_exists": True}])
        stream = connection.stream()
        await stream.begin()
        await connection.call("box.session.su", ["stranger"])
        with pytest.raises(TarantoolDatabaseError) as raised:
            await stream.insert(our_values, [1, "a"])
        assert (raised.value.code, raised.value.message) == (
            ErrorCode.ER_ACCESS_DENIED,
            f"Write access to space '{our_values}' is denied for user 'stranger'",
        )
        await stream.rollback()


async def test_begin_commit_and_rollback_need_a_stream(our_server: Target) -> None:
    async with with_asynctnt(our_server) as connection:
        for request, name in (
            (connection.begin, "BEGIN"),
            (connection.commit, "COMMIT"),
            (connection.rollback, "ROLLBACK"),
        ):
            with pytest.raises(TarantoolDatabaseError) as raised:
                await request()
            assert raised.value.code == 230
            assert raised.value.message == f"Unable to process {name} request out of stream"


async def test_there_is_one_transaction_at_a_time_in_a_stream(our_server: Target) -> None:
    async with with_asynctnt(our_server) as connection, connection.stream() as stream:
        with pytest.raises(TarantoolDatabaseError) as raised:
            await stream.begin()
        assert raised.value.code == ErrorCode.ER_ACTIVE_TRANSACTION


async def test_a_time_that_is_none_begins_nothing(our_server: Target, our_values: str) -> None:
    async with with_asynctnt(our_server) as connection:
        stream = connection.stream()
        with pytest.raises(TarantoolDatabaseError) as raised:
            await stream.begin(tx_timeout=-1)
        assert (raised.value.code, raised.value.message) == (
            ErrorCode.ER_ILLEGAL_PARAMS,
            "timeout must be a number greater than 0",
        )
        await stream.insert(our_values, [1, "a"])
        assert rows(await connection.select(our_values)) == [[1, "a"]]
