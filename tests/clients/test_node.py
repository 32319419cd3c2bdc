"""Specifics of npm's tarantool-driver: JavaScript's values, and many requests in one write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from tarantool import Datetime

from tests.clients.drivers.bridge import NodeDriver
from tests.clients.drivers.connections import with_python
from tests.clients.drivers.driver import ClientError, Target

pytestmark = pytest.mark.node

Connect = Callable[[Target], NodeDriver]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect; connections are closed at the end of the test."""
    drivers: list[NodeDriver] = []

    def connect_to(target: Target) -> NodeDriver:
        drivers.append(NodeDriver(target))
        return drivers[-1]

    yield connect_to
    for driver in drivers:
        driver.close()


def test_decimals_and_uuids_are_numbers_and_texts(target: Target, values: str, connect: Connect) -> None:
    identity = UUID("f6423bdf-b49e-4913-b361-0740c9702e4b")
    with with_python(target) as connection:
        for number, value in enumerate([Decimal("12.75"), Decimal(-3), identity]):
            connection.insert(values, [number, value])
    read = connect(target).select(values, "primary", [], iterator="ALL")
    assert read == [[0, 12.75], [1, -3], [2, str(identity)]]


def test_datetimes_are_dates(our_server: Target, our_values: str, connect: Connect) -> None:
    with with_python(our_server) as connection:
        connection.insert(our_values, [1, Datetime(year=2022, month=8, day=31, hour=18, tzoffset=60)])
    assert connect(our_server).select(our_values, "primary", [1]) == [[1, "2022-08-31T17:00:00.000Z"]]


def test_many_requests_in_one_write_are_answered_one_by_one(
    target: Target, people: str, connect: Connect
) -> None:
    rows: list[object] = [[number, f"person {number}", 30] for number in range(100)]
    answers = connect(target).request("pipeline", people, [*rows, [0, "another", 30]])
    duplicate = f"Duplicate key exists in unique index 'primary' in space '{people}'"
    assert answers == [*rows, duplicate]


def test_lua_and_sql_are_refused_with_an_error(our_server: Target, connect: Connect) -> None:
    driver = connect(our_server)
    for method, name in (("eval", "EVAL"), ("sql", "EXECUTE")):
        with pytest.raises(ClientError) as raised:
            driver.request(method, "return 1")
        assert raised.value.message == f"This server does not support {name} requests"
    driver.ping()


def test_what_does_not_fit_is_told(target: Target, people: str, connect: Connect) -> None:
    driver = connect(target)
    for row, text in (
        (
            ["one", "Ann", 30],
            "Tuple field 1 type does not match one required by operation: expected unsigned",
        ),
        ([1, "Ann"], "Tuple field 3 required by space format is missing"),
    ):
        with pytest.raises(ClientError) as raised:
            driver.insert(people, row)
        assert raised.value.message == text
    driver.ping()


def test_the_tutorials_ids_are_texts_if_they_are_asked_for(our_server: Target, connect: Connect) -> None:
    driver = connect(our_server)
    as_text = {"id_as_text": True}

    def call(procedure: str, *arguments: object) -> Any:
        return driver.call(procedure, *arguments)[0]

    put = call("queue.put", {"order": 7}, as_text)
    rounded = call("queue.take")
    assert isinstance(put["id"], str)
    assert isinstance(rounded["id"], int)
    call("queue.release", put["id"])
    taken = call("queue.take", 1, as_text)
    assert (taken["id"], taken["data"]) == (put["id"], {"order": 7})
    assert call("queue.ack", taken["id"])["status"] == "T"
    assert call("queue.stats")["total"] == 0
