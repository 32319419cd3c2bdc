"""Transactions of procedures: what they undo, their parts, and savepoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode, ManualClock
from tests.box.boxes import accounts, new_box, refused, rows, state
from tests.box.txn.failing_procedures import FullDisk, Refusal, fails, run

CHANGES: dict[str, Callable[[Any], object]] = {
    "insert": lambda space: space.insert([4, "Dan", 40]),
    "replace an old row": lambda space: space.replace([1, "Eve", 50, "note"]),
    "replace a new row": lambda space: space.replace([9, "Eve", 50]),
    "update an indexed field": lambda space: space.update(1, [("=", "balance", 99)]),
    "update a field without index": lambda space: space.update(1, [("=", "note", "a long note")]),
    "update by a secondary index": lambda space: space.index.name.update("Bob", [("+", "balance", 5)]),
    "upsert an old row": lambda space: space.upsert([1, "Ann", 0], [("+", "balance", 1)]),
    "upsert a new row": lambda space: space.upsert([7, "Gil", 0], [("+", "balance", 1)]),
    "delete": lambda space: space.delete(2),
    "delete by a secondary index": lambda space: space.index.name.delete("Cid"),
    "delete all, insert one": lambda space: [*map(space.delete, (1, 2, 3)), space.insert([1, "Cid", 3])],
    "swap unique keys": lambda space: [
        space.update(1, [("=", "name", "?")]),
        space.update(2, [("=", "name", "Ann")]),
        space.update(1, [("=", "name", "Bob")]),
    ],
    "truncate": lambda space: space.truncate(),
    "truncate and fill again": lambda space: [space.truncate(), space.insert([1, "New", 1]), space.delete(1)],
    "change, then truncate": lambda space: [space.delete(1), space.truncate(), space.truncate()],
    "create an index": lambda space: space.create_index("note", parts=[("note", "string")], unique=False),
    "create an index, then change": lambda space: [
        space.create_index("both", parts=["balance", "name"]),
        space.update(1, [("=", "balance", 7)]),
        space.insert([5, "Eve", 5]),
    ],
    "drop an index": lambda space: space.index.balance.drop(),
    "change, then drop an index": lambda space: [space.delete(1), space.index.name.drop(), space.delete(2)],
    "rename an index": lambda space: [space.index.name.rename("who"), space.delete(1)],
    "rename the space": lambda space: [space.rename("people"), space.delete(1)],
    "change the format": lambda space: [space.format(["id", "name", "balance"]), space.delete(1)],
    "drop": lambda space: space.drop(),
    "change, then drop": lambda space: [space.delete(1), space.insert([8, "Hal", 8]), space.drop()],
    "truncate, then drop": lambda space: [space.truncate(), space.drop()],
    "drop and create again": lambda space: [space.drop(), accounts(space.box).insert([4, "Dan", 4])],
}


class TestAProcedureIsOneTransaction:
    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
    def test_an_error_undoes_its_changes(self, change: Callable[[Any], object]) -> None:
        box, _ = new_box()
        space = accounts(box)
        before = state(space)
        fails(box, lambda: change(space))
        assert state(box.space.accounts) == before
        assert box.space.accounts.format()[0] == {"name": "id", "type": "unsigned"}
        assert [index.name for index in box.space.accounts.index] == ["primary", "name", "balance"]
        # Nothing left behind prevents a repetition.
        run(box, change, box.space.accounts)

    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
    def test_a_journal_that_refuses_undoes_it_too(self, change: Callable[[Any], object]) -> None:
        journal = FullDisk()
        box = Box(journal, ManualClock())
        space = accounts(box)
        before = state(space)
        journal.error = BoxError(ErrorCode.WAL_IO)
        assert refused(run, box, change, space) == (40, "Failed to write to disk")
        assert not box.is_in_txn()
        assert state(box.space.accounts) == before
        journal.error = None
        run(box, change, box.space.accounts)

    def test_it_sees_what_it_changed_itself(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> object:
            space.insert([4, "Dan", 40])
            return space.index.name.get("Dan")

        assert run(box, procedure) == [4, "Dan", 40]

    def test_its_result_is_returned(self) -> None:
        box, _ = new_box()
        assert run(box, lambda *arguments: arguments, 1, "two") == (1, "two")

    def test_an_error_that_it_survives_undoes_only_the_statement(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> None:
            space.insert([4, "Dan", 40])
            assert refused(space.insert, [5, "Dan", 50])[0] == ErrorCode.TUPLE_FOUND
            assert refused(space.insert, ["x"])[0] == ErrorCode.FIELD_TYPE

        run(box, procedure)
        assert [row[0] for row in rows(space)] == [1, 2, 3, 4]

    def test_even_a_keyboard_interrupt_undoes(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> None:
            space.truncate()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(box, procedure)
        assert (len(space), box.is_in_txn()) == (3, False)

    def test_there_is_none_inside_another(self) -> None:
        box, _ = new_box()
        code, text = refused(run, box, lambda: run(box, lambda: None))
        assert (code, text) == (79, "Operation is not permitted when there is an active transaction ")
        assert not box.is_in_txn()

    def test_the_session_is_the_callers_only_meanwhile(self) -> None:
        box, _ = new_box()
        session = box.session.open("binary", "somewhere")
        assert box.run(session, box.session.id) == session.id
        with pytest.raises(Refusal):
            box.run(session, self._refuse)
        assert box.session.current is box.session.background

    @staticmethod
    def _refuse() -> None:
        raise Refusal


class TestDefinitions:
    def test_a_space_with_indexes_and_rows_leaves_nothing(self) -> None:
        box, _ = new_box()
        before = (rows(box.space["_space"]), rows(box.space["_index"]), rows(box.space["_schema"]))
        fails(
            box,
            lambda: accounts(box),
            lambda: box.space.accounts.create_index("more", parts=["balance"], unique=False),
        )
        assert (rows(box.space["_space"]), rows(box.space["_index"]), rows(box.space["_schema"])) == before
        assert "accounts" not in box.space
        assert refused(box.space.__getitem__, "accounts") == (36, "Space 'accounts' does not exist")

    def test_a_face_of_a_space_that_never_was_is_of_no_use(self) -> None:
        box, _ = new_box()
        kept = []
        fails(box, lambda: kept.append(accounts(box)))
        assert refused(kept[0].insert, [1, "Ann", 1]) == (36, "Space 'accounts' does not exist")
        accounts(box)
        assert refused(kept[0].select)[0] == ErrorCode.NO_SUCH_SPACE

    def test_a_dropped_space_comes_back_with_its_rows_and_triggers(self) -> None:
        box, _ = new_box()
        space = accounts(box)
        told: list[Any] = []
        space.on_replace(lambda old, new: told.append(new))
        fails(box, space.drop)
        space.insert([4, "Dan", 40])
        assert [row[0] for row in rows(space)] == [1, 2, 3, 4]
        assert told == [[4, "Dan", 40]]

    def test_users_and_grants(self) -> None:
        box, _ = new_box()
        accounts(box)
        before = (rows(box.space["_user"]), rows(box.space["_priv"]))

        def create() -> None:
            box.schema.user.create("ann", password="secret")
            box.schema.user.grant("ann", "read", "space", "accounts")

        fails(box, create)
        assert (rows(box.space["_user"]), rows(box.space["_priv"])) == before
        assert refused(box.session.su, "ann")[0] == ErrorCode.NO_SUCH_USER
        run(box, create)

    def test_the_schema_version_never_goes_back(self) -> None:
        box, _ = new_box()
        before = box.info()["schema_version"]
        fails(box, lambda: accounts(box))
        assert box.info()["schema_version"] > before


class TestParts:
    def test_a_part_that_raises_is_undone_alone(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> None:
            space.delete(1)
            with pytest.raises(Refusal), box.in_transaction():
                space.delete(2)
                raise Refusal
            space.delete(3)

        run(box, procedure)
        assert rows(space) == [[2, "Bob", 20]]

    def test_parts_within_parts(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def inner() -> None:
            space.delete(2)
            raise Refusal

        def outer() -> None:
            space.delete(1)
            with pytest.raises(Refusal):
                box.atomic(inner)
            assert [row[0] for row in rows(space)] == [2, 3, 4]
            raise Refusal

        def procedure() -> None:
            space.insert([4, "Dan", 40])
            with pytest.raises(Refusal):
                box.atomic(outer)

        run(box, procedure)
        assert [row[0] for row in rows(space)] == [1, 2, 3, 4]

    def test_outside_of_a_transaction_a_part_is_one(self) -> None:
        box, _ = new_box()
        space = accounts(box)
        with box.in_transaction():
            assert box.is_in_txn()
            space.delete(1)
        assert not box.is_in_txn()
        with pytest.raises(Refusal), box.in_transaction():
            space.truncate()
            raise Refusal
        assert ([row[0] for row in rows(space)], box.is_in_txn()) == ([2, 3], False)

    def test_atomic_answers_what_the_function_does(self) -> None:
        box, _ = new_box()
        assert box.atomic(lambda *arguments: arguments, 1, 2) == (1, 2)

    def test_definitions_in_a_part(self) -> None:
        box, _ = new_box()
        space = accounts(box)
        before = state(space)

        def procedure() -> None:
            with pytest.raises(Refusal), box.in_transaction():
                space.drop()
                accounts(box).truncate()
                raise Refusal

        run(box, procedure)
        assert state(box.space.accounts) == before

    def test_a_part_cannot_outlive_its_transaction(self) -> None:
        box, _ = new_box()

        def procedure() -> None:
            with box.in_transaction():
                box.rollback()

        with pytest.raises(RuntimeError, match="cannot outlive"):
            run(box, procedure)
        assert not box.is_in_txn()


class TestByHand:
    def test_begin_and_commit(self) -> None:
        box, _ = new_box()
        space = accounts(box)
        box.begin()
        space.delete(1)
        box.commit()
        assert (len(space), box.is_in_txn()) == (2, False)

    def test_a_procedure_may_throw_away_what_it_did_and_go_on(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> None:
            space.truncate()
            box.rollback()
            space.delete(1)

        run(box, procedure)
        assert [row[0] for row in rows(space)] == [2, 3]

    def test_committed_changes_of_a_procedure_stay(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> None:
            space.delete(1)
            box.commit()
            box.begin()
            space.delete(2)
            raise Refusal

        with pytest.raises(Refusal):
            run(box, procedure)
        assert [row[0] for row in rows(space)] == [2, 3]

    def test_no_second_begin(self) -> None:
        box, _ = new_box()
        assert refused(run, box, box.begin)[0] == ErrorCode.ACTIVE_TRANSACTION

    def test_without_a_transaction_commit_and_rollback_do_nothing(self) -> None:
        box, _ = new_box()
        box.commit()
        box.rollback()
        assert not box.is_in_txn()


class TestSavepoints:
    def test_later_changes_are_undone(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> None:
            space.delete(1)
            savepoint = box.savepoint()
            space.delete(2)
            box.rollback_to_savepoint(savepoint)
            space.delete(3)

        run(box, procedure)
        assert rows(space) == [[2, "Bob", 20]]

    def test_one_serves_again_until_an_earlier_one_was_gone_back_to(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> None:
            first = box.savepoint()
            space.delete(1)
            second = box.savepoint()
            for _ in range(2):
                space.delete(2)
                box.rollback_to_savepoint(second)
            box.rollback_to_savepoint(first)
            space.delete(3)
            space.delete(2)
            assert refused(box.rollback_to_savepoint, second)[0] == ErrorCode.NO_SUCH_SAVEPOINT

        run(box, procedure)
        assert rows(space) == [[1, "Ann", 10]]

    def test_those_of_another_transaction_are_none(self) -> None:
        box, _ = new_box()
        savepoint = run(box, box.savepoint)
        text = "Can not rollback to savepoint: the savepoint does not exist"
        assert run(box, lambda: refused(box.rollback_to_savepoint, savepoint)) == (
            ErrorCode.NO_SUCH_SAVEPOINT,
            text,
        )

    def test_without_a_transaction_there_is_none(self) -> None:
        box, _ = new_box()
        savepoint = run(box, box.savepoint)
        none = (ErrorCode.NO_TRANSACTION, "No active transaction")
        assert refused(box.savepoint) == none
        assert refused(box.rollback_to_savepoint, savepoint) == none
