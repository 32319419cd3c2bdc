"""Sequences, collations, paths and multikey indexes: client libraries read their definitions and use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.conftest import create_space
from tests.clients.drivers.bridge import NetBox
from tests.clients.drivers.connections import rows, with_asynctnt
from tests.clients.drivers.driver import ClientError, Driver, Row, Target
from tests.clients.drivers.tarantool_python import TarantoolPython

ANN: Row = [1, "Ann", ["a", "b"], {"city": "Bonn"}]
BOB: Row = [2, "Bob", ["b"], {"city": "Kiel"}]
FIELDS = [["id", "unsigned"], ["name", "string"], ["tags", "array"], ["home", "map"]]


@pytest.fixture
def citizens(target: Target) -> Iterator[str]:
    """Create a space with ids of a sequence, names with a collation, and indexes inside fields."""
    admin = TarantoolPython(target)
    create_space(admin, "citizens", FIELDS)
    for name, options in (
        ("primary", {"parts": ["id"], "sequence": True}),
        ("name", {"parts": [{"field": "name", "collation": "unicode_ci"}]}),
        ("tag", {"parts": [{"field": "tags[*]", "type": "string"}], "unique": False}),
        ("city", {"parts": [{"field": "home.city", "type": "string"}], "unique": False}),
    ):
        admin.call("box.space.citizens:create_index", name, options)
    yield "citizens"
    admin.call("box.space.citizens:drop")
    admin.close()


def test_rows_are_numbered_and_found(driver: Driver, citizens: str) -> None:
    assert driver.insert(citizens, [None, *ANN[1:]]) == [ANN]
    assert driver.insert(citizens, [None, *BOB[1:]]) == [BOB]
    assert driver.select(citizens, "name", ["ANN"]) == [ANN]
    assert driver.select(citizens, "tag", ["b"]) == [ANN, BOB]
    assert driver.select(citizens, "city", ["Kiel"]) == [BOB]
    assert driver.delete(citizens, "name", ["bOB"]) == [BOB]
    assert driver.select(citizens, "tag", ["b"]) == [ANN]


def test_names_that_differ_in_their_case_are_the_same(driver: Driver, citizens: str) -> None:
    driver.insert(citizens, [None, *ANN[1:]])
    with pytest.raises(ClientError) as raised:
        driver.insert(citizens, [None, "aNN", [], {"city": "Bonn"}])
    assert raised.value.message == f"Duplicate key exists in unique index 'name' in space '{citizens}'"


def test_what_an_index_needs_is_missed(driver: Driver, citizens: str) -> None:
    wrong: list[tuple[Row, str]] = [
        ([None, "Eve", [1], {"city": "Ulm"}], "expected string"),
        ([None, "Eve", [], {}], 'Tuple field [4]["city"] required by space format is missing'),
    ]
    for row, text in wrong:
        with pytest.raises(ClientError) as raised:
            driver.insert(citizens, row)
        assert raised.value.message.endswith(text)
    assert driver.select(citizens, "primary", [], iterator="ALL") == []


@pytest.mark.real_tarantool
def test_net_box_knows_the_collation(target: Target, citizens: str) -> None:
    connection = NetBox(target)
    assert connection.request("describe_index", citizens, 1)["parts"] == [
        {"fieldno": 2, "type": "string", "is_nullable": False, "collation": "unicode_ci"}
    ]
    connection.close()


async def test_asynctnt_numbers_rows_that_are_dictionaries(target: Target, citizens: str) -> None:
    async with with_asynctnt(target) as connection:
        row = dict(zip(("name", "tags", "home"), ANN[1:], strict=True))
        assert rows(await connection.insert(citizens, row)) == [ANN]
        assert rows(await connection.select(citizens, {"name": "ann"}, index="name")) == [ANN]
