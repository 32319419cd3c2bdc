"""Interactive transactions: what they see, and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from iproto_server import Box, BoxError, ManualClock, Space
from iproto_server.errors import ErrorCode
from tests.box.boxes import refused, rows, state
from tests.box.txn.interactive_clients import CONFLICT, Client, UnwrittenJournal, others

TIMED_OUT = (ErrorCode.TRANSACTION_TIMEOUT, "Transaction has been aborted by timeout")
YIELDED = (ErrorCode.TRANSACTION_YIELD, "Transaction has been aborted by a fiber yield")


class TestWhatIsSeen:
    def test_others_see_nothing_before_the_commit_and_everything_after_it(
        self, box: Box, space: Space
    ) -> None:
        client = Client(box)
        before = others(box, state, space)
        client.do(space.insert, [4, "Dan", 40])
        client.do(space.update, 1, [("+", "balance", 5)])
        client.do(space.delete, 2)
        assert others(box, state, space) == before
        client.commit()
        assert others(box, rows, space) == [[1, "Ann", 15], [3, "Cid", 20], [4, "Dan", 40]]

    def test_code_outside_of_transactions_is_one_of_the_others(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.update, 1, [("=", "balance", 500), ("=", "name", "Zed")])
        assert rows(space)[0] == [1, "Ann", 10]
        client.do(space.get, 1)
        space.update(1, [("+", "balance", 1)])
        assert rows(space)[0] == [1, "Ann", 11]
        assert refused(client.commit) == CONFLICT
        assert [len(index.tree) for index in space.index] == [3, 3, 3]

    def test_and_so_it_is_with_sequences(self, box: Box) -> None:
        sequence = box.schema.sequence.create("numbers")
        client = Client(box)
        assert client.do(sequence.next) == 1
        assert sequence.next() == 2
        client.roll_back()
        [row] = box.space["_sequence_data"].select()
        assert list(row) == [sequence.id, 2]
        assert box.space["_sequence_data"].bsize() == len(row.raw)

    def test_it_sees_its_own_changes_by_every_index(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.insert, [4, "Dan", 15])
        others(box, space.get, 1)
        assert client.do(rows, space, 2) == [
            [1, "Ann", 10],
            [4, "Dan", 15],
            [2, "Bob", 20],
            [3, "Cid", 20],
        ]

    def test_a_rollback_leaves_nothing(self, box: Box, space: Space) -> None:
        before = state(space)
        client = Client(box)
        client.do(space.replace, [1, "Eve", 99])
        client.do(space.insert, [9, "Ann", 0])
        others(box, space.get, 1)
        client.roll_back()
        assert others(box, state, space) == before

    def test_it_sees_what_others_commit_as_long_as_it_has_not_looked(self, box: Box, space: Space) -> None:
        client = Client(box)
        others(box, space.insert, [4, "Dan", 40])
        assert len(client.do(rows, space)) == 4
        client.commit()

    def test_of_two_changes_of_one_row_both_are_undone(self, box: Box, space: Space) -> None:
        before = others(box, state, space)
        client = Client(box)
        for _ in range(3):
            client.do(space.update, 1, [("+", "balance", 5)])
            assert others(box, state, space) == before
        assert client.do(space.get, 1)[2] == 25
        client.commit()
        assert others(box, space.get, 1)[2] == 25


class TestEnds:
    def test_a_timeout_undoes_it_at_once_and_is_told_with_the_next_request(
        self, box: Box, space: Space, clock: ManualClock
    ) -> None:
        client = Client(box, timeout=5)
        client.do(space.insert, [4, "Dan", 40])
        clock.advance(4)
        assert client.do(space.get, 4) is not None
        clock.advance(1)
        assert len(space) == 3
        assert refused(client.do, space.get, 4) == TIMED_OUT
        assert refused(client.commit) == TIMED_OUT

    def test_no_timeout_runs_after_its_end(self, box: Box, space: Space, clock: ManualClock) -> None:
        client = Client(box, timeout=5)
        client.do(space.insert, [4, "Dan", 40])
        client.commit()
        clock.advance(10)
        assert others(box, len, space) == 4

    @pytest.mark.parametrize("timeout", [-1.0, float("nan"), -float("inf")])
    def test_a_timeout_is_a_time(self, box: Box, timeout: float) -> None:
        code, text = refused(box.interactive.begin, timeout)
        assert (code, text) == (ErrorCode.ILLEGAL_PARAMS, "timeout must be a number greater than 0")

    def test_there_are_five_isolation_levels(self, box: Box) -> None:
        for level in range(5):
            Client(box, isolation=level).commit()
        assert refused(box.interactive.begin, 0, 5) == (ErrorCode.ILLEGAL_PARAMS, "unknown isolation level")

    def test_ddl_cannot_wait_for_a_commit(self, box: Box, space: Space) -> None:
        before = state(space)
        client = Client(box)
        client.do(space.delete, 1)
        client.do(box.schema.create_space, "new")
        assert "new" not in box.space
        assert others(box, state, space) == before
        assert refused(client.do, space.get, 1) == YIELDED
        assert refused(client.commit) == YIELDED

    def test_others_ddl_conflicts_with_everything(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.insert, [4, "Dan", 40])
        others(box, box.schema.create_space, "new")
        assert refused(client.commit) == CONFLICT

    def test_a_procedure_may_commit_it_and_begin_another(self, box: Box, space: Space) -> None:
        def twice() -> None:
            space.insert([4, "Dan", 40])
            box.commit()
            box.begin()
            space.insert([5, "Eve", 50])

        client = Client(box)
        client.do(twice)
        assert [row[0] for row in others(box, rows, space)] == [1, 2, 3, 4]
        client.roll_back()
        assert [row[0] for row in others(box, rows, space)] == [1, 2, 3, 4]

    def test_callbacks_run_at_its_end(self, box: Box, space: Space) -> None:
        seen: list[str] = []
        for end in ("commit", "roll_back"):
            client = Client(box)
            client.do(box.on_commit, lambda: seen.append("committed"))
            client.do(box.on_rollback, lambda: seen.append("rolled back"))
            others(box, space.get, 1)
            assert seen == []
            getattr(client, end)()
            assert seen.pop() == {"commit": "committed", "roll_back": "rolled back"}[end]
            assert seen == []

    def test_triggers_hear_of_each_change_once_and_of_its_undoing(self, box: Box, space: Space) -> None:
        told: list[tuple[str, int]] = []
        space.on_replace(
            lambda old, new: told.append(("done", new[0])),
            undo=lambda old, new: told.append(("undone", new[0])),
        )
        client = Client(box)
        client.do(space.insert, [4, "Dan", 40])
        others(box, space.get, 1)
        client.do(space.get, 4)
        assert told == [("done", 4)]
        others(box, space.insert, [5, "Eve", 50])
        client.roll_back()
        assert told == [("done", 4), ("done", 5), ("undone", 4)]

    def test_a_conflict_tells_triggers_and_callbacks_at_once(self, box: Box, space: Space) -> None:
        told: list[str] = []
        space.on_replace(lambda old, new: None, undo=lambda old, new: told.append("undone"))
        client = Client(box)
        client.do(box.on_rollback, lambda: told.append("rolled back"))
        client.do(space.update, 1, [("=", "balance", 1)])
        others(box, space.update, 1, [("=", "balance", 2)])
        assert told == ["undone", "rolled back"]
        client.roll_back()
        assert told == ["undone", "rolled back"]

    def test_callbacks_of_one_that_a_commit_ends_follow_the_commit(self, box: Box, space: Space) -> None:
        told: list[str] = []

        def fail_in_a_transaction() -> None:
            told.append("rolled back")
            with pytest.raises(ZeroDivisionError):
                others(box, lambda: 1 // 0)

        def commit() -> None:
            box.on_commit(lambda: told.append("committed"))
            space.update(1, [("=", "balance", 2)])

        client = Client(box)
        client.do(box.on_rollback, fail_in_a_transaction)
        client.do(space.update, 1, [("=", "balance", 1)])
        others(box, commit)
        assert told == ["committed", "rolled back"]

    def test_their_changes_come_after_the_commit(self, box: Box, space: Space) -> None:
        writer, reader = Client(box), Client(box)
        writer.do(space.update, 1, [("=", "balance", 1)])
        writer.do(box.on_rollback, lambda: others(box, space.update, 1, [("=", "balance", 3)]))
        assert reader.do(space.get, 1)[2] == 10
        others(box, space.update, 1, [("=", "balance", 2)])
        assert others(box, space.get, 1)[2] == 3
        assert reader.do(space.get, 1)[2] == 10
        reader.commit()

    def test_and_after_all_is_undone_that_could_not_be_written(self, box: Box, space: Space) -> None:
        box.transactions.journal = UnwrittenJournal()
        others(box, space.update, 1, [("=", "balance", 11)])
        others(box, space.update, 1, [("=", "balance", 12)])
        client = Client(box)
        client.do(space.update, 1, [("+", "balance", 1)])
        client.do(box.on_rollback, lambda: others(box, space.update, 1, [("+", "balance", 100)]))
        box.transactions.undo(box.transactions.take_unwritten())
        assert others(box, space.get, 1)[2] == 110

    def test_nothing_is_kept_of_those_that_have_ended(self, box: Box, space: Space) -> None:
        for end in ("commit", "roll_back"):
            client = Client(box)
            client.do(space.select)
            client.do(space.delete, 3)
            getattr(client, end)()
        assert len(box.interactive) == 0
        assert box.transactions.on_change is None
        assert box.transactions.take_out is None


class TestInsideOfOne:
    def test_a_call_that_fails_undoes_what_it_did_itself(self, box: Box, space: Space) -> None:
        def fail() -> None:
            space.delete(2)
            raise ValueError

        client = Client(box)
        client.do(space.delete, 1)
        with pytest.raises(ValueError):
            client.do(box.run_inside, box.session.background, fail)
        client.commit()
        assert [row[0] for row in others(box, rows, space)] == [2, 3]

    def test_a_statement_that_fails_undoes_nothing_else(self, box: Box, space: Space) -> None:
        client = Client(box)
        client.do(space.delete, 1)
        with pytest.raises(BoxError):
            client.do(space.insert, [2, "Eve", 0])
        client.commit()
        assert [row[0] for row in others(box, rows, space)] == [2, 3]


class CountingList(list[Any]):
    """A list that counts accesses to its items."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.looks += 1
            yield item

    def __reversed__(self) -> Iterator[Any]:
        for item in super().__reversed__():
            self.looks += 1
            yield item


class CountingDict(dict[Any, Any]):
    """A dict that counts iterations over its items."""

    looks = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.looks += 1
            yield item


class TestCost:
    def test_a_commit_looks_at_no_transaction_that_has_nothing_to_do_with_it(
        self, box: Box, space: Space
    ) -> None:
        box.interactive._open = opened = CountingDict()
        clients = [Client(box) for _ in range(100)]
        reader = Client(box)
        reader.do(space.get, 1)
        others(box, space.update, 1, [("=", "balance", 1)])
        others(box, space.update, 2, [("=", "balance", 1)])
        assert opened.looks == 0
        assert reader.do(space.get, 1)[2] == 10
        for each in (reader, *clients):
            each.commit()
        assert box.interactive._viewing == {}

    def test_going_back_to_a_savepoint_looks_at_those_behind_it_only(self, box: Box) -> None:
        box._savepoints = savepoints = CountingList()
        box.begin()
        savepoint = box.savepoint()
        for _ in range(300):
            box.savepoint()
        for _ in range(300):
            before = savepoints.looks
            box.rollback_to_savepoint(savepoints[-1])
            assert savepoints.looks - before <= 3
            savepoint = box.savepoint()
        box.rollback_to_savepoint(savepoint)
        box.rollback()

    def test_ddl_is_noticed_behind_a_savepoint_that_was_gone_back_to(self, box: Box, space: Space) -> None:
        before = state(space)
        savepoints: list[Any] = []
        client = Client(box)
        client.do(lambda: savepoints.append(box.savepoint()))
        for number in (4, 5, 6):
            client.do(space.insert, [number, str(number), 0])

        def again() -> None:
            box.rollback_to_savepoint(savepoints[0])
            box.schema.create_space("new")
            for number in (4, 5, 6):
                space.insert([number, str(number), 0])

        client.do(again)
        assert refused(client.commit) == YIELDED
        assert "new" not in box.space
        assert others(box, state, space) == before
