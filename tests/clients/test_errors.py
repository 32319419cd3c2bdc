"""Errors in the client libraries: code, text, cause, details; and errors as values."""

from __future__ import annotations

from typing import Any

import pytest
import tarantool
from asynctnt import IProtoError
from asynctnt.exceptions import ErrorCode, TarantoolDatabaseError, TarantoolSchemaError
from tarantool import BoxError

from tests.clients.conftest import create_space
from tests.clients.drivers.bridge import NetBox
from tests.clients.drivers.connections import with_asynctnt, with_python
from tests.clients.drivers.driver import ClientError, Target
from tests.clients.drivers.tarantool_python import TarantoolPython

OURSELVES = "iproto_server"
STORED = BoxError(
    type="CustomError",
    file="cheese.lua",
    line=3,
    message="out of cheese",
    errno=2,
    errcode=1000,
    fields={"custom_type": "CheeseError", "shelves": [1, 2]},
    prev=BoxError(type="SystemError", file="disk.c", line=0, message="no space", errno=28, errcode=115),
)


def error_of(target: Target, procedure: str, *arguments: object, **options: Any) -> tarantool.DatabaseError:
    """What tarantool-python raises for a call."""
    with with_python(target, **options) as connection:
        with pytest.raises(tarantool.DatabaseError) as raised:
            connection.call(procedure, arguments)
        assert connection.ping() > 0
    return raised.value


async def asynctnt_error_of(target: Target, procedure: str, *arguments: object) -> TarantoolDatabaseError:
    """What asynctnt raises for a call."""
    async with with_asynctnt(target) as connection:
        with pytest.raises(TarantoolDatabaseError) as raised:
            await connection.call(procedure, list(arguments))
        await connection.ping()
    return raised.value


class TestTarantoolPython:
    def test_has_number_and_text(self, target: Target) -> None:
        error = error_of(target, "features.raise_text", "no 100 % sure")
        assert (error.code, error.message) == (32, "no 100 % sure")
        assert error.extra_info.type == "LuajitError"
        assert error.extra_info.prev is None

    def test_has_the_error_that_was_the_cause(self, target: Target) -> None:
        error = error_of(target, "features.fail_for_a_reason")
        assert error.args == (1000, "it cannot be stored")
        newest = error.extra_info
        assert (newest.type, newest.errcode, newest.message) == ("ClientError", 1000, "it cannot be stored")
        cause = newest.prev
        assert (cause.type, cause.errcode, cause.message) == ("ClientError", 1001, "the disk is full")
        assert cause.prev is None

    def test_has_a_type_of_the_application_s_own(self, target: Target) -> None:
        details = error_of(target, "features.fail_with_own_type").extra_info
        assert (details.type, details.fields) == ("CustomError", {"custom_type": "CheeseError"})

    def test_has_what_was_denied_to_whom(self, target: Target) -> None:
        admin = TarantoolPython(target)
        admin.call("box.schema.user.create", "errors_mallory", {"password": "p"})
        try:
            error = error_of(target, "features.echo", user="errors_mallory", password="p")
        finally:
            admin.call("box.schema.user.drop", "errors_mallory")
            admin.close()
        assert error.args == (
            42,
            "Execute access to function 'features.echo' is denied for user 'errors_mallory'",
        )
        assert error.extra_info.type == "AccessDeniedError"
        assert error.extra_info.fields == {
            "object_type": "function",
            "object_name": "features.echo",
            "access_type": "Execute",
        }

    def test_has_bytes_for_texts_without_an_encoding(self, target: Target) -> None:
        error = error_of(target, "features.raise_text", b"bytes", encoding=None)
        assert error.args == (32, b"bytes")
        assert error.extra_info.type == b"LuajitError"

    def test_belongs_to_a_class_of_the_database_interface(self, target: Target) -> None:
        with with_python(target) as connection:
            with pytest.raises(tarantool.SchemaError) as schema:
                connection.select("no such space", [])
            assert isinstance(schema.value, connection.DatabaseError)
            with pytest.raises(connection.DatabaseError):
                connection.call("no.such.procedure")


class TestAsynctnt:
    async def test_has_number_and_text(self, target: Target) -> None:
        error = await asynctnt_error_of(target, "features.raise_text", "no 100 % sure")
        assert (error.code, error.message) == (ErrorCode.ER_PROC_LUA, "no 100 % sure")
        [frame] = error.error.trace
        assert (frame.error_type, frame.code, frame.message) == ("LuajitError", 32, "no 100 % sure")

    async def test_has_the_error_that_was_the_cause(self, target: Target) -> None:
        error = await asynctnt_error_of(target, "features.fail_for_a_reason")
        assert [(frame.code, frame.message) for frame in error.error.trace] == [
            (1000, "it cannot be stored"),
            (1001, "the disk is full"),
        ]

    async def test_has_a_type_of_the_application_s_own(self, target: Target) -> None:
        error = await asynctnt_error_of(target, "features.fail_with_own_type")
        [frame] = error.error.trace
        assert (frame.error_type, frame.fields) == ("CustomError", {"custom_type": "CheeseError"})

    async def test_refuses_itself_what_the_schema_does_not_have(self, target: Target, values: str) -> None:
        async with with_asynctnt(target) as connection:
            with pytest.raises(TarantoolSchemaError, match="Space nowhere not found"):
                await connection.insert("nowhere", [1])
            with pytest.raises(TarantoolSchemaError, match="Index nothing not found"):
                await connection.select(values, [1], index="nothing")
            for request, code, text in (
                (connection.insert(9999, [1]), ErrorCode.ER_NO_SUCH_SPACE, "Space '9999' does not exist"),
                (
                    connection.select(values, [1], index=7),
                    ErrorCode.ER_NO_SUCH_INDEX_ID,
                    f"No index #7 is defined in space '{values}'",
                ),
                (
                    connection.select(values, ["one"]),
                    ErrorCode.ER_KEY_PART_TYPE,
                    "Supplied key type of part 0 does not match index part type: expected unsigned",
                ),
                (
                    connection.select(values, [1, 2]),
                    ErrorCode.ER_KEY_PART_COUNT,
                    "Invalid key part count (expected [0..1], got 2)",
                ),
                (
                    connection.update(values, [1, 2], [("=", 1, 2)]),
                    ErrorCode.ER_EXACT_MATCH,
                    "Invalid key part count in an exact match (expected 1, got 2)",
                ),
            ):
                with pytest.raises(TarantoolDatabaseError) as raised:
                    await request
                assert (raised.value.code, raised.value.message) == (code, text)


class TestValues:
    def test_a_stored_error_comes_back_to_tarantool_python(self, target: Target, values: str) -> None:
        with with_python(target) as connection:
            assert connection.insert(values, [1, STORED])[0] == [1, STORED]
            assert connection.select(values, 1)[0] == [1, STORED]

    async def test_asynctnt_reads_it_too(self, target: Target, values: str) -> None:
        with with_python(target) as connection:
            connection.insert(values, [1, STORED])
        async with with_asynctnt(target) as reader:
            [row] = await reader.select(values)
        assert isinstance(row["value"], IProtoError)
        assert [(frame.error_type, frame.message, frame.err_no) for frame in row["value"].trace] == [
            ("CustomError", "out of cheese", 2),
            ("SystemError", "no space", 28),
        ]

    def test_a_returned_error_is_a_value_for_tarantool_python(self, our_server: Target) -> None:
        with with_python(our_server) as connection:
            [returned] = connection.call("features.return_error")
            assert returned == BoxError(
                type="ClientError",
                file=OURSELVES,
                line=0,
                message="it cannot be stored",
                errno=0,
                errcode=1000,
                fields={"bytes": 7},
                prev=BoxError(
                    type="ClientError",
                    file=OURSELVES,
                    line=0,
                    message="the disk is full",
                    errno=0,
                    errcode=1001,
                ),
            )
            assert connection.call("features.echo", [returned])[0] == returned

    async def test_a_returned_error_is_a_value_for_asynctnt(self, our_server: Target) -> None:
        async with with_asynctnt(our_server) as connection:
            [returned] = await connection.call("features.return_error")
        assert isinstance(returned, IProtoError)
        assert [frame.message for frame in returned.trace] == ["it cannot be stored", "the disk is full"]

    @pytest.mark.real_tarantool
    def test_net_box_has_the_text_of_a_returned_error(self, our_server: Target) -> None:
        connection = NetBox(our_server)
        assert connection.call("features.return_error") == ["it cannot be stored"]
        connection.close()


def test_lua_and_sql_are_refused_with_an_error(our_server: Target) -> None:
    with with_python(our_server) as connection:
        for request, statement in ((connection.eval, "return 1"), (connection.execute, "SELECT 1")):
            with pytest.raises(tarantool.DatabaseError) as raised:
                request(statement)
            assert raised.value.code == 5
            assert connection.ping() > 0


def test_a_space_that_cannot_be_made_is_told(target: Target) -> None:
    admin = TarantoolPython(target)
    for fields, code, text in (
        ([["a", "number"], ["a", "number"]], 149, "Space field 'a' is duplicate"),
        ([["a", "cheese"]], 9, "Failed to create space 'wrong': field 1 has unknown field type"),
    ):
        with pytest.raises(ClientError) as raised:
            create_space(admin, "wrong", fields)
        assert (raised.value.code, raised.value.message) == (code, text)
    admin.close()
