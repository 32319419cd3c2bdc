"""Answers as tables: lists of tuples, lists of maps, and results of SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any, Final

from rich.box import SQUARE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from iproto_server.tools.console.answers import is_error, values_of

_WIDTH: Final = 1_000_000
"""Lines are as long as they need to be; a pager scrolls them."""


def as_tables(answer: str) -> str:
    """Return an answer in YAML as tables, one for each value that is a list; others stay as they are.

    Parameters:
        answer: what the console shows.
    """
    values = values_of(answer)
    if values is None or is_error(answer):
        return answer
    return "".join(_shown(value) for value in values)


def _shown(value: Any) -> str:
    rows = _rows(value)
    if rows is None:
        return f"{_cell(value)}\n"
    columns, cells = rows
    if not cells:
        return "0 rows\n"
    table = Table(box=SQUARE)
    for column in columns:
        table.add_column(Text(column), no_wrap=True)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    output = StringIO()
    Console(file=output, width=_WIDTH, color_system=None, legacy_windows=False).print(table)
    count = f"{len(cells)} row{'s' if len(cells) != 1 else ''}"
    return f"{output.getvalue()}{count}\n"


def _rows(value: Any) -> tuple[list[str], list[list[str]]] | None:
    """The columns and the rows of a value, or None: it is no table."""
    if (
        isinstance(value, dict)
        and isinstance(value.get("rows"), list)
        and isinstance(value.get("metadata"), list)
    ):
        names = [
            str(each["name"]) if isinstance(each, dict) and "name" in each else ""
            for each in value["metadata"]
        ]
        return _tuples(value["rows"], names)
    if isinstance(value, dict):
        return list(map(str, value)), [[_cell(each) for each in value.values()]]
    if not isinstance(value, list):
        return None
    if value and all(isinstance(each, dict) for each in value):
        return _maps(value)
    if all(isinstance(each, list) for each in value):
        return _tuples(value, ())
    return _tuples([value], ())


def _tuples(rows: Sequence[Any], names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    width = max([len(names), *(len(row) for row in rows if isinstance(row, list))])
    columns = [*names, *(str(number) for number in range(len(names) + 1, width + 1))]
    return columns, [_padded(map(_cell, row if isinstance(row, list) else [row]), width) for row in rows]


def _maps(rows: Sequence[dict[Any, Any]]) -> tuple[list[str], list[list[str]]]:
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    texts = [{str(name): _cell(value) for name, value in row.items()} for row in rows]
    return columns, [[row.get(column, "") for column in columns] for row in texts]


def _padded(cells: Iterable[str], width: int) -> list[str]:
    found = list(cells)
    return found + [""] * (width - len(found))


def _cell(value: Any) -> str:
    """A value in one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
