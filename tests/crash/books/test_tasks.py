"""Findings about tasks."""

from __future__ import annotations

import pytest

from tests.crash.books.tasks import Task, Tasks
from tests.crash.schema import Row

NOW = 1_000_000.0


def answer(number: int, status: str = "T") -> dict[str, object]:
    return {"id": 100 + number, "status": status, "runat": 0, "data": {"number": number}}


def row(number: int, status: str = "R", runat: float = 0) -> Row:
    return [100 + number, status, runat, {"number": number}]


def put(tasks: Tasks) -> Task:
    task = tasks.putting(is_delayed=False)
    tasks.put(task, answer(task.number, "R"))
    return task


def texts(tasks: Tasks, *rows: Row) -> list[str]:
    return [finding.text for finding in tasks.compare(list(rows), NOW)]


@pytest.fixture
def tasks() -> Tasks:
    return Tasks()


def test_a_task_that_was_put_must_be_there(tasks: Tasks) -> None:
    put(tasks)
    assert texts(tasks) == ["task 1 (id 101) is lost"]


def test_a_put_without_an_answer_may_have_happened_or_not(tasks: Tasks) -> None:
    tasks.putting(is_delayed=False)
    tasks.putting(is_delayed=True)
    tasks.putting(is_delayed=True)
    assert texts(tasks, row(2, "W", NOW + 5)) == []


def test_a_task_that_was_taken_was_put(tasks: Tasks) -> None:
    tasks.putting(is_delayed=False)
    tasks.taken(answer(1), 1, NOW)
    assert texts(tasks) == ["task 1 (id 101) is lost"]


def test_an_acknowledged_task_must_be_gone(tasks: Tasks) -> None:
    task = put(tasks)
    tasks.taken(answer(1), 1, NOW)
    tasks.acknowledging(task)
    tasks.acknowledged(task, answer(1))
    assert texts(tasks, row(1)) == [f"task 1 is acknowledged, but still there: {row(1)}"]


@pytest.mark.parametrize("left", [[], [row(1)]])
def test_an_ack_without_an_answer_may_have_happened_or_not(tasks: Tasks, left: list[Row]) -> None:
    task = put(tasks)
    tasks.taken(answer(1), 1, NOW)
    tasks.acknowledging(task)
    assert texts(tasks, *left) == []


@pytest.mark.parametrize("left", [row(1), row(1, "W", NOW + 3)])
def test_a_delayed_release_without_an_answer_may_have_happened_or_not(tasks: Tasks, left: Row) -> None:
    task = put(tasks)
    tasks.taken(answer(1), 1, NOW)
    tasks.releasing(task, is_delayed=True)
    assert texts(tasks, left) == []
    assert texts(tasks) == ["task 1 (id 101) is lost"]


def test_a_delay_that_was_answered_is_kept(tasks: Tasks) -> None:
    task = put(tasks)
    tasks.taken(answer(1), 1, NOW)
    tasks.releasing(task, is_delayed=True)
    tasks.released(task, 1, {**answer(1), "runat": NOW + 3})
    assert texts(tasks, row(1, "W", NOW + 4)) == [f"task 1 (id 101) waits for {NOW + 4} instead of {NOW + 3}"]


def test_two_cannot_have_the_same_task(tasks: Tasks) -> None:
    put(tasks)
    tasks.taken(answer(1), 1, NOW)
    assert tasks.take_findings() == []
    tasks.taken(answer(1), 2, NOW)
    assert [finding.text for finding in tasks.take_findings()] == ["task 1 was given to two at once"]


def test_a_task_can_be_had_by_one_after_the_other(tasks: Tasks) -> None:
    task = put(tasks)
    tasks.taken(answer(1), 1, NOW)
    tasks.releasing(task, is_delayed=False)
    tasks.taken(answer(1), 2, NOW)
    tasks.released(task, 1, answer(1, "R"))
    assert tasks.take_findings() == []


def test_the_answer_to_a_release_says_nothing_about_the_next_one(tasks: Tasks) -> None:
    task = put(tasks)
    tasks.taken(answer(1), 1, NOW)
    first = tasks.releasing(task, is_delayed=False)
    tasks.taken(answer(1), 2, NOW)
    tasks.releasing(task, is_delayed=True)
    tasks.released(task, first, answer(1, "R"))
    assert texts(tasks, row(1, "W", NOW + 3)) == []


def test_a_finished_task_is_not_given_out(tasks: Tasks) -> None:
    task = put(tasks)
    tasks.taken(answer(1), 1, NOW)
    tasks.acknowledging(task)
    tasks.acknowledged(task, answer(1))
    assert tasks.taken(answer(1), 2, NOW) is None
    assert len(tasks.take_findings()) == 1


def test_a_task_is_not_given_out_before_its_time(tasks: Tasks) -> None:
    task = tasks.putting(is_delayed=True)
    tasks.put(task, {**answer(1, "W"), "runat": NOW + 2})
    tasks.taken(answer(1), 1, NOW)
    assert [finding.text for finding in tasks.take_findings()] == [
        "task 1 was given out 2.000 seconds too early"
    ]


def test_after_a_crash_nobody_holds_anything(tasks: Tasks) -> None:
    put(tasks)
    tasks.taken(answer(1), 1, NOW)
    assert texts(tasks, row(1)) == []
    tasks.taken(answer(1), 2, NOW)
    assert tasks.take_findings() == []


def test_a_task_that_is_there_twice(tasks: Tasks) -> None:
    put(tasks)
    assert texts(tasks, row(1), [500, "R", 0, {"number": 1}])[0] == (
        "task 1 is there twice, with the ids 101 and 500"
    )
