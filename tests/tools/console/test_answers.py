"""Answers of a console: errors, and values as tables."""

from __future__ import annotations

import pytest

from iproto_server.tools.console.answers import is_error, values_of
from iproto_server.tools.console.tables import as_tables


@pytest.mark.parametrize(
    "answer",
    [
        "---\n- error: bad\n...\n",
        "---\n- error:\n    code: 5\n...\n",
        '{error = "bad"};',
        '{\n  error = "bad"\n};',
    ],
)
def test_an_error_is_known(answer: str) -> None:
    assert is_error(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "---\n...\n",
        "---\n- 1\n...\n",
        "---\n- error: bad\n- 2\n...\n",
        "---\n- error: bad\n  code: 5\n...\n",
        '{a = "error"};',
        ";",
    ],
)
def test_a_value_is_no_error(answer: str) -> None:
    assert not is_error(answer)


def test_values_keep_their_texts() -> None:
    assert values_of("---\n- 1.50\n- true\n- [a, null]\n...\n") == ["1.50", "true", ["a", "null"]]


@pytest.mark.parametrize(
    "answer", ["---\n- [1\n...\n", "{1};", "---\n- ? [1]\n  : 2\n...\n", "--- text\n...\n"]
)
def test_other_answers_have_no_values(answer: str) -> None:
    assert values_of(answer) is None


def test_tuples_are_a_table() -> None:
    assert as_tables("---\n- - [1, ann, {a: [2]}]\n  - [2, bob]\n...\n") == (
        "┌───┬─────┬──────────────┐\n"
        "│ 1 │ 2   │ 3            │\n"
        "├───┼─────┼──────────────┤\n"
        '│ 1 │ ann │ {"a": ["2"]} │\n'
        "│ 2 │ bob │              │\n"
        "└───┴─────┴──────────────┘\n"
        "2 rows\n"
    )


def test_maps_are_a_table_with_their_names() -> None:
    assert as_tables("---\n- - a: 1\n    b: x\n  - c: 2\n...\n") == (
        "┌───┬───┬───┐\n│ a │ b │ c │\n├───┼───┼───┤\n│ 1 │ x │   │\n│   │   │ 2 │\n└───┴───┴───┘\n2 rows\n"
    )


def test_a_result_of_sql_has_the_names_of_its_columns() -> None:
    answer = "---\n- metadata:\n  - name: A\n    type: integer\n  rows:\n  - [1]\n...\n"
    assert as_tables(answer) == "┌───┐\n│ A │\n├───┤\n│ 1 │\n└───┘\n1 row\n"


def test_other_values_are_lines() -> None:
    assert as_tables("---\n- 5\n- 'a\n\n  b'\n- []\n...\n") == "5\na\\nb\n0 rows\n"


def test_an_error_is_no_table() -> None:
    assert as_tables("---\n- error: bad\n...\n") == "---\n- error: bad\n...\n"
