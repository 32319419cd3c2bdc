"""Rows that a transaction hides behind older versions are the same records again afterwards.

A statement that is not written yet refers to the record that it has made, and is undone by it.
"""

from __future__ import annotations

import pytest

from iproto_server import Box, Space
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.txn.interactive_transaction import InteractiveTransaction
from iproto_server.native._native import HeldRecord
from tests.box.boxes import accounts, rows, state
from tests.queue_lua_compat.slow_journal import SlowJournal


@pytest.fixture
def journal() -> SlowJournal:
    return SlowJournal()


@pytest.fixture
def box(journal: SlowJournal) -> Box:
    return Box(journal=journal)


@pytest.fixture
def core(space: Space) -> MemtxSpace:
    core = space.core()
    assert isinstance(core, MemtxSpace)
    return core


def key_of(core: MemtxSpace, number: int) -> bytes:
    return core.primary_index().key_of([number], b"")


def read(box: Box, transaction: InteractiveTransaction, space: Space, key: int) -> object:
    """Read a row in a request of a transaction."""
    box.interactive.resume(transaction)
    try:
        return space.get(key)
    finally:
        box.interactive.suspend()


@pytest.mark.parametrize("is_read_again", [True, False], ids=["it reads again", "it only commits"])
def test_a_change_is_undone_that_a_transaction_does_not_see(
    box: Box, journal: SlowJournal, space: Space, is_read_again: bool
) -> None:
    viewer = box.interactive.begin()
    assert read(box, viewer, space, 4) is None
    assert read(box, viewer, space, 2) == [2, "Bob", 20]
    space.update(2, [("=", 1, "Bea")])
    before = state(space)
    journal.is_slow = True
    space.insert([4, "new", 20])
    if is_read_again:
        # The old version of row 2 is in the space meanwhile, in the memory of what would have been freed.
        assert read(box, viewer, space, 2) == [2, "Bob", 20]
    box.interactive.commit(viewer)
    journal.lose(box)
    assert state(space) == before


class TestExchange:
    def test_a_record_is_held_while_it_is_out(self, core: MemtxSpace, space: Space) -> None:
        before = state(space)
        held = core.exchange(key_of(core, 2), None)
        assert isinstance(held, HeldRecord)
        assert [row[0] for row in rows(space)] == [1, 3]
        assert core.exchange(key_of(core, 2), held) is None
        assert state(space) == before

    def test_a_record_can_be_put_in_once(self, core: MemtxSpace) -> None:
        held = core.exchange(key_of(core, 2), None)
        core.exchange(key_of(core, 2), held)
        with pytest.raises(TypeError, match="a record that was taken out of this space"):
            core.exchange(key_of(core, 2), held)

    def test_a_record_of_another_space_is_refused(self, core: MemtxSpace) -> None:
        theirs = accounts(Box()).core()
        held = theirs.exchange(key_of(core, 1), None)
        with pytest.raises(TypeError, match="a record that was taken out of this space"):
            core.exchange(key_of(core, 1), held)

    @pytest.mark.parametrize("row", [1, "text", [1]])
    def test_a_row_is_packed(self, core: MemtxSpace, row: object) -> None:
        with pytest.raises(TypeError, match=r"exchange\(\) takes bytes, None, or a record"):
            core.exchange(key_of(core, 1), row)  # type: ignore[arg-type]

    def test_a_record_that_is_not_put_in_again_is_freed(self, core: MemtxSpace, space: Space) -> None:
        assert core.exchange(key_of(core, 2), None) is not None
        assert core.exchange(key_of(core, 2), None) is None
        space.insert([2, "Bob", 20])
        assert [row[0] for row in rows(space)] == [1, 2, 3]
