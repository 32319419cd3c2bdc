"""Every client library connects, finds spaces and indexes by name, and reads and changes rows."""

from __future__ import annotations

import pytest

from tests.clients.applications.accounts import PASSWORD, USER
from tests.clients.conftest import OURS, create_space
from tests.clients.drivers.driver import ClientError, Driver, OpenDriver, Row, Target

ANN: Row = [1, "Ann", 30]
BOB: Row = [2, "Bob", 40]
CID: Row = [3, "Cid", 40]
DAN: Row = [4, "Dan", 50]


@pytest.fixture
def crowd(driver: Driver, people: str) -> str:
    """Fill the space of people with Ann, Bob, Cid and Dan."""
    for person in (ANN, BOB, CID, DAN):
        driver.insert(people, person)
    return people


def everybody(driver: Driver, people: str) -> list[Row]:
    return driver.select(people, "primary", [], iterator="ALL")


_REFUSED = "User not found or supplied credentials are invalid"
"""The error as from Tarantool 2.11 on; 2.6 reports unknown users and wrong passwords differently."""


def fails_with(error: ClientError, code: int, message: str) -> bool:
    """Whether it is that error; the code is only compared if the library provides it."""
    return error.message == message and error.code in (None, code)


def test_ping(driver: Driver) -> None:
    driver.ping()


def test_insert_answers_the_row(driver: Driver, people: str) -> None:
    assert driver.insert(people, ANN) == [ANN]
    assert everybody(driver, people) == [ANN]


def test_insert_of_a_key_that_is_there_is_an_error(driver: Driver, crowd: str) -> None:
    with pytest.raises(ClientError) as raised:
        driver.insert(crowd, [1, "Another", 1])
    assert fails_with(raised.value, 3, f"Duplicate key exists in unique index 'primary' in space '{crowd}'")
    with pytest.raises(ClientError) as raised:
        driver.insert(crowd, [9, "Ann", 1])
    assert fails_with(raised.value, 3, f"Duplicate key exists in unique index 'name' in space '{crowd}'")


def test_a_row_must_fit_the_format(driver: Driver, people: str) -> None:
    with pytest.raises(ClientError) as raised:
        driver.insert(people, [1, 2, 3])
    assert fails_with(
        raised.value, 23, "Tuple field 2 type does not match one required by operation: expected string"
    )


def test_replace_puts_the_row_in_place_of_the_old_one(driver: Driver, crowd: str) -> None:
    assert driver.replace(crowd, [2, "Bea", 41]) == [[2, "Bea", 41]]
    assert everybody(driver, crowd) == [ANN, [2, "Bea", 41], CID, DAN]
    assert driver.replace(crowd, [5, "Eve", 60]) == [[5, "Eve", 60]]
    assert len(everybody(driver, crowd)) == 5


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([("=", "name", "Bea")], [2, "Bea", 40]),
        ([("+", "age", 2)], [2, "Bob", 42]),
        ([("-", "age", 50)], [2, "Bob", -10]),
        ([("&", "age", 8)], [2, "Bob", 8]),
        ([("|", "age", 1)], [2, "Bob", 41]),
        ([("^", "age", 41)], [2, "Bob", 1]),
        ([("+", "age", 1), ("=", "name", "Bea")], [2, "Bea", 41]),
    ],
)
def test_update_by_primary_key(
    driver: Driver, crowd: str, operations: list[tuple[object, ...]], expected: Row
) -> None:
    assert driver.update(crowd, "primary", [2], operations) == [expected]
    assert driver.select(crowd, "primary", [2]) == [expected]


def test_update_by_a_unique_secondary_index(driver: Driver, crowd: str) -> None:
    assert driver.update(crowd, "name", ["Dan"], [("=", "age", 51)]) == [[4, "Dan", 51]]


def test_update_by_an_index_that_is_not_unique_is_an_error(driver: Driver, crowd: str) -> None:
    with pytest.raises(ClientError) as raised:
        driver.update(crowd, "age", [40], [("=", "name", "x")])
    assert fails_with(raised.value, 41, "Get() doesn't support partial keys and non-unique indexes")


def test_update_of_a_missing_row_answers_no_row(driver: Driver, crowd: str) -> None:
    assert driver.update(crowd, "primary", [99], [("=", "name", "x")]) == []


def test_update_cannot_change_the_primary_key(driver: Driver, crowd: str) -> None:
    with pytest.raises(ClientError) as raised:
        driver.update(crowd, "primary", [2], [("=", "id", 22)])
    assert fails_with(
        raised.value,
        94,
        f"Attempt to modify a tuple field which is part of index 'primary' in space '{crowd}'",
    )


def test_upsert_inserts_and_later_updates(driver: Driver, people: str) -> None:
    assert driver.upsert(people, ANN, [("+", "age", 1)]) == []
    assert everybody(driver, people) == [ANN]
    assert driver.upsert(people, ANN, [("+", "age", 1)]) == []
    assert everybody(driver, people) == [[1, "Ann", 31]]


def test_delete_answers_the_row_that_was_there(driver: Driver, crowd: str) -> None:
    assert driver.delete(crowd, "primary", [1]) == [ANN]
    assert driver.delete(crowd, "name", ["Cid"]) == [CID]
    assert driver.delete(crowd, "primary", [1]) == []
    assert everybody(driver, crowd) == [BOB, DAN]


@pytest.mark.parametrize(
    ("iterator", "key", "expected"),
    [
        ("EQ", [2], [BOB]),
        ("EQ", [9], []),
        ("EQ", [], [ANN, BOB, CID, DAN]),
        ("REQ", [2], [BOB]),
        ("REQ", [], [DAN, CID, BOB, ANN]),
        ("ALL", [], [ANN, BOB, CID, DAN]),
        ("GE", [3], [CID, DAN]),
        ("GT", [3], [DAN]),
        ("LE", [2], [BOB, ANN]),
        ("LT", [2], [ANN]),
    ],
)
def test_select_by_primary_key(
    driver: Driver, crowd: str, iterator: str, key: Row, expected: list[Row]
) -> None:
    assert driver.select(crowd, "primary", key, iterator=iterator) == expected


@pytest.mark.parametrize(
    ("iterator", "key", "expected"),
    [
        ("EQ", [40], [BOB, CID]),
        ("REQ", [40], [CID, BOB]),
        ("GE", [40], [BOB, CID, DAN]),
        ("GT", [40], [DAN]),
        ("LE", [40], [CID, BOB, ANN]),
        ("LT", [40], [ANN]),
    ],
)
def test_select_by_an_index_that_is_not_unique(
    driver: Driver, crowd: str, iterator: str, key: Row, expected: list[Row]
) -> None:
    assert driver.select(crowd, "age", key, iterator=iterator) == expected


def test_select_takes_limit_and_offset(driver: Driver, crowd: str) -> None:
    assert driver.select(crowd, "primary", [], iterator="ALL", limit=2) == [ANN, BOB]
    assert driver.select(crowd, "primary", [], iterator="ALL", limit=2, offset=1) == [BOB, CID]
    assert driver.select(crowd, "primary", [], iterator="ALL", limit=2, offset=4) == []
    assert driver.select(crowd, "primary", [], iterator="ALL", limit=0) == []


def test_many_rows_in_one_answer(driver: Driver, people: str) -> None:
    rows: list[Row] = [[number, f"{number}" * 20, -number] for number in range(1000)]
    for row in rows:
        driver.insert(people, row)
    assert driver.select(people, "primary", [], iterator="ALL", limit=10_000) == rows


def test_a_space_made_by_the_same_client_is_found_by_name(driver: Driver, target: Target) -> None:
    name = "made_by_client"
    create_space(driver, name, [["id", "unsigned"]])
    try:
        driver.call(f"box.space.{name}:create_index", "primary", {"parts": ["id"]})
        assert driver.insert(name, [1]) == [[1]]
        assert driver.select(name, "primary", [1]) == [[1]]
    finally:
        driver.call(f"box.space.{name}:drop")


def test_an_undefined_procedure_is_an_error_and_the_connection_goes_on(driver: Driver) -> None:
    with pytest.raises(ClientError) as raised:
        driver.call("no.such.procedure")
    assert fails_with(raised.value, 33, "Procedure 'no.such.procedure' is not defined")
    driver.ping()


def test_a_user_logs_in_with_a_password(open_driver: OpenDriver, target: Target, people: str) -> None:
    driver = open_driver(target, USER, PASSWORD)
    driver.ping()
    assert driver.insert(people, ANN) == [ANN]
    assert driver.select(people, "name", ["Ann"]) == [ANN]
    assert driver.call("queue.stats")
    assert driver.call("box.session.user") in ([USER], [[USER]])


def test_a_wrong_password_is_refused(open_driver: OpenDriver, target: Target) -> None:
    with pytest.raises(ClientError) as raised:
        open_driver(target, USER, "not the password")
    text = _REFUSED if target.name == OURS else f"Incorrect password supplied for user '{USER}'"
    assert fails_with(raised.value, 47, text)


def test_an_unknown_user_is_refused(open_driver: OpenDriver, target: Target) -> None:
    with pytest.raises(ClientError) as raised:
        open_driver(target, "nobody", "password")
    code, text = (47, _REFUSED) if target.name == OURS else (45, "User 'nobody' is not found")
    assert fails_with(raised.value, code, text)
