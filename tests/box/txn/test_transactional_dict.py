"""Transactional state outside the spaces: a dict and counters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iproto_server import Box, BoxError, ManualClock, Tally, TransactionalDict
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.native._native import Transaction
from tests.box.txn.interactive_clients import CONFLICT, Client, others


class SlowJournal(MemoryJournal):
    """A journal whose rows are not written yet."""

    def append(self, transaction: Transaction, /) -> bool:
        super().append(transaction)
        return True


class SideState:
    """A dict and a counter next to a space; `change` changes a row, too."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.space = box.schema.create_space("kept")
        self.space.create_index("primary", parts=[(0, "unsigned")])
        self.owners: TransactionalDict[int, str] = TransactionalDict(box, {1: "nobody", 2: "nobody"})
        self.numbers: dict[str, int] = {"changes": 0}
        self.tally: Tally[str] = Tally(box, self._add)

    def _add(self, key: str, amount: int) -> None:
        self.numbers[key] += amount

    def change(self, key: int, owner: str | None) -> None:
        self.space.upsert([key, 0], [("+", 1, 1)])
        if owner is None:
            self.owners.remove(key)
        else:
            self.owners.put(key, owner)
        self.tally.count("changes")

    @property
    def seen(self) -> tuple[dict[int, str], int]:
        """The committed state."""
        return others(self.box, lambda: (dict(self.owners.values), self.numbers["changes"]))  # type: ignore[no-any-return]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def beside(clock: ManualClock) -> SideState:
    return SideState(Box(clock=clock))


BEFORE = {1: "nobody", 2: "nobody"}


def fail(function: Callable[..., object], *arguments: object) -> None:
    function(*arguments)
    raise ZeroDivisionError


def test_a_transaction_changes_it(beside: SideState) -> None:
    others(beside.box, beside.change, 1, "ann")
    others(beside.box, beside.change, 2, None)
    others(beside.box, beside.change, 3, "bob")
    assert beside.seen == ({1: "ann", 3: "bob"}, 3)


@pytest.mark.parametrize("owner", ["ann", None])
@pytest.mark.parametrize("key", [1, 3])
def test_an_undone_change_has_no_effect(beside: SideState, key: int, owner: str | None) -> None:
    with pytest.raises(ZeroDivisionError):
        others(beside.box, fail, beside.change, key, owner)
    assert beside.seen == (BEFORE, 0)


def test_a_part_of_a_transaction_may_be_undone(beside: SideState) -> None:
    def change() -> None:
        beside.change(1, "ann")
        with pytest.raises(ZeroDivisionError):
            beside.box.atomic(fail, beside.change, 1, "bob")
        beside.change(2, "ann")

    others(beside.box, change)
    assert beside.seen == ({1: "ann", 2: "ann"}, 2)


def test_it_follows_when_the_log_cannot_be_written(beside: SideState) -> None:
    transactions = beside.box.transactions
    transactions.journal = SlowJournal()
    stream = Client(beside.box)
    stream.do(beside.change, 1, "ann")
    stream.commit()
    others(beside.box, beside.change, 1, "bob")
    assert beside.seen == ({1: "bob", 2: "nobody"}, 2)
    transactions.undo(transactions.take_unwritten())
    assert beside.seen == (BEFORE, 0)


class TestStreams:
    def test_only_the_transaction_sees_what_it_has_changed_until_it_commits(self, beside: SideState) -> None:
        stream = Client(beside.box)
        for owner in ("ann", "bob"):
            stream.do(beside.change, 1, owner)
            assert beside.seen == (BEFORE, 0)
        assert stream.do(lambda: (beside.owners.values[1], beside.numbers["changes"])) == ("bob", 2)
        stream.commit()
        assert beside.seen == ({1: "bob", 2: "nobody"}, 2)

    def test_two_transactions_see_each_its_own(self, beside: SideState) -> None:
        ann, bob = Client(beside.box), Client(beside.box)
        ann.do(beside.change, 1, "ann")
        bob.do(beside.change, 2, "bob")
        ann.do(beside.change, 3, "ann")
        assert bob.do(lambda: (dict(beside.owners.values), beside.numbers["changes"])) == (
            {1: "nobody", 2: "bob"},
            1,
        )
        bob.commit()
        assert beside.seen == ({1: "nobody", 2: "bob"}, 1)
        ann.commit()
        assert beside.seen == ({1: "ann", 2: "bob", 3: "ann"}, 3)

    @pytest.mark.parametrize("is_looked_at", [False, True])
    def test_a_rollback_takes_back_nothing_but_the_transactions_own(
        self, beside: SideState, *, is_looked_at: bool
    ) -> None:
        stream = Client(beside.box)
        stream.do(beside.change, 1, "ann")
        if is_looked_at:
            others(beside.box, beside.change, 2, "bob")
        stream.roll_back()
        assert beside.seen == ({1: "nobody", 2: "bob" if is_looked_at else "nobody"}, int(is_looked_at))

    @pytest.mark.parametrize("end", ["commit", "roll_back"])
    def test_a_conflict_reverts_nothing_of_the_winner(self, beside: SideState, end: str) -> None:
        stream = Client(beside.box)
        stream.do(beside.change, 1, "ann")
        others(beside.box, beside.change, 1, "bob")
        assert beside.seen == ({1: "bob", 2: "nobody"}, 1)
        if end == "commit":
            with pytest.raises(BoxError, match=CONFLICT[1]):
                stream.commit()
        else:
            stream.roll_back()
        assert beside.seen == ({1: "bob", 2: "nobody"}, 1)

    def test_a_timeout_reverts_nothing_of_others(self, beside: SideState, clock: ManualClock) -> None:
        stream = Client(beside.box, timeout=1)
        stream.do(beside.change, 1, "ann")
        clock.advance(1)
        assert beside.seen == (BEFORE, 0)
        others(beside.box, beside.change, 1, "bob")
        stream.roll_back()
        assert beside.seen == ({1: "bob", 2: "nobody"}, 1)

    def test_a_request_that_fails_is_undone_alone(self, beside: SideState) -> None:
        box, stream = beside.box, Client(beside.box)
        stream.do(beside.change, 1, "ann")
        with pytest.raises(ZeroDivisionError):
            stream.do(box.run_inside, box.session.background, fail, beside.change, 2, "ann")
        assert beside.seen == (BEFORE, 0)
        stream.commit()
        assert beside.seen == ({1: "ann", 2: "nobody"}, 1)

    def test_a_value_changed_back_counts_as_unchanged(self, beside: SideState) -> None:
        box, stream = beside.box, Client(beside.box)
        with pytest.raises(ZeroDivisionError):
            stream.do(box.run_inside, box.session.background, fail, beside.owners.put, 1, "ann")
        others(box, beside.change, 1, "bob")
        stream.commit()
        assert beside.seen == ({1: "bob", 2: "nobody"}, 1)

    def test_a_transaction_that_has_only_read_rows_keeps_what_it_changed_beside_them(
        self, beside: SideState
    ) -> None:
        stream = Client(beside.box)
        stream.do(beside.space.select)
        stream.do(beside.owners.put, 2, "ann")
        others(beside.box, beside.change, 1, "bob")
        stream.commit()
        assert beside.seen == ({1: "bob", 2: "ann"}, 1)

    def test_a_commit_within_a_procedure_keeps_it(self, beside: SideState) -> None:
        stream = Client(beside.box)

        def change_and_commit() -> None:
            beside.change(1, "ann")
            beside.box.commit()

        stream.do(change_and_commit)
        assert beside.seen == ({1: "ann", 2: "nobody"}, 1)
        others(beside.box, beside.change, 1, "bob")
        assert beside.seen == ({1: "bob", 2: "nobody"}, 2)
