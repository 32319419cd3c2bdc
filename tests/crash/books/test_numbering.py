"""Findings about numbers and numbered rows."""

from __future__ import annotations

import pytest

from tests.crash.books.numbering import Numbering
from tests.crash.checks.finding import Finding, Kind


@pytest.fixture
def numbering() -> Numbering:
    """Insert rows 1 to 3, whose tokens are the same numbers."""
    numbering = Numbering()
    for number in (1, 2, 3):
        assert numbering.inserted([number, numbering.insert()]) == []
    return numbering


def kinds(findings: list[Finding]) -> set[Kind]:
    return {finding.kind for finding in findings}


def test_what_is_acknowledged_is_there(numbering: Numbering) -> None:
    assert numbering.compare([[1, 1], [2, 2], [3, 3]]) == []
    assert kinds(numbering.compare([[1, 1], [2, 2]])) == {Kind.LOST}


def test_what_is_not_acknowledged_may_be_there(numbering: Numbering) -> None:
    token = numbering.insert()
    numbering.insert()
    assert numbering.compare([[1, 1], [2, 2], [3, 3], [4, token]]) == []
    assert numbering.present == [1, 2, 3, 4]


def test_a_number_is_given_once(numbering: Numbering) -> None:
    assert kinds(numbering.inserted([3, numbering.insert()])) == {Kind.COUNTER}


def test_a_number_is_not_given_again_after_its_row_is_gone(numbering: Numbering) -> None:
    numbering.delete(3)
    numbering.deleted(3)
    assert numbering.compare([[1, 1], [2, 2]]) == []
    assert kinds(numbering.inserted([3, numbering.insert()])) == {Kind.COUNTER}


def test_a_number_of_another_row(numbering: Numbering) -> None:
    token = numbering.insert()
    assert kinds(numbering.compare([[1, 1], [2, 2], [3, token]])) == {Kind.COUNTER}


def test_what_is_deleted_is_not_there(numbering: Numbering) -> None:
    rows = [[1, 1], [2, 2], [3, 3]]
    numbering.delete(3)
    assert numbering.compare(rows) == [], "nobody has said that it is deleted"
    numbering.delete(3)
    numbering.deleted(3)
    assert kinds(numbering.compare(rows)) == {Kind.LOST}


def test_a_token_of_nobody(numbering: Numbering) -> None:
    assert kinds(numbering.compare([[1, 1], [2, 2], [3, 3], [4, 5]])) == {Kind.STRANGE}
