"""What follows a commit or a rollback, an undo that fails, and the journal."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest

from iproto_server import Box, BoxError, ErrorCode, ManualClock
from iproto_server.box.index import index as index_module
from iproto_server.box.txn.transaction import EXIT_UNDOABLE
from tests.box.boxes import accounts, new_box, refused, rows, state
from tests.box.txn.failing_procedures import FullDisk, Refusal, fails, run


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
