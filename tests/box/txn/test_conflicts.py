"""Conflicts of interactive transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, BoxError, ManualClock, Space, Tuple
from iproto_server.box.txn import read_set
from iproto_server.errors import ErrorCode
from tests.box.boxes import new_box, refused, rows, state
from tests.box.txn.interactive_clients import CONFLICT, Client, UnwrittenJournal, others
from tests.plugins.profiles import examples


class TestConflicts:
    def test_a_changed_read_ends_a_writing_transaction(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.get, 1)
        client.do(space.update, 2, [("+", "balance", 10)])
        others(box, space.update, 1, [("-", "balance", 10)])
        assert refused(client.commit) == CONFLICT
        assert others(box, rows, space) == [[1, "Ann", 0], [2, "Bob", 20], [3, "Cid", 20]]

    def test_every_request_of_it_hears_so_until_it_is_rolled_back(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.update, 1, [("+", "balance", 10)])
        others(box, space.delete, 1)
        assert refused(client.do, space.get, 2) == CONFLICT
        assert refused(client.do, space.insert, [7, "Gil", 0]) == CONFLICT
        client.roll_back()
        assert others(box, len, space) == 2

    @pytest.mark.parametrize(
        "read",
        [
            lambda space: space.select(),
            lambda space: space.select(iterator="GE", limit=5),
            lambda space: space.get(4),
            lambda space: list(space.pairs()),
            lambda space: space.len(),
            lambda space: space.count(),
            lambda space: space.count(2, iterator="GE"),
            lambda space: space.index["balance"].count(40),
            lambda space: space.index["name"].get("Dan"),
            lambda space: space.index["name"].select("D", iterator="GE"),
            lambda space: space.index["balance"].select(40),
            lambda space: space.index["balance"].max(),
            lambda space: space.index["balance"].first(40),
            lambda space: space.index["balance"].select(iterator="REQ", limit=1),
        ],
    )
    def test_a_row_that_was_looked_for_in_vain_conflicts_when_it_comes(
        self, box: Box, space: Space, read: Callable[[Space], object]
    ) -> None:
        client = Client(box)
        client.do(read, space)
        client.do(space.delete, 3)
        others(box, space.insert, [4, "Dan", 40])
        assert refused(client.commit) == CONFLICT

    @pytest.mark.parametrize(
        "read",
        [
            lambda space: space.get(1),
            lambda space: space.select(2, iterator="LE"),
            lambda space: space.select(limit=2),
            lambda space: space.index["name"].get("Ann"),
            lambda space: space.index["balance"].first(),
            lambda space: space.index["balance"].select(10),
            lambda space: space.select(limit=0),
        ],
    )
    def test_other_changes_do_not_end_it(
        self, box: Box, space: Space, read: Callable[[Space], object]
    ) -> None:
        client = Client(box)
        client.do(read, space)
        client.do(space.delete, 3)
        others(box, space.insert, [4, "Dan", 40])
        client.commit()
        assert [row[0] for row in others(box, rows, space)] == [1, 2, 4]

    def test_a_row_that_moves_out_of_what_was_read_conflicts(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.index["balance"].select, 20)
        client.do(space.delete, 1)
        others(box, space.update, 3, [("=", "balance", 99)])
        assert refused(client.commit) == CONFLICT

    def test_of_two_inserts_of_one_key_the_first_to_commit_wins(self, box: Box, space: Space) -> None:
        one, two = Client(box), Client(box)
        one.do(space.insert, [4, "Dan", 1])
        two.do(space.insert, [4, "Eve", 2])
        two.commit()
        assert refused(one.commit) == CONFLICT
        assert others(box, space.get, 4)[1] == "Eve"

    def test_of_two_rows_with_one_unique_key_too(self, box: Box, space: Space) -> None:
        one, two = Client(box), Client(box)
        one.do(space.insert, [4, "Dan", 1])
        two.do(space.insert, [5, "Dan", 2])
        one.commit()
        assert refused(two.commit) == CONFLICT
        assert [row[0] for row in others(box, rows, space)] == [1, 2, 3, 4]

    def test_a_row_that_is_overwritten_unseen_does_not_conflict(self, box: Box) -> None:
        plain = box.schema.create_space("plain")
        plain.create_index("primary")
        client = Client(box)
        client.do(plain.replace, [1, "ours"])
        others(box, plain.replace, [1, "theirs"])
        assert client.do(plain.get, 1)[1] == "ours"
        assert others(box, plain.get, 1)[1] == "theirs"
        client.commit()
        assert others(box, rows, plain) == [[1, "ours"]]

    def test_lost_updates_cannot_happen(self, box: Box, space: Space) -> None:
        one, two = Client(box), Client(box)
        one.do(space.update, 1, [("+", "balance", 1)])
        two.do(space.update, 1, [("+", "balance", 1)])
        one.commit()
        assert refused(two.commit) == CONFLICT
        assert others(box, space.get, 1)[2] == 11

    def test_write_skew_cannot_happen(self, box: Box, space: Space) -> None:
        one, two = Client(box), Client(box)
        for client in (one, two):
            client.do(space.get, 2)
            client.do(space.get, 3)
        one.do(space.update, 2, [("=", "balance", 0)])
        two.do(space.update, 3, [("=", "balance", 0)])
        one.commit()
        assert refused(two.commit) == CONFLICT

    def test_those_that_have_only_read_go_on_seeing_what_was_there(self, box: Box, space: Space) -> None:
        client = Client(box)
        before = client.do(state, space)
        others(box, space.update, 1, [("=", "balance", 99)])
        others(box, space.insert, [4, "Dan", 40])
        others(box, space.delete, 2)
        others(box, space.update, 1, [("=", "balance", 100)])
        assert client.do(state, space) == before
        assert others(box, rows, space) == [[1, "Ann", 100], [3, "Cid", 20], [4, "Dan", 40]]
        client.commit()

    def test_a_unique_key_that_passed_to_another_row_is_still_that_of_the_old_one(
        self, box: Box, space: Space
    ) -> None:
        client = Client(box)
        before = client.do(state, space)
        others(box, space.delete, 1)
        others(box, space.insert, [4, "Ann", 10])
        others(box, space.replace, [2, "Bea", 20])
        others(box, space.replace, [3, "Bob", 20])
        after = others(box, state, space)
        assert client.do(state, space) == before
        assert others(box, state, space) == after
        assert others(box, space.index["name"].get, "Ann")[0] == 4
        client.commit()

    def test_a_procedure_that_ends_such_a_one_leaves_no_old_rows(self, box: Box, space: Space) -> None:
        for end in (box.commit, box.rollback):
            client = Client(box)
            client.do(space.select)
            others(box, space.update, 1, [("+", "balance", 1)])
            after = others(box, state, space)
            client.do(end)
            assert others(box, state, space) == after
            if client.transaction is not None:
                client.roll_back()

    def test_and_cannot_write_any_more(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.get, 1)
        others(box, space.update, 1, [("=", "balance", 99)])
        assert refused(client.do, space.insert, [5, "Eve", 5]) == CONFLICT
        assert client.do(space.get, 1)[2] == 10
        client.roll_back()
        assert others(box, len, space) == 3

    def test_one_that_would_have_to_remember_too_much_is_given_up(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.select)
        for number in range(100, 10_102):
            others(box, space.insert, [number, f"name {number}", 0])
        assert refused(client.do, space.get, 1) == CONFLICT

    def test_nothing_is_remembered_for_one_that_cannot_go_on(
        self, box: Box, space: Space, clock: ManualClock
    ) -> None:
        client = Client(box, timeout=1)
        client.do(space.select)
        others(box, space.delete, 1)
        clock.advance(2)
        others(box, space.delete, 2)
        assert client.transaction is not None
        assert client.transaction.view is None
        assert list(client.transaction.reads) == []
        assert len(box.interactive) == 0

    def test_the_error_of_one_that_cannot_go_on_is_a_new_one_each_time(
        self, box: Box, space: Space, clock: ManualClock
    ) -> None:
        # One error object raised repeatedly would keep the frames of all requests in memory.
        client = Client(box, timeout=1)
        clock.advance(2)
        errors = []
        for _ in range(2):
            with pytest.raises(BoxError) as caught:
                client.do(space.get, 1)
            errors.append(caught.value)
        assert errors[0] is not errors[1]

    def test_a_row_that_kept_another_out_was_seen(self, box: Box, space: Space) -> None:
        client = Client(box)
        assert refused(client.do, space.insert, [1, "Eve", 0])[0] == ErrorCode.TUPLE_FOUND
        client.do(space.insert, [9, "there is a 1", 0])
        others(box, space.delete, 1)
        assert refused(client.commit) == CONFLICT

    def test_many_reads_are_remembered_as_one(self, box: Box, space: Space) -> None:
        client = Client(box)
        for number in range(1000, 2000):
            client.do(space.select, number, iterator="GE", limit=1)
            client.do(space.select, number, iterator="LE", limit=1)
        client.do(space.delete, 2)
        others(box, space.insert, [1500, "Ida", 0])
        assert refused(client.commit) == CONFLICT

    def test_and_so_are_many_keys(self, box: Box, space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(read_set, "_KEYS_MAX", 10)
        client = Client(box)
        for number in range(1000, 1025):
            client.do(space.get, number)
        client.do(space.delete, 2)
        others(box, space.insert, [2000, "Ida", 0])
        client.do(space.get, 1030)
        others(box, space.insert, [1001, "Ivo", 0])
        assert refused(client.commit) == CONFLICT

    def test_an_unwritable_change_that_was_read_conflicts(self, box: Box, space: Space) -> None:
        box.transactions.journal = UnwrittenJournal()
        others(box, space.update, 1, [("=", "balance", 99)])
        client = Client(box)
        assert client.do(space.get, 1)[2] == 99
        client.do(space.delete, 2)
        box.transactions.undo(box.transactions.take_unwritten())
        assert others(box, space.get, 1)[2] == 10
        assert refused(client.commit) == CONFLICT
        assert others(box, len, space) == 3


operation = st.tuples(
    st.sampled_from(["get", "replace", "insert", "update", "delete", "select", "commit", "roll back"]),
    st.integers(0, 2),
    st.integers(1, 6),
    st.integers(0, 3),
)


class Refusal(Exception):
    """The error of triggers."""


def set_triggers(box: Box, space: Space) -> None:
    """Set triggers that write to another space, and refuse some of the changes before or after that."""
    log = box.space.log

    def count(old: Tuple | None, new: Tuple | None) -> object:
        row = new or old
        assert row is not None
        log.upsert([row[0], 1], [("+", 1, 1)])
        log.replace([10 + row[1], row[0]])
        if row[0] == 2 and row[1] == 1:
            raise Refusal("before")
        return [new[0], new[1] + 1] if new is not None and new[0] == 3 and new[1] == 0 else None

    def refuse(old: Tuple | None, new: Tuple | None) -> None:
        row = new or old
        assert row is not None
        log.replace([20 + row[0], row[1]])
        if row[0] == 4 and row[1] == 2:
            raise Refusal("after")

    def go_on(old: Tuple | None, new: Tuple | None) -> None:
        # Some of these rows cause further ones, up to the greatest nesting.
        if new is not None and (new[0] in (15, 25) or new[0] > 100):
            log.replace([max(new[0], 100) + 1, 0])

    space.before_replace(count)
    space.on_replace(refuse)
    log.on_replace(go_on)


@examples(150)
@given(st.lists(operation, max_size=40), st.booleans(), st.booleans())
def test_all_that_commit_might_as_well_have_run_one_after_another(
    operations: list[tuple[str, int, int, int]], is_unique: bool, has_triggers: bool
) -> None:
    def new_space() -> tuple[Box, Space]:
        box, _ = new_box()
        space = box.schema.create_space("t")
        space.create_index("primary")
        space.create_index("value", parts=[1], unique=is_unique)
        box.schema.create_space("log").create_index("primary")
        if has_triggers:
            set_triggers(box, space)
        return box, space

    box, space = new_space()
    history: list[list[tuple[str, int, int, object]]] = []
    clients: dict[int, tuple[Client, list[tuple[str, int, int, object]]]] = {}

    def perform(target: Space, kind: str, key: int, value: int) -> object:
        try:
            if kind == "get":
                return _plain(target.get(key))
            if kind == "select":
                return [list(row) for row in target.index["value"].select(value)]
            if kind == "replace":
                return _plain(target.replace([key, value]))
            if kind == "insert":
                return _plain(target.insert([key, value]))
            if kind == "update":
                return _plain(target.update(key, [("+", 1, value)]))
            return _plain(target.delete(key))
        except Refusal as error:
            return str(error)
        except BoxError as error:
            if error.code == ErrorCode.TRANSACTION_CONFLICT:
                raise
            return error.message

    readers: list[list[tuple[str, int, int, object]]] = []
    for kind, who, key, value in operations:
        if kind in ("commit", "roll back"):
            if who in clients:
                client, log = clients.pop(who)
                if kind == "roll back":
                    client.roll_back()
                    continue
                was_in_view = client.transaction is not None and client.transaction.view is not None
                try:
                    client.commit()
                except BoxError:
                    continue
                (readers if was_in_view else history).append(log)
            continue
        if who not in clients:
            clients[who] = (Client(box), [])
        client, log = clients[who]
        try:
            log.append((kind, key, value, client.do(perform, space, kind, key, value)))
        except BoxError:
            client.roll_back()
            del clients[who]
    for client, _ in clients.values():
        client.roll_back()
    # Repeated one by one in the order of their commits, all read the same.
    other, replay = new_space()
    moments = [rows(replay)]
    unplaced = [log for log in readers if not _could_be_alone(replay, perform, log)]
    for log in history:
        assert [perform(replay, kind, key, value) for kind, key, value, _ in log] == [each[3] for each in log]
        moments.append(rows(replay))
        unplaced = [reader for reader in unplaced if not _could_be_alone(replay, perform, reader)]
    assert rows(replay) == rows(space)
    assert rows(other.space.log) == rows(box.space.log)
    assert state(replay) == state(space)
    assert unplaced == []


def _could_be_alone(
    space: Space, perform: Callable[..., object], log: list[tuple[str, int, int, object]]
) -> bool:
    """Whether a read-only transaction reads the same here."""
    return all(perform(space, kind, key, value) == found for kind, key, value, found in log)


def _plain(row: Any) -> list[Any] | None:
    return None if row is None else list(row)
