"""Tables on the terminal."""

from __future__ import annotations

from pyspark_tarantool.jobs.text_table import text_table


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    rows = [("mails", 5, 90.0), ("a long name", 12345, None)]
    assert text_table(["queue", "tasks", "age_p50_s"], rows).splitlines() == [
        "queue         tasks     age p50",
        "-----------  ------  ----------",
        "mails             5  1 min 30 s",
        "a long name  12\N{NO-BREAK SPACE}345           –",
    ]


def test_no_name_moves_the_cursor_or_fills_the_screen() -> None:
    table = text_table(["queue"], [("\x1b[2Jmails\n",), ("x" * 100,)])
    lines = table.splitlines()
    assert lines[2] == "\N{REPLACEMENT CHARACTER}[2Jmails\N{REPLACEMENT CHARACTER}"
    assert lines[3] == "x" * 59 + "…"


def test_no_rows_are_a_heading() -> None:
    assert text_table(["queue", "tasks"], []).splitlines() == ["queue  tasks", "-----  -----"]
