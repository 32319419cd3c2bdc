"""Transactions: all changes of a procedure are kept, or none."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode, ManualClock
from iproto_server.box.index import index as index_module
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.box.txn.transaction import EXIT_UNDOABLE
from iproto_server.native._native import Transaction
from tests.box.boxes import accounts, new_box, refused, rows, state


class Refusal(Exception):
    """The error that procedures of these tests raise."""


class FullDisk(MemoryJournal):
    """A journal that refuses rows while `error` is set.

    Attributes:
        error: what `append` raises.
        taken: how many rows each transaction had.
    """

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.taken: list[int] = []

    def append(self, transaction: Transaction, /) -> bool:
        """Accept the rows, or raise."""
        if self.error is not None:
            raise self.error
        self.taken.append(len(transaction))
        return super().append(transaction)


def run(box: Box, function: Callable[..., Any], *arguments: object) -> Any:
    return box.run(box.session.background, function, *arguments)


def fails(box: Box, *steps: Callable[[], object]) -> None:
    """Run a procedure that performs these steps and then raises."""

    def procedure() -> None:
        for step in steps:
            step()
        raise Refusal

    with pytest.raises(Refusal):
        run(box, procedure)
    assert not box.is_in_txn()


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


class TestWhatFollows:
    def test_commit_callbacks_run_in_their_order_outside_of_the_transaction(self) -> None:
        box, _ = new_box()
        said: list[object] = []

        def procedure() -> None:
            box.on_commit(lambda: said.append(("first", box.is_in_txn())))
            box.on_rollback(lambda: said.append("rollback"))
            box.on_commit(lambda: said.append("second"))
            said.append("end")

        run(box, procedure)
        run(box, lambda: None)
        assert said == ["end", ("first", False), "second"]

    def test_rollback_callbacks_run_in_the_opposite_order_when_all_is_undone(self) -> None:
        box, _ = new_box()
        space = accounts(box)
        said: list[object] = []
        fails(
            box,
            lambda: box.on_rollback(lambda: said.append(("first", len(space), box.is_in_txn()))),
            lambda: box.on_commit(lambda: said.append("commit")),
            lambda: box.on_rollback(lambda: said.append("second")),
            space.truncate,
        )
        run(box, lambda: None)
        assert said == ["second", ("first", 3, False)]

    def test_outside_of_a_transaction(self) -> None:
        box, _ = new_box()
        said: list[str] = []
        box.on_commit(lambda: said.append("commit"))
        box.on_rollback(lambda: said.append("rollback"))
        fails(box)
        assert said == ["commit"]

    def test_those_of_an_undone_part(self) -> None:
        box, _ = new_box()
        said: list[str] = []

        def say(what: str) -> None:
            box.on_commit(lambda: said.append(f"{what} kept"))
            box.on_rollback(lambda: said.append(f"{what} undone"))

        def procedure() -> None:
            say("before")
            with pytest.raises(Refusal), box.in_transaction():
                say("part")
                say("more")
                raise Refusal
            assert said == ["more undone", "part undone"]
            say("after")

        run(box, procedure)
        assert said == ["more undone", "part undone", "before kept", "after kept"]

    @pytest.mark.parametrize("is_last", [True, False])
    def test_those_that_triggers_set_for_a_change_that_is_refused(self, *, is_last: bool) -> None:
        box, _ = new_box()
        space = accounts(box)
        said: list[str] = []

        def say(what: str) -> None:
            box.on_commit(lambda: said.append(f"{what} kept"))
            box.on_rollback(lambda: said.append(f"{what} undone"))

        def refuse(old: object, new: object) -> None:
            if not is_last:
                say("refused")
            if new is None:
                raise Refusal

        space.on_replace(refuse)
        space.on_replace(lambda old, new: say("change"))

        def procedure() -> None:
            say("before")
            with pytest.raises(Refusal):
                space.delete(1)
            assert said == (["change undone"] if is_last else ["refused undone", "change undone"])
            said.clear()
            say("after")

        run(box, procedure)
        assert said == ["before kept", "after kept"]
        assert space.get(1) is not None

    def test_a_journal_that_refuses_is_a_rollback(self) -> None:
        journal = FullDisk()
        box = Box(journal, ManualClock())
        space = accounts(box)
        journal.error = BoxError(ErrorCode.WAL_IO)
        said: list[str] = []

        def procedure() -> None:
            space.delete(1)
            box.on_commit(lambda: said.append("commit"))
            box.on_rollback(lambda: said.append("rollback"))

        assert refused(run, box, procedure)[0] == 40
        assert said == ["rollback"]

    @pytest.mark.parametrize("end", ["commit", "rollback"])
    def test_one_that_fails_keeps_none_from_its_turn(
        self, end: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        box, _ = new_box()
        said: list[str] = []

        def fail() -> None:
            raise Refusal("in a callback")

        def procedure() -> None:
            register = box.on_commit if end == "commit" else box.on_rollback
            for callback in (lambda: said.append("first"), fail, lambda: said.append("last")):
                register(callback)

        with caplog.at_level(logging.ERROR):
            if end == "commit":
                run(box, procedure)
            else:
                fails(box, procedure)
        assert sorted(said) == ["first", "last"]
        assert "in a callback" in caplog.text

    def test_they_may_change_rows_in_transactions_of_their_own(self) -> None:
        box, _ = new_box()
        space = accounts(box)

        def procedure() -> None:
            space.delete(1)
            box.on_commit(lambda: run(box, space.delete, 2))

        run(box, procedure)
        assert rows(space) == [[3, "Cid", 20]]
        fails(box, space.truncate, lambda: box.on_rollback(lambda: space.insert([4, "Dan", 40])))
        assert [row[0] for row in rows(space)] == [3, 4]


class TestUndoThatFails:
    """Memory may run out while a transaction is undone."""

    @pytest.fixture
    def attempts(self, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
        """For each key that Python makes, whether there is memory for it; True after the last one."""
        single = index_module._single
        has_memory: list[bool] = []

        def single_maybe(key_of: Any) -> Any:
            made = single(key_of)

            def keys_of(*arguments: Any) -> list[bytes]:
                if has_memory and not has_memory.pop(0):
                    raise MemoryError
                return made(*arguments)

            return keys_of

        monkeypatch.setattr(index_module, "_single", single_maybe)
        return has_memory

    @pytest.mark.parametrize("change", ["rows", "definitions"])
    def test_goes_on_where_it_was_when_more_is_undone(self, attempts: list[bool], change: str) -> None:
        box, _ = new_box()
        space = accounts(box)
        space.create_index("any name", parts=[{"field": "name", "type": "scalar"}], unique=False)
        before = state(space)
        counted: list[int] = []
        space.on_replace(lambda old, new: counted.append(1), undo=lambda old, new: counted.append(-1))

        def more() -> None:
            space.delete(2)
            if change == "rows":
                space.delete(3)
            else:
                box.schema.create_space("new")
            raise ZeroDivisionError

        box.begin()
        savepoint = box.savepoint()
        space.insert([4, "Dan", 40])
        changes = 2 if change == "rows" else 1
        attempts[:] = [*[True] * changes, False, *[True] * (changes - 1), False, True]
        with pytest.raises(MemoryError):
            box.atomic(more)
        with pytest.raises(MemoryError):
            box.rollback_to_savepoint(savepoint)
        box.transactions.rollback()
        assert (state(space), sum(counted), box.is_in_txn()) == (before, 0, False)
        assert "new" not in box.space
        assert attempts == []

    @pytest.mark.parametrize("is_committed", [False, True])
    def test_of_a_whole_transaction_ends_the_process(self, is_committed: bool) -> None:
        code = f"""
from iproto_server import Box, ManualClock
from iproto_server.box.index import index as index_module
from tests.box.boxes import accounts

class Journal:
    vclock = {{}}
    def append(self, statements): return True

single, has_memory = index_module._single, True

def single_maybe(key_of):
    made = single(key_of)

    def keys_of(*arguments):
        if not has_memory:
            raise MemoryError
        return made(*arguments)

    return keys_of

index_module._single = single_maybe
box = Box(Journal(), ManualClock())
space = accounts(box)
space.create_index("any name", parts=[{{"field": "name", "type": "scalar"}}], unique=False)
transactions = box.transactions
transactions.take_unwritten()
box.begin()
space.delete(2)
has_memory = False
if {is_committed}:
    box.commit()
    transactions.undo(transactions.take_unwritten())
else:
    transactions.rollback()
print("goes on")
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (EXIT_UNDOABLE, "")
        assert "cannot undo a transaction" in done.stderr
        assert "MemoryError" in done.stderr


class TestJournal:
    def test_it_is_given_each_transaction_once_and_nothing_that_was_undone(self) -> None:
        journal = FullDisk()
        box = Box(journal, ManualClock())
        space = accounts(box)
        journal.taken.clear()
        run(box, lambda: [space.delete(1), space.delete(2)])
        fails(box, space.truncate)
        run(box, len, space)
        space.delete(3)
        space.delete(4)
        assert journal.taken == [2, 1]

    def test_a_statement_on_its_own_is_undone_too(self) -> None:
        journal = FullDisk()
        box = Box(journal, ManualClock())
        space = accounts(box)
        before = state(space)
        journal.error = BoxError(ErrorCode.WAL_IO)
        assert refused(space.insert, [4, "Dan", 40])[0] == 40
        assert refused(space.truncate)[0] == 40
        assert refused(space.drop)[0] == 40
        assert refused(accounts, box)[0] == ErrorCode.SPACE_EXISTS
        assert (state(box.space.accounts), box.is_in_txn()) == (before, False)

    def test_any_fault_of_it_undoes(self) -> None:
        journal = FullDisk()
        box = Box(journal, ManualClock())
        space = accounts(box)
        journal.error = OSError("no space left on device")
        with pytest.raises(OSError, match="no space left"):
            run(box, space.truncate)
        assert (len(space), box.is_in_txn()) == (3, False)

    def test_a_transaction_without_changes_does_not_need_it(self) -> None:
        journal = FullDisk()
        box = Box(journal, ManualClock())
        space = accounts(box)
        journal.error = BoxError(ErrorCode.WAL_IO)
        said: list[str] = []

        def procedure() -> None:
            space.delete(9)
            space.select()
            box.on_commit(lambda: said.append("commit"))

        run(box, procedure)
        assert said == ["commit"]

    def test_rows_are_numbered(self) -> None:
        box, _ = new_box()
        space = accounts(box)
        before = box.info()["lsn"]
        run(box, lambda: [space.delete(1), space.delete(2)])
        assert box.info()["lsn"] == before + 2
