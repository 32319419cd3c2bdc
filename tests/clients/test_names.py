"""Spaces, indexes and fields by name: the schema in the client libraries, and its changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from asynctnt.exceptions import TarantoolDatabaseError, TarantoolSchemaError
from tarantool.error import NotSupportedError, SchemaError

from iproto_server.protocol.constants import Key, RequestType
from tests.clients.conftest import create_space
from tests.clients.drivers.bridge import NetBox
from tests.clients.drivers.connections import rows, with_asynctnt, with_python
from tests.clients.drivers.driver import Target
from tests.clients.drivers.tarantool_python import TarantoolPython
from tests.iproto_client import IprotoClient

ANN = [1, "Ann", 30]
BOB = [2, "Bob", 40]


@pytest.fixture
def admin(target: Target) -> Iterator[TarantoolPython]:
    """Open another connection, to change the schema without the client's knowledge."""
    connection = TarantoolPython(target)
    yield connection
    connection.close()


@pytest.fixture
def new_name(admin: TarantoolPython) -> Iterator[str]:
    """Return the name of a space that does not exist yet."""
    yield "of_tomorrow"
    admin.call("box.space.of_tomorrow:drop")


def create(admin: TarantoolPython, name: str) -> None:
    create_space(admin, name, [["id", "unsigned"]])
    admin.call(f"box.space.{name}:create_index", "primary", {"parts": ["id"]})


class TestTarantoolPython:
    def test_finds_spaces_and_indexes_by_number_as_well(self, target: Target, people: str) -> None:
        with with_python(target) as connection:
            number = connection.select("_vspace", people, index="name")[0][0]
            assert connection.insert(number, ANN)[0] == ANN
            assert connection.select(people, "Ann", index=1)[0] == ANN
            assert connection.select(number, 30, index="age")[0] == ANN
            assert connection.update(number, 1, [("+", "age", 1)])[0] == [1, "Ann", 31]
            assert connection.delete(number, "Ann", index="name")[0] == [1, "Ann", 31]

    def test_has_spaces_as_objects(self, target: Target, people: str) -> None:
        with with_python(target) as connection:
            space = connection.space(people)
            assert space.insert(ANN)[0] == ANN
            assert space.replace(BOB)[0] == BOB
            assert space.upsert([1, "Ann", 0], [("+", 2, 1)]).data == []
            assert space.update(2, [("=", 1, "Bea")])[0] == [2, "Bea", 40]
            assert list(space.select()) == [[1, "Ann", 31], [2, "Bea", 40]]
            assert space.delete("Bea", index="name")[0] == [2, "Bea", 40]
            assert space.call("features.echo", 1).data == [1]

    def test_looks_for_a_space_that_it_does_not_know(
        self, target: Target, admin: TarantoolPython, new_name: str
    ) -> None:
        with with_python(target) as connection:
            create(admin, new_name)
            assert connection.insert(new_name, [1])[0] == [1]
            assert connection.select(new_name, 1, index="primary")[0] == [1]

    def test_loads_the_schema_again_when_it_is_told_that_it_has_an_old_one(
        self, target: Target, admin: TarantoolPython, people: str
    ) -> None:
        with with_python(target) as connection:
            # once it has received a schema version, it sends that with each request
            version = connection.insert(people, ANN).schema_version
            connection.update_schema(version)
            fields = [["id", "unsigned"], ["name", "string"], ["years", "integer"]]
            admin.call(f"box.space.{people}:format", fields)
            assert connection.select(people, 1)[0] == ANN
            assert connection.schema_version > version
            assert connection.update(people, 1, [("+", "years", 1)])[0] == [1, "Ann", 31]

    def test_refuses_names_there_are_not(self, target: Target, people: str) -> None:
        with with_python(target) as connection:
            with pytest.raises(SchemaError, match="There's no space with name 'nowhere'"):
                connection.insert("nowhere", [1])
            with pytest.raises(SchemaError, match="There's no index with name 'nothing' in space"):
                connection.select(people, 1, index="nothing")
            with pytest.raises(SchemaError, match="There's no field with name 'nothing' in space"):
                connection.update(people, 1, [("=", "nothing", 1)])
            assert connection.ping() > 0

    def test_calls_without_a_schema(self, target: Target, people: str) -> None:
        with with_python(target, fetch_schema=False) as connection:
            assert connection.call("features.echo", [1]).data == [1]
            assert connection.ping() > 0
            with pytest.raises(NotSupportedError):
                connection.insert(people, ANN)
            connection.update_schema(0)
            assert connection.insert(people, ANN)[0] == ANN


class TestAsynctnt:
    async def test_has_rows_as_tuples_with_names(self, target: Target, people: str) -> None:
        async with with_asynctnt(target) as connection:
            [row] = await connection.insert(people, {"age": 30, "id": 1, "name": "Ann"})
            assert row["name"] == row[1] == "Ann"
            assert dict(row.items()) == {"id": 1, "name": "Ann", "age": 30}
            assert "age" in row
            assert row.get("nothing") is None
            with pytest.raises(KeyError):
                row["nothing"]
            [row] = await connection.insert(people, [*BOB, "behind the format"])
            assert (row["age"], row[3]) == (40, "behind the format")

    async def test_has_keys_with_names(self, target: Target, people: str) -> None:
        async with with_asynctnt(target) as connection:
            await connection.insert(people, ANN)
            assert rows(await connection.select(people, {"name": "Ann"}, index="name")) == [ANN]
            assert rows(await connection.update(people, {"id": 1}, [("+", "age", 1)])) == [[1, "Ann", 31]]
            assert rows(await connection.delete(people, {"name": "Ann"}, index="name")) == [[1, "Ann", 31]]

    async def test_fills_fields_that_were_left_out_with_nil(self, target: Target, values: str) -> None:
        async with with_asynctnt(target) as connection:
            assert rows(await connection.insert(values, {"id": 1})) == [[1, None]]

    async def test_finds_spaces_and_indexes_by_number_as_well(self, target: Target, people: str) -> None:
        async with with_asynctnt(target) as connection:
            number = connection.schema.spaces[people].sid
            await connection.insert(number, ANN)
            assert rows(await connection.select(number, ["Ann"], index=1)) == [ANN]

    async def test_learns_of_a_change_of_the_schema_by_itself(
        self, target: Target, admin: TarantoolPython, new_name: str
    ) -> None:
        async with with_asynctnt(target) as connection:
            version = connection.schema_id
            create(admin, new_name)
            while new_name not in connection.schema.spaces:
                await connection.ping()  # every answer contains the new version
                await asyncio.sleep(0)
            assert connection.schema_id > version
            assert rows(await connection.insert(new_name, {"id": 1})) == [[1]]

    async def test_learns_of_it_when_it_is_told_to(
        self, target: Target, admin: TarantoolPython, new_name: str
    ) -> None:
        async with with_asynctnt(target, auto_refetch_schema=False) as connection:
            create(admin, new_name)
            await connection.ping()
            with pytest.raises(TarantoolSchemaError):
                await connection.insert(new_name, [1])
            await connection.refetch_schema()
            assert rows(await connection.insert(new_name, [1])) == [[1]]

    async def test_needs_numbers_without_a_schema(self, target: Target, people: str) -> None:
        async with with_asynctnt(target) as connection:
            number = connection.schema.spaces[people].sid
        async with with_asynctnt(target, fetch_schema=False, auto_refetch_schema=False) as connection:
            assert connection.schema_id == -1
            assert rows(await connection.insert(number, ANN)) == [ANN]
            assert rows(await connection.update(number, [1], [("+", "age", 1)])) == [[1, "Ann", 31]]
            with pytest.raises(TarantoolSchemaError):
                await connection.insert(people, BOB)

    async def test_has_the_server_refuse_a_field_there_is_not(self, target: Target, people: str) -> None:
        async with with_asynctnt(target) as connection:
            await connection.insert(people, ANN)
            with pytest.raises(TarantoolDatabaseError) as raised:
                await connection.update(people, [1], [("=", "nothing", 1)])
            assert (raised.value.code, raised.value.message) == (
                201,
                "Field 'nothing' was not found in the tuple",
            )


@pytest.mark.real_tarantool
class TestNetBox:
    def test_has_rows_as_tuples_with_names(self, target: Target, people: str) -> None:
        connection = NetBox(target)
        connection.insert(people, ANN)
        assert connection.request("row_as_map", people, [1]) == {"id": 1, "name": "Ann", "age": 30}
        connection.close()

    def test_looks_at_an_index(self, target: Target, people: str) -> None:
        connection = NetBox(target)
        for row in (ANN, BOB, [3, "Cid", 40]):
            connection.insert(people, row)
        assert connection.request("count", people, "age", [40]) == 2
        assert connection.request("count", people, "primary", [2], "GE") == 2
        assert connection.request("min", people, "name") == ANN
        assert connection.request("max", people, "name", []) == [3, "Cid", 40]
        assert connection.request("get", people, "name", ["Bob"]) == BOB
        connection.close()

    def test_reloads_the_schema_and_tells(
        self, target: Target, admin: TarantoolPython, new_name: str
    ) -> None:
        connection = NetBox(target)
        create(admin, new_name)
        assert connection.request("wait_for_space", new_name)
        assert connection.request("describe_index", new_name, 0) == {
            "name": "primary",
            "type": "TREE",
            "unique": True,
            "parts": [{"fieldno": 1, "type": "unsigned", "is_nullable": False}],
        }
        connection.close()


class TestOnTheWire:
    """Requests with names; none of the libraries sends them yet, and 2.6 does not support them."""

    @pytest.fixture
    def client(self, our_server: Target) -> Iterator[IprotoClient]:
        with IprotoClient(our_server.host, our_server.port) as client:
            yield client

    def test_every_request_takes_them(self, client: IprotoClient, our_values: str) -> None:
        space = {Key.SPACE_NAME: our_values}
        both = {**space, Key.INDEX_NAME: "primary"}
        for kind, body, answer in (
            (RequestType.INSERT, {**space, Key.TUPLE: [1, 1]}, [[1, 1]]),
            (RequestType.REPLACE, {**space, Key.TUPLE: [1, 2]}, [[1, 2]]),
            (RequestType.UPDATE, {**both, Key.KEY: [1], Key.TUPLE: [["+", 1, 1]]}, [[1, 3]]),
            (RequestType.UPSERT, {**both, Key.TUPLE: [1, 0], Key.OPS: [["+", 1, 1]]}, []),
            (RequestType.SELECT, {**both, Key.KEY: [1], Key.LIMIT: 1}, [[1, 4]]),
            (RequestType.DELETE, {**both, Key.KEY: [1]}, [[1, 4]]),
        ):
            assert client.request(kind, body).data == answer

    def test_the_name_counts_where_there_is_a_number_too(self, client: IprotoClient, our_values: str) -> None:
        body = {Key.SPACE_NAME: our_values, Key.SPACE_ID: 9999, Key.TUPLE: [1, 1]}
        assert client.request(RequestType.INSERT, body).data == [[1, 1]]
        body = {Key.SPACE_NAME: our_values, Key.INDEX_NAME: "primary", Key.INDEX_ID: 9, Key.KEY: [1]}
        assert client.request(RequestType.DELETE, body).data == [[1, 1]]

    def test_names_there_are_not_are_refused(self, client: IprotoClient, our_values: str) -> None:
        assert client.request(RequestType.INSERT, {Key.SPACE_NAME: "nowhere", Key.TUPLE: [1]}).failure == (
            36,
            "Space 'nowhere' does not exist",
        )
        body = {Key.SPACE_NAME: our_values, Key.INDEX_NAME: "nothing", Key.KEY: [1]}
        assert client.request(RequestType.DELETE, body).failure == (
            148,
            f"No index 'nothing' is defined in space '{our_values}'",
        )

    @pytest.mark.parametrize("name", [1, None, ["values"], b"values"])
    def test_what_is_no_name_is_refused(self, client: IprotoClient, name: object) -> None:
        for body in ({Key.SPACE_NAME: name}, {Key.SPACE_ID: 280, Key.INDEX_NAME: name}):
            answer = client.request(RequestType.DELETE, {**body, Key.KEY: [1]})
            assert answer.failure == (20, "Invalid MsgPack - packet body")
