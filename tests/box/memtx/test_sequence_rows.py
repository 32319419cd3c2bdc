"""The rows of `_sequence_data` when a snapshot updates them before a change of them is written."""

from __future__ import annotations

from iproto_server import Box
from iproto_server.box.memtx.sequence_data_space import SequenceDataSpace
from tests.queue_lua_compat.slow_journal import SlowJournal


def test_a_first_value_is_undone_after_a_snapshot_has_updated_it() -> None:
    journal = SlowJournal()
    box = Box(journal=journal)
    first, second = (box.schema.sequence.create(name) for name in ("first", "second"))
    rows = box.catalog.space_by_name("_sequence_data")
    assert isinstance(rows, SequenceDataSpace)
    journal.is_slow = True
    first.set(5)
    first.next()
    rows.catch_up()
    second.set(9)  # its record takes the memory of what would have been freed
    journal.lose(box)
    assert [list(row) for row in box.space["_sequence_data"].pairs()] == []
