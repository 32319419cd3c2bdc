"""docs/SECURITY.md states the limits as they are: its options, defaults, counters and tests exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from iproto_server.config.options import OPTIONS
from tests.programs import REPOSITORY
from tests.server.in_process import ServerInProcess

DOCUMENT = (REPOSITORY / "docs" / "SECURITY.md").read_text(encoding="utf-8")
COLUMNS = 5


class Limit(NamedTuple):
    """A row of the table."""

    limit: str
    option: str
    default: str
    counters: str
    tests: str


def limits() -> list[Limit]:
    """The rows of the table of limits."""
    [table] = re.findall(r"^\| limit \|.*\n\|[- |]+\|\n((?:\|.*\n)+)", DOCUMENT, re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]
    assert all(len(row) == COLUMNS for row in cells), cells
    return [Limit(*row) for row in cells]


def code(text: str) -> list[str]:
    """What is written as code in a cell."""
    return re.findall(r"`([^`]+)`", text)


def test_options_exist_with_these_defaults() -> None:
    options = {option.flag: option for option in OPTIONS}
    rows = [row for row in limits() if row.option.startswith("`--")]
    assert len(rows) > 10
    for row in rows:
        [flag, *_] = code(row.option)
        assert row.default == (options[flag].default or "off"), flag


def test_counters_exist(tmp_path: Path) -> None:
    named = {name for row in limits() for name in code(row.counters)}
    assert len(named) > 10
    with ServerInProcess(tmp_path, []) as server:

        async def counters() -> set[str]:
            return {name for name, _ in server.server.metrics()}

        assert named <= server.run(counters())


def test_tests_exist() -> None:
    for row in limits():
        assert code(row.tests), row
        for name in code(row.tests):
            assert (REPOSITORY / "tests" / name).is_file(), name
