"""Backups: both servers start from what is restored, whichever of them wrote the database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.command_line import run
from tests.interchange.database.contents import assert_same
from tests.interchange.database.home import DIRECTIONS, Home, Server
from tests.interchange.database.statements import (
    Statement,
    atomically,
    create_index,
    create_space,
    delete,
    insert,
    replace,
    snapshot,
    update,
)

SPACES = [
    create_space(700, "jobs"),
    create_index("jobs", "pk", (1, "unsigned")),
    create_space(701, "local", is_local=True),
    create_index("local", "pk", (1, "unsigned")),
]


def changes(number: int) -> list[Statement]:
    """Some changes, each time to other rows."""
    return [
        insert(700, number, "new"),
        insert(701, number),
        atomically(["jobs", "insert", [number + 1000, "a"]], ["jobs", "insert", [number + 2000, "b"]]),
        update(700, [number], ["=", 1, f"job {number}"]),
        replace(700, number + 3000, "x" * 3000),
        delete(700, number + 1000),
    ]


def backed_up(*arguments: object) -> str:
    """Run a command that succeeds; return the last LSN that it tells."""
    outcome = run(*arguments)
    assert outcome.errors == []
    match = re.search(r"^LSN \d+ to (\d+)$", outcome.output, re.MULTILINE)
    assert match is not None
    return match[1]


def restored(directory: Path, backups: Sequence[Path], *options: object) -> Home:
    """Restore backups into a new directory."""
    assert run("restore", *backups, directory, *options).errors == []
    return Home(directory)


@pytest.mark.parametrize("first", DIRECTIONS, ids=lambda who: f"from-{who}")
class TestBothWays:
    def test_a_backup_of_a_running_server_with_its_continuations(
        self, home: Home, tmp_path: Path, first: Server
    ) -> None:
        backups = [tmp_path / f"backup {number}" for number in range(4)]
        states = []
        with home.of(first) as inhabitant:
            inhabitant.do([*SPACES, *changes(1), snapshot(), *changes(2)])
            for number, backup in enumerate(backups):
                since = ["--since", backups[number - 1]] if number else []
                backed_up("backup", home.directory, backup, *since)
                states.append(inhabitant.contents())
                inhabitant.do(changes(10 + number))
                if number == 1:
                    inhabitant.do([snapshot(), *changes(20)])
        for number in (1, 3):
            for who in (first, first.other):
                copy = restored(tmp_path / f"{who} {number}", backups[: number + 1])
                with copy.of(who) as inhabitant:
                    assert_same(inhabitant.contents(), states[number])
                    inhabitant.do([*changes(100), snapshot(), *changes(101)])
                    after = inhabitant.contents()
                with copy.of(who.other) as inhabitant:
                    assert_same(inhabitant.contents(), after)

    def test_a_point_in_time(self, home: Home, tmp_path: Path, first: Server) -> None:
        states = {}
        with home.of(first) as inhabitant:
            inhabitant.do([*SPACES, *changes(1), snapshot(), *changes(2)])
            for number in range(3, 6):
                inhabitant.do(changes(number))
                contents = inhabitant.contents()
                states[contents.position["lsn"]] = contents
            backup = tmp_path / "backup"
            backed_up("backup", home.directory, backup)
        for lsn, state in states.items():
            for who in (first, first.other):
                copy = restored(tmp_path / f"{who} {lsn}", [backup], "--to-lsn", lsn)
                with copy.of(who) as inhabitant:
                    assert_same(inhabitant.contents(), state)
                    inhabitant.do(changes(100))
                    after = inhabitant.contents()
                with copy.of(who.other) as inhabitant:
                    assert_same(inhabitant.contents(), after)
