"""docs/SECURITY.md states the limits as they are: its options, defaults, counters and tests exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from iproto_server.config.options import OPTIONS
from tests.programs import REPOSITORY
from tests.server.in_process import ServerInProcess

DOCUMENT = (REPOSITORY / "docs" / "SECURITY.md").read_text(encoding="utf-8")


class Limit(NamedTuple):
    """A limit: its rows in both tables."""

    name: str
    option: str
    default: str
    counters: list[str]
    tests: list[str]


def table(heading: str) -> list[list[str]]:
    """The cells of the table with that heading."""
    [rows] = re.findall(rf"^{re.escape(heading)}\n\|[- |]+\|\n((?:\|.*\n)+)", DOCUMENT, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in rows.splitlines()]


def limits() -> list[Limit]:
    """All limits. In the table of counters and tests, a row without a name continues the one before it."""
    found = [
        Limit(re.sub(r" \(\d\)$", "", name), option, default, [], [])
        for name, option, default in table("| limit | option | default |")
    ]
    remaining = iter(found)
    limit = found[0]
    for name, counter, test in table("| limit | counters | tests |"):
        if name:
            limit = next(remaining)
            assert limit.name == name
        limit.counters.extend(code(counter))
        limit.tests.extend(code(test))
    assert [limit.name for limit in remaining] == []
    return found


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
    named = {name for row in limits() for name in row.counters}
    assert len(named) > 10
    with ServerInProcess(tmp_path, []) as server:

        async def counters() -> set[str]:
            return {name for name, _ in server.server.metrics()}

        assert named <= server.run(counters())


def test_tests_exist() -> None:
    for row in limits():
        assert row.tests, row
        for name in row.tests:
            assert (REPOSITORY / "tests" / name).is_file(), name
