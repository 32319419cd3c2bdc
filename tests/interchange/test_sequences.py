"""Sequences move with the directory: their definitions, their values, and the spaces that they number.

The value of a sequence is in a snapshot; in a log it follows from the rows that it has numbered and from
requests for the sequence itself. Values drawn for rows that are not in the log are drawn again after a start.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.interchange.database.contents import assert_same
from tests.interchange.database.home import DIRECTIONS, OURS, TARANTOOL, Home, Inhabitant, Server
from tests.interchange.database.statements import (
    Statement,
    atomically,
    call,
    create_index,
    create_space,
    delete,
    in_vain,
    insert,
    replace,
    snapshot,
    update,
    upsert,
)

ROWS, PAIRS, OWN, BACKWARDS = 700, 701, 702, 703
NAMES = ("shared", "own_seq", "down", "loop", "alone", "far")

DEFINITIONS = [
    call("box.schema.sequence.create", "shared"),
    call("box.schema.sequence.create", "down", {"step": -3, "min": -100, "max": 50, "start": 40}),
    call("box.schema.sequence.create", "loop", {"min": 2, "max": 4, "cycle": True, "cache": 7}),
    call("box.schema.sequence.create", "alone", {"start": 5}),
    call("box.schema.sequence.create", "far", {"min": -(2**63), "start": -(2**63) + 1}),
    create_space(ROWS, "rows"),
    create_index("rows", "pk", (1, "unsigned"), sequence="shared"),
    create_index("rows", "word", (2, "string")),
    create_space(PAIRS, "pairs"),
    create_index("pairs", "pk", (1, "string"), (3, "integer"), sequence={"id": "shared", "field": 3}),
    create_space(OWN, "own"),
    create_index("own", "pk", (1, "unsigned"), sequence=True),
    create_space(BACKWARDS, "backwards"),
    create_index("backwards", "pk", (2, "integer"), sequence="down"),
]

USES = [
    insert(ROWS, None, "a"),
    replace(ROWS, None, "b", [1]),
    insert(PAIRS, "p", {}, None),
    insert(PAIRS, "p", {}, 20),
    insert(ROWS, None, "c"),
    insert(OWN, None),
    insert(OWN, 7),
    insert(BACKWARDS, "x", None),
    insert(BACKWARDS, "x", None, "more"),
    call("box.sequence.loop:next"),
    call("box.sequence.alone:set", 77),
    call("box.sequence.far:next"),
    atomically(["rows", "insert", [None, "d"]], ["alone", "next"], ["own", "insert", [None]]),
    delete(ROWS, 22),
]
"""Leaves shared at 22, own_seq at 8, down at 37, loop at 2, alone at 78, far at the beginning."""

VALUES = {"shared": 22, "own_seq": 8, "down": 37, "loop": 2, "alone": 78, "far": -(2**63) + 1}

CHANGES = {
    "reset and set": [
        call("box.sequence.alone:reset"),
        call("box.sequence.loop:set", 99),
        call("box.sequence.shared:set", 5),
        call("box.sequence.down:set", 50),
    ],
    "used again": [
        in_vain(["rows", "insert", [None, "in vain"]], ["alone", "next"], ["loop", "set", 3]),
        call("box.sequence.shared:reset"),
        insert(PAIRS, "q", 0, None),
        call("box.sequence.down:reset"),
        in_vain(["own", "insert", [900]]),
        insert(OWN, None),
    ],
    "dropped": [
        call("box.sequence.alone:drop"),
        call("box.schema.sequence.create", "alone"),
        call("box.space.own:drop"),
        call("box.space.backwards.index.pk:drop"),
        call("box.sequence.down:drop"),
    ],
    "altered": [
        call("box.sequence.down:alter", {"step": 4, "name": "renamed"}),
        call("box.sequence.far:alter", {"max": 0}),
        call("box.space.own:truncate"),
        delete(ROWS, 1),
        replace(ROWS, 300, "explicit"),
        delete(ROWS, 300),
    ],
}

both_ways = pytest.mark.parametrize("first", DIRECTIONS, ids=lambda who: f"from-{who}")


def values(inhabitant: Inhabitant) -> dict[str, int | None]:
    """What each sequence has come to; None where it has not started."""
    answers = {name: inhabitant.call(f"box.sequence.{name}:current") for name in NAMES}
    return {name: answer.data[0] if answer.ok else None for name, answer in answers.items()}


def restarted(home: Home, who: Server, copy: Path) -> dict[str, int | None]:
    """Start a server in a copy of the directory, and return the values of the sequences."""
    shutil.copytree(home.directory, copy)
    with Home(copy).of(who) as inhabitant:
        return values(inhabitant)


def leave(home: Home, who: Server, *statements: Statement, after_snapshot: bool = False) -> None:
    """Create the sequences, use them, and kill the server."""
    with home.of(who) as inhabitant:
        inhabitant.do([*DEFINITIONS, *USES])
        if after_snapshot:
            inhabitant.do([snapshot()])
        inhabitant.do(statements)
        inhabitant.kill()


@both_ways
class TestSequences:
    @pytest.mark.parametrize("after_snapshot", [False, True], ids=["log", "snapshot"])
    def test_go_on_where_they_were(self, home: Home, first: Server, after_snapshot: bool) -> None:
        leave(home, first, after_snapshot=after_snapshot)
        with home.of(first.other) as inhabitant:
            assert values(inhabitant) == VALUES
            for space, row, expected in (
                (ROWS, [None, "z"], [23, "z"]),
                (PAIRS, ["p", 0, None], ["p", 0, 24]),
                (OWN, [None], [9]),
                (BACKWARDS, [1, None], [1, 34]),
            ):
                assert inhabitant.client.request(2, {0x10: space, 0x21: row}).data == [expected]
            assert inhabitant.call("box.sequence.loop:next").data == [3]
            assert inhabitant.call("box.sequence.alone:next").data == [79]
            inhabitant.kill()
        with home.of(first) as inhabitant:
            assert values(inhabitant) == {
                "shared": 24,
                "own_seq": 9,
                "down": 34,
                "loop": 3,
                "alone": 79,
                "far": VALUES["far"],
            }

    def test_are_defined_as_before(self, home: Home, first: Server) -> None:
        with home.of(first) as inhabitant:
            inhabitant.do([*DEFINITIONS, *USES])
            kept = inhabitant.contents()
            inhabitant.kill()
        with home.of(first.other) as inhabitant:
            assert_same(inhabitant.contents(), kept)
            inhabitant.do([snapshot()])
        with home.of(first) as inhabitant:
            written = inhabitant.contents()
            for index in ("_sequence.name", "_space_sequence.sequence", "rows.pk", "pairs.pk", "own.pk"):
                assert written.of(index) == kept.of(index) != []
            assert len(written.of("_sequence_data.primary")) == len(NAMES)

    @pytest.mark.parametrize("after_snapshot", [False, True], ids=["log", "snapshot"])
    @pytest.mark.parametrize("what", CHANGES)
    def test_are_the_same_for_both_after_a_start(
        self, home: Home, tmp_path: Path, first: Server, what: str, after_snapshot: bool
    ) -> None:
        leave(home, first, *CHANGES[what], after_snapshot=after_snapshot)
        found = [restarted(home, who, tmp_path / who) for who in DIRECTIONS]
        assert found[0] == found[1]

    def test_never_give_again_what_a_row_has_after_a_snapshot(
        self, home: Home, tmp_path: Path, first: Server
    ) -> None:
        """Rows of a snapshot move their sequence as rows of a log do."""
        leave(home, first, call("box.sequence.shared:set", 3), call("box.sequence.own_seq:reset"), snapshot())
        found = [restarted(home, who, tmp_path / who) for who in DIRECTIONS]
        assert found[0] == found[1] == {**VALUES, "shared": 21, "own_seq": 8}

    def test_are_moved_by_no_update_and_no_upsert_while_the_server_runs(
        self, home: Home, first: Server
    ) -> None:
        with home.of(first) as inhabitant:
            inhabitant.do(
                [
                    *DEFINITIONS,
                    *USES,
                    call("box.sequence.own_seq:reset"),
                    update(OWN, [7], ["=", 1, "changed"]),
                    upsert(OWN, [50, "upserted"], ["=", 1, "changed"]),
                ]
            )
            assert values(inhabitant) == {**VALUES, "own_seq": None}


def test_a_log_of_ours_puts_a_sequence_past_all_rows_it_tells_of(tmp_path: Path) -> None:
    """An update is logged as the resulting row, like an explicitly stored value."""
    for first, expected in ((OURS, 7), (TARANTOOL, 3)):
        directory = tmp_path / f"of {first}"
        directory.mkdir()
        home = Home(directory)
        leave(home, first, call("box.sequence.own_seq:set", 3), update(OWN, [7], ["=", 1, "changed"]))
        for who in DIRECTIONS:
            assert restarted(home, who, tmp_path / f"{first} read by {who}")["own_seq"] == expected
