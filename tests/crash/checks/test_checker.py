"""Findings of the checker in databases with missing or wrong contents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crash import schema
from tests.crash.books.tasks import TAKEN
from tests.crash.books.world import Operation, Place, Value
from tests.crash.checks.audit import Audit
from tests.crash.checks.finding import Kind
from tests.crash.model import LATER, Model
from tests.crash.schema import BALLAST, BUILDER, EXTRA, ITEMS, LABELS, NAMES, TRANSFERS, WORDS, Row

WRITER = 0


def change(audit: Audit, place: Place, value: Value) -> None:
    """Store a value at a place, in all indexes."""
    name, key = place
    space = audit.spaces[name]
    for index in space.indexes:
        index.rows[:] = [row for row in index.rows if row[0] != key] + ([value] if value else [])
        if order := schema.ORDERS.get((name, index.name)):
            index.rows[:] = order(space.rows)
    space.length = len(space.rows)
    space.indexes[:] = [index._replace(size=len(index.rows)) for index in space.indexes]


def do(audit: Audit, operation: Operation) -> None:
    """Apply an operation of a writer, including its effect on the totals."""
    items = {row[0]: row for row in audit.rows(ITEMS.name)}
    totals = {row[0]: row for row in audit.rows("totals")}
    for (name, key), value in operation.changes.items():
        if name == ITEMS.name:
            old = items.get(key)
            totals["items"][1] += (value is not None) - (old is not None)
            totals["items"][2] += (value[1] if value else 0) - (old[1] if old else 0)
        if name == TRANSFERS.name:
            totals["transfers"][1] += 1
        change(audit, (name, key), value)


def kinds(model: Model, audit: Audit) -> set[Kind]:
    return {finding.kind for finding in model.books.check(audit)}


@pytest.fixture
def model() -> Model:
    return Model()


def test_a_database_that_is_as_it_must_be(model: Model) -> None:
    assert model.books.check(model.audit()) == []


def test_what_was_not_acknowledged_may_be_missing(model: Model) -> None:
    audit = model.audit()
    for client in model.sources:
        for _ in range(50):
            model.send(client)
    assert model.books.check(audit) == []


def test_what_was_not_acknowledged_may_be_there(model: Model) -> None:
    audit = model.audit()
    for operation in [model.send(WRITER) for _ in range(50)]:
        do(audit, operation)
    assert model.books.check(audit) == []


def test_of_what_was_not_acknowledged_only_the_end_may_be_missing(model: Model) -> None:
    audit = model.audit()
    operations = [model.send(WRITER, "update") for _ in range(10)]
    for operation in operations[:5]:
        do(audit, operation)
    assert model.books.check(audit) == []

    model = Model()
    audit = model.audit()
    operations = [model.send(WRITER, "transfer") for _ in range(10)]
    for operation in operations[:4] + operations[5:]:
        do(audit, operation)
    assert Kind.COUNTER in kinds(model, audit)


@pytest.mark.parametrize("kind", ["insert", "replace", "update", "upsert", "delete", "transfer", "write"])
def test_an_acknowledged_operation_that_is_lost(model: Model, kind: str) -> None:
    assert Kind.LOST in kinds(model, model.before(WRITER, kind))


@pytest.mark.parametrize("kind", ["create space", "drop space", "create index", "drop index", "put"])
def test_an_acknowledged_change_of_a_definition_that_is_lost(model: Model, kind: str) -> None:
    assert Kind.LOST in kinds(model, model.before(BUILDER, kind))


@pytest.mark.parametrize("kind", ["transfer", "write"])
def test_an_operation_of_which_one_row_is_there(model: Model, kind: str) -> None:
    audit = model.audit()
    operation = model.send(WRITER, kind)
    changes = {place: value for place, value in operation.changes.items() if value is not None}
    place, value = next(iter(changes.items()))
    change(audit, place, value)
    assert Kind.HALF in kinds(model, audit)


@pytest.mark.parametrize("kind", ["transfer", "write"])
def test_an_operation_of_which_one_row_is_missing(model: Model, kind: str) -> None:
    audit = model.audit()
    operation = model.send(WRITER, kind)
    place = next(place for place, value in operation.changes.items() if value is not None)
    before = model.books.worlds[WRITER].certain.get(place)
    do(audit, operation)
    change(audit, place, before)
    assert Kind.HALF in kinds(model, audit)


def test_what_is_found_is_certain_from_then_on(model: Model) -> None:
    audit = model.audit()
    operation = model.send(WRITER, "transfer")
    do(audit, operation)
    assert model.books.check(audit) == []
    assert model.books.check(model.audit()) == []
    model.acknowledge(WRITER, "transfer")
    assert Kind.LOST in kinds(model, audit)


def lose_first(space: str) -> Callable[[Audit], None]:
    return lambda audit: change(audit, (space, audit.rows(space)[0][0]), None)


def lose_in_index(space: str, index: int) -> Callable[[Audit], None]:
    def lose(audit: Audit) -> None:
        del audit.spaces[space].indexes[index].rows[0]

    return lose


def turn_round(space: str, index: int) -> Callable[[Audit], None]:
    return lambda audit: audit.spaces[space].indexes[index].rows.reverse()


def replace_row(space: str, change_row: Callable[[Row], Row]) -> Callable[[Audit], None]:
    def replace(audit: Audit) -> None:
        row = audit.rows(space)[0]
        change(audit, (space, row[0]), change_row(list(row)))

    return replace


def add_task(task_id: int, number: int) -> Callable[[Audit], None]:
    return lambda audit: change(audit, ("queue", task_id), [task_id, "R", 0, {"number": number}])


def count_wrong(audit: Audit) -> None:
    audit.rows("totals")[0][1] += 1


def say_wrong_stats(audit: Audit) -> None:
    audit.stats = {**(audit.stats or {}), "ready": 0}


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lose_first(ITEMS.name), Kind.LOST),
        (lose_first(NAMES.name), Kind.LOST),
        (lose_first("accounts"), Kind.LOST),
        (lose_first(BALLAST), Kind.LOST),
        (replace_row(ITEMS.name, lambda row: [*row[:5], "torn"]), Kind.LOST),
        (replace_row(ITEMS.name, lambda row: [row[0], row[1] - 1, *row[2:]]), Kind.LOST),
        (replace_row(ITEMS.name, lambda row: [99_000, *row[1:]]), Kind.STRANGE),
        (lose_in_index(ITEMS.name, 1), Kind.INDEX),
        (lose_in_index(ITEMS.name, 2), Kind.INDEX),
        (lose_in_index(NAMES.name, 1), Kind.INDEX),
        (lose_in_index("queue", 1), Kind.INDEX),
        (lose_in_index(WORDS.name, 1), Kind.INDEX),
        (lose_in_index(LABELS.name, 1), Kind.INDEX),
        (turn_round(WORDS.name, 1), Kind.INDEX),
        (turn_round(LABELS.name, 1), Kind.INDEX),
        (lose_first(WORDS.name), Kind.LOST),
        (lose_first(LABELS.name), Kind.LOST),
        (lose_first("numbered"), Kind.LOST),
        (lose_first("deals"), Kind.LOST),
        (lose_first("deals"), Kind.HALF),
        (lose_first("shares"), Kind.HALF),
        (lose_in_index("_index", 0), Kind.HALF),
        (lose_in_index("_space", 0), Kind.HALF),
        (count_wrong, Kind.COUNTER),
        (say_wrong_stats, Kind.COUNTER),
        (lose_first("queue"), Kind.TASK),
        (add_task(2000, 1), Kind.TASK),
        (add_task(2000, 77), Kind.TASK),
        (replace_row("queue", lambda row: [row[0], TAKEN, 0, row[3]]), Kind.TASK),
        (replace_row("queue", lambda row: [row[0], "W", LATER, row[3]]), Kind.TASK),
    ],
)
def test_damage(model: Model, damage: Callable[[Audit], None], kind: Kind) -> None:
    audit = model.audit()
    damage(audit)
    assert kind in kinds(model, audit)


def test_a_space_that_nobody_has_created(model: Model) -> None:
    audit = model.audit()
    audit.spaces[f"{EXTRA}99"] = audit.spaces["_space"]
    assert Kind.LOST in kinds(model, audit)


def test_a_delayed_task_that_is_ready_too_early(model: Model) -> None:
    audit = model.audit()
    task_id, _, _, data = audit.rows("queue")[1]
    change(audit, ("queue", task_id), [task_id, "R", 0, data])
    assert Kind.TASK in kinds(model, audit)
    model = Model()
    audit.time = LATER
    assert Kind.TASK not in kinds(model, audit)
