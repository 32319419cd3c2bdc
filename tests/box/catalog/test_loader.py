"""Loading snapshots: what is restored, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, ErrorCode
from iproto_server.box.access.access_control import Privilege
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.loading.space_load import Report
from iproto_server.box.catalog.system_space_ids import COLLATION, FUNC, INDEX, PRIV, SPACE, USER
from iproto_server.codec import msgpack as codec
from tests.box.boxes import accounts, new_box
from tests.box.catalog.loads import ACCOUNTS, ID, Refused, everything, load, plain_box, refuse, snapshot
from tests.box.refusal import refusal
from tests.plugins.profiles import examples


def into(reports: list[str]) -> Report:
    """Collect the reasons why rows cannot be loaded."""
    return lambda reason, advice=None: reports.append(reason)


def packed(*rows: Sequence[Any]) -> list[bytes]:
    return [codec.pack(list(row)) for row in rows]


class TestSnapshots:
    def test_a_loaded_box_is_the_one_that_was_saved(self) -> None:
        box = plain_box()
        copy = load(snapshot(box))
        assert everything(copy) == everything(box)
        assert copy.schema.user.info("ann") == box.schema.user.info("ann")
        copy.space.kinds.insert([9, "z", 9, 9])
        with refusal(ErrorCode.TUPLE_FOUND):
            copy.space.kinds.insert([9, "zz", 9, 9])

    def test_a_new_box_is_not_part_of_it(self) -> None:
        """A database with other system spaces than a new box is loaded unchanged."""
        contents = snapshot(plain_box())
        del contents[COLLATION]
        contents[INDEX] = [raw for raw in contents[INDEX] if codec.unpack(raw)[:2] != [296, 1]]
        contents[SPACE].append(codec.pack([400, 1, "_later", "memtx", 0, {}, []]))
        contents[INDEX].append(codec.pack([400, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]]))
        contents[400] = packed([1, "from a later version"])
        box = load(contents)
        assert len(box.space._collation) == 0
        assert [index.id for index in box.space._func.index] == [0, 2]
        assert [list(row) for row in box.space._later.select()] == [[1, "from a later version"]]
        assert {number: sorted(rows) for number, rows in snapshot(box).items()} == {
            number: sorted(rows) for number, rows in contents.items()
        }

    def test_open_sessions_have_the_loaded_privileges(self) -> None:
        box, _ = new_box()
        session = box.session.open("binary", None)
        saved = plain_box()
        saved.schema.user.grant("guest", "read", "space", "kinds")
        with Loader(box.catalog, refuse) as loader:
            for space_id, rows in snapshot(saved).items():
                loader.load(space_id, rows)
            loader.finish()
        assert session.credentials is box.access.by_name("guest")
        assert session.credentials.objects["space", box.space.kinds.id] == Privilege.READ

    def test_functions_of_old_tarantools_have_fewer_fields(self) -> None:
        contents = snapshot(plain_box())
        contents[FUNC].append(codec.pack([500, 1, "old", 1, "LUA"]))
        function = load(contents).catalog.users.functions["old"]
        assert (function.id, function.setuid, function.language) == (500, True, "LUA")

    def test_system_rows_behind_others_take_effect_too(self) -> None:
        contents = snapshot(plain_box())
        late = {
            SPACE: packed([ID, 1, "late", "memtx", 0, {}, []]),
            INDEX: packed([ID, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]]),
            ID: packed([1], [2]),
        }
        box, _ = new_box()
        with Loader(box.catalog, refuse) as loader:
            for each in (contents, late):
                for space_id, rows in each.items():
                    loader.load(space_id, rows)
            loader.finish()
        assert [list(row) for row in box.space.late.select()] == [[1], [2]]

    @examples(30)
    @given(st.permutations(range(200)))
    def test_rows_may_come_in_any_order(self, order: list[int]) -> None:
        box, _ = new_box()
        accounts(box)
        space_id = box.space.accounts.id
        contents = snapshot(box)
        contents[space_id] = packed(*([number, str(number), number % 7] for number in order))
        loaded = load(contents).space.accounts
        assert [row[0] for row in loaded.select()] == list(range(200))
        assert [row[0] for row in loaded.index.balance.select()] == sorted(
            range(200), key=lambda n: (n % 7, n)
        )


@pytest.fixture
def contents() -> dict[int, list[bytes]]:
    """A snapshot of a box with accounts."""
    box, _ = new_box()
    assert accounts(box).id == ACCOUNTS
    return snapshot(box)


def test_users_of_the_same_name_are_both_loaded() -> None:
    """Without the unique index of their names there may be some. The last one has the name."""
    box = Box()
    for name in ("ann", "bob"):
        box.schema.user.create(name)
    box.space[INDEX].delete([USER, 2])
    ann, bob = (row[0] for row in box.space[USER].select() if row[2] in ("ann", "bob"))
    box.space[USER].update([bob], [("=", 2, "ann")])
    copy = load(snapshot(box))
    copy.space[USER].update([bob], [("=", 2, "bob")])
    copy.space[PRIV].replace([1, ann, "universe", 0, 1])
    assert copy.access.by_id(ann).name == "ann"
    copy.space[USER].update([ann], [("=", 2, "ann")])
    assert copy.access.by_name("ann").user_id == ann


class TestWhatCannotBeLoaded:
    """Strict loading raises the first fault; lenient loading reports and skips faulty rows."""

    def reports(self, contents: dict[int, list[bytes]], expected: str) -> Box:
        """Check the reports; return the box without faulty rows."""
        with pytest.raises(Refused) as caught:
            load(contents)
        assert str(caught.value) == expected
        reports: list[str] = []
        box = load(contents, into(reports))
        assert reports == [expected]
        assert everything(load(snapshot(box))) == everything(box)
        return box

    def test_a_primary_key_that_is_there(self, contents: dict[int, list[bytes]]) -> None:
        contents[ACCOUNTS] += packed([2, "Ben", 5])
        box = self.reports(
            contents, "Duplicate key exists in unique index 'primary' in space 'accounts': [2]"
        )
        assert [row[1] for row in box.space.accounts.select()] == ["Ann", "Bob", "Cid"]

    def test_a_unique_secondary_key_that_is_there(self, contents: dict[int, list[bytes]]) -> None:
        contents[ACCOUNTS] += packed([4, "Ann", 5])
        box = self.reports(
            contents, "Duplicate key exists in unique index 'name' in space 'accounts': ['Ann']"
        )
        assert [row[0] for row in box.space.accounts.select()] == [1, 2, 3]
        assert len(box.space.accounts.index.balance.tree) == 3

    @pytest.mark.parametrize("row", [["five", "Eve", 5], [5, 5, 5], [5], [-1, "Eve", 5]])
    def test_a_row_that_does_not_fit_an_index(self, contents: dict[int, list[bytes]], row: list[Any]) -> None:
        contents[ACCOUNTS] += packed(row)
        reports: list[str] = []
        box = load(contents, into(reports))
        (report,) = reports
        assert report.startswith("a row of space 'accounts': it does not fit its space (")
        assert report.endswith(f": {row}")
        assert len(box.space.accounts) == 3

    def test_rows_of_a_space_that_there_is_not(self, contents: dict[int, list[bytes]]) -> None:
        contents[900] = packed([1], [2])
        self.reports(contents, "there are rows of space 900, which has no definition")

    @pytest.mark.parametrize(
        ("options", "kind", "parts", "reason"),
        [
            ({"unique": False}, "rtree", [[3, "array"]], "This server does not support RTREE indexes"),
            ({"unique": False}, "bitset", [[3, "unsigned"]], "This server does not support BITSET indexes"),
            (
                {"unique": True, "func": 66},
                "tree",
                [{"field": 1, "type": "string"}],
                "This server does not support functional indexes",
            ),
            (
                {"unique": True},
                "tree",
                [{"field": 1, "type": "string", "collation": 999}],
                "Wrong index options (field 1): collation was not found by ID",
            ),
        ],
    )
    def test_an_index_that_is_not_served(
        self,
        contents: dict[int, list[bytes]],
        options: dict[str, Any],
        kind: str,
        parts: list[Any],
        reason: str,
    ) -> None:
        contents[INDEX] += packed([ACCOUNTS, 3, "odd", kind, options, parts])
        box = self.reports(contents, f"index 'odd' of space 'accounts': {reason}")
        assert [index.name for index in box.space.accounts.index] == ["primary", "name", "balance"]

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ([ID, 1, "disk", "vinyl", 0, {}, []], "Space engine 'vinyl' does not exist"),
            (
                [ID, 1, "agreed", "memtx", 0, {"is_sync": True}, []],
                "This server does not support synchronous spaces",
            ),
            (
                [ID, 1, "shown", "memtx", 0, {"view": True, "sql": "SELECT 1"}, []],
                "This server does not support SQL views",
            ),
        ],
    )
    def test_a_space_that_is_not_served(
        self, contents: dict[int, list[bytes]], row: list[Any], reason: str
    ) -> None:
        contents[SPACE] += packed(row)
        self.reports(contents, f"space '{row[2]}': {reason}")

    def test_a_row_of_another_system_space(self, contents: dict[int, list[bytes]]) -> None:
        contents[USER] += packed([40, 1])
        reports: list[str] = []
        load(contents, into(reports))
        (report,) = reports
        assert report == "a row of space '_user': Tuple field 3 required by space format is missing: [40, 1]"
