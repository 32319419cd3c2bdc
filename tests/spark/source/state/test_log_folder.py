"""What changes make of the rows of a space: one by one, and those of many blocks together."""

from __future__ import annotations

from copy import copy
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import LogGapError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import RowEncoder, RowType, decode_rows, encode_row
from pyspark_tarantool.source.decode.log_span import ContinuityCheck, PerMember, counting
from pyspark_tarantool.source.decode.packed import Buffer
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from pyspark_tarantool.source.state.log_folder import LogFolder, NeedsFullReplay
from tests.spark.source.logged import changes_in, row_of, rows_in
from tests.storage.files import TIMESTAMP, deletion, insertion, replacement, update, upsert

SPACE: Final = 512
OTHER: Final = 513
FIRST: Final = 1000

KEYS: Final[dict[str, list[Any]]] = {
    "unsigned": [0, 127, 128, 300, 70_000, 2**32, 2**64 - 1],
    "number": [1, 300, 1.0, 0.5, -1],
    "string": ["", "a", "x" * 40],
    "scalar": [1, "a", True],
}


def space_of(kind: str, *, field: int = 0) -> SpaceDefinition:
    """A space with a primary key of one field."""
    index = (SPACE, 0, "primary", "tree", {"unique": True}, [[field, kind]])
    return SpaceDefinition(SPACE, "rows", 0, (), (index,), {}, False)


def everything() -> tuple[PerMember, PerMember]:
    """Limits within which all rows count."""
    return counting(VClock(), None, None)


def told(made: LogFolder) -> dict[bytes, Any]:
    """The states of all keys; operations that wait for their row are plain tuples."""
    return {
        key: [tuple(each) for each in state] if isinstance(state, list) else state
        for key, state in made.states.items()
    }


@st.composite
def payloads(draw: st.DrawFn, kind: str, *, are_plain: bool = False) -> list[bytes]:
    """Blocks of a log; plain ones do not update rows of the space."""
    keys = st.sampled_from(KEYS[kind])
    rows = st.tuples(keys, st.text(max_size=3))
    spaces = st.sampled_from([SPACE, SPACE, SPACE, OTHER])
    operations = st.sampled_from([[["=", 1, "new"]], [["=", 1, 7], ["!", 2, "more"]], [["=", 9, 0]]])
    requests = st.one_of(
        st.builds(lambda space, row: insertion(space, *row), spaces, rows),
        st.builds(lambda space, row: replacement(space, *row), spaces, rows),
        st.builds(deletion, spaces, keys),
        st.builds(
            lambda space, key, made: update(space, [key], made),
            st.just(OTHER) if are_plain else spaces,
            keys,
            operations,
        ),
    )
    if not are_plain and draw(st.booleans()):
        upserts = st.sampled_from(
            [[["=", 1, "more"]], [["=", 1, 5], ["+", 1, 2]], [["=", 0, 1]], [["+", 1, 1]], [["!", 0, 3]], []]
        )
        requests |= st.builds(lambda row, made: upsert(SPACE, row, made), rows, upserts)
    encoder = RowEncoder()
    lsn, found = FIRST, []
    for transaction in draw(st.lists(st.lists(requests, min_size=1, max_size=20), min_size=1, max_size=4)):
        found.append(encoder.transaction(lsn, TIMESTAMP, transaction))
        lsn += len(transaction)
    return found


@st.composite
def pairs(draw: st.DrawFn, kind: str) -> tuple[LogFolder, LogFolder]:
    """Two that have seen nothing yet, for the same task."""
    tasks = draw(st.integers(1, 3))
    task = draw(st.integers(0, tasks - 1))
    has_snapshot = draw(st.booleans())
    first, second = (
        LogFolder(space_of(kind), task, tasks, has_snapshot=has_snapshot, is_lenient=True) for _ in range(2)
    )
    return first, second


@st.composite
def limits(draw: st.DrawFn) -> tuple[PerMember, PerMember]:
    """Limits that some rows of `payloads` may be outside of."""
    start = draw(st.integers(FIRST - 2, FIRST + 3))
    end = draw(st.none() | st.integers(FIRST, FIRST + 50))
    return counting(VClock({1: start}), None if end is None else VClock({1: end}), None)


@pytest.mark.parametrize("kind", KEYS)
@given(data=st.data())
def test_rows_found_together_have_the_same_states(kind: str, data: st.DataObject) -> None:
    one_by_one, together = data.draw(pairs(kind))
    low, high = data.draw(limits())
    for payload in data.draw(payloads(kind)):
        changes, rows = changes_in(payload), rows_in(payload)
        one_by_one.apply_changes(changes, low, high)
        if rows is None or not data.draw(st.integers(0, 4)):
            together.apply_changes(changes, low, high)
        else:
            together.apply_rows(rows, low, high)
        assert told(together) == told(one_by_one)
    assert list(together.pending_upserts) == list(one_by_one.pending_upserts)


class TestPackedRows:
    """Rows of a log that are taken as they are packed."""

    @pytest.mark.parametrize("kind", KEYS)
    @given(data=st.data())
    def test_have_the_same_states(self, kind: str, data: st.DataObject) -> None:
        """Or are not taken at all; then nothing has changed."""
        one_by_one, packed = data.draw(pairs(kind))
        low, high = data.draw(limits())
        for payload in data.draw(payloads(kind, are_plain=data.draw(st.booleans()))):
            before, changes = told(packed), changes_in(payload)
            if not packed.apply_buffer(Buffer(payload), low, high):
                assert told(packed) == before
                packed.apply_changes(changes, low, high)
            one_by_one.apply_changes(changes, low, high)
            assert told(packed) == told(one_by_one)
        assert sorted(packed.rows()) == sorted(one_by_one.rows())

    def test_have_the_operations_of_upserts_and_updates_applied(self) -> None:
        """On rows of the logs; those on rows of the snapshot wait for them."""
        requests = [
            replacement(SPACE, 1, 5),
            upsert(SPACE, [1, 0], [["+", 1, 2]]),
            update(SPACE, [1], [["!", 2, "x"]]),
            upsert(SPACE, [2, 7], [["+", 1, 1]]),
            update(SPACE, [3], [["=", 1, 1]]),
            upsert(SPACE, [4, 0], [["=", 0, 9]]),
            replacement(SPACE, 4, 4),
            upsert(SPACE, [4, 0], [["=", 0, 9]]),
        ]
        payload = Buffer(RowEncoder().transaction(FIRST, TIMESTAMP, requests))
        alone = LogFolder(space_of("unsigned"), has_snapshot=False)
        assert alone.apply_buffer(payload, *everything())
        assert sorted(map(codec.unpack, alone.rows())) == [[1, 7, "x"], [2, 7], [4, 4]]
        made = LogFolder(space_of("unsigned"))
        assert made.apply_buffer(payload, *everything())
        assert sorted(map(codec.unpack, made.rows())) == [[1, 7, "x"], [4, 4]]
        (waiting,) = made.pending_upserts.values()
        assert made.apply_operations(codec.pack([2, 10]), waiting) == codec.pack([2, 11])
        assert list(map(codec.unpack, made.inserted_rows())) == [[2, 7]]

    def test_are_not_taken_where_operations_have_names_that_were_changed(self) -> None:
        """They may need a full replay, which all tasks have to notice."""
        payload = RowEncoder().transaction(FIRST, TIMESTAMP, [upsert(SPACE, [1, 0], [["+", 1, 2]])])
        assert not LogFolder(space_of("unsigned"), is_renamed=True).apply_buffer(
            Buffer(payload), *everything()
        )

    @pytest.mark.parametrize("kind", ["unsigned", "number", "string"])
    def test_are_taken_where_keys_are_cut(self, kind: str) -> None:
        cut = [key for key in KEYS[kind] if isinstance(key, str) or (isinstance(key, int) and key >= 0)]
        requests = [replacement(SPACE, key, "text") for key in cut] + [deletion(SPACE, cut[0])]
        made = LogFolder(space_of(kind))
        assert made.apply_buffer(Buffer(RowEncoder().transaction(FIRST, TIMESTAMP, requests)), *everything())
        assert [codec.unpack(row)[0] for row in made.rows()] == cut[1:]

    @pytest.mark.parametrize(
        "key", [b"\xcc\x7f", b"\xcd\x00\xff", b"\xce\0\0\xff\xff", b"\xcf" + bytes(8), b"\xff"]
    )
    def test_are_not_taken_where_a_number_is_packed_in_another_way(self, key: bytes) -> None:
        self.assert_not_taken("integer", b"\x91" + key)

    @pytest.mark.parametrize("key", [b"\xd9\x01a", b"\xda\x00\x01a", b"\xdb\0\0\0\x01a", b"\xc4\x01a"])
    def test_are_not_taken_where_a_string_is_packed_in_another_way(self, key: bytes) -> None:
        self.assert_not_taken("string", b"\x91" + key)

    @pytest.mark.parametrize("kind", ["scalar", "uuid", "double"])
    def test_are_not_taken_where_keys_are_of_other_kinds(self, kind: str) -> None:
        self.assert_not_taken(kind, b"\x91\x01")

    def test_are_not_taken_where_there_is_no_key(self) -> None:
        self.assert_not_taken("unsigned", b"\x90")

    def assert_not_taken(self, kind: str, packed_tuple: bytes) -> None:
        """Nor is what comes before in the same block."""
        head = encode_row(row_of(replacement(SPACE, 7, "text"), 1, FIRST))
        body = b"\x82\x10\xcd\x02\x00\x21" + packed_tuple
        row = encode_row(row_of((RowType.REPLACE, body), 1, FIRST + 1))
        assert rows_in(row) is not None
        made = LogFolder(space_of(kind))
        assert not made.apply_buffer(Buffer(head + row), *everything())
        assert not made.states

    @pytest.mark.parametrize(
        ("rows", "are_taken"),
        [
            ([(1, 1000), (1, 1001), (1, 1002)], True),
            ([(1, 1000), (1, 1002)], False),
            ([(1, 1001), (1, 1000)], False),
            ([(1, 1000), (1, 1000)], False),
            ([(1, 1000), (2, 1001)], False),
            ([(31, 1000)], True),
            ([(32, 1000)], False),
            ([(1, 2**63 - 1)], True),
            ([(1, 2**63 - 1), (1, 2**63)], False),
            ([], False),
        ],
    )
    def test_are_of_one_member_without_a_gap(self, rows: list[tuple[int, int]], are_taken: bool) -> None:
        payload = b"".join(
            encode_row(row_of(insertion(SPACE, lsn % 100), member, lsn)) for member, lsn in rows
        )
        made = LogFolder(space_of("unsigned"))
        assert made.apply_buffer(Buffer(payload), *everything()) is are_taken
        assert bool(made.states) is are_taken

    def test_are_of_whole_transactions(self) -> None:
        payload = RowEncoder().transaction(FIRST, TIMESTAMP, [insertion(SPACE, 1), insertion(SPACE, 2)])
        first = len(encode_row(decode_rows(payload)[0]))
        assert not LogFolder(space_of("unsigned")).apply_buffer(Buffer(payload[:first]), *everything())
        assert LogFolder(space_of("unsigned")).apply_buffer(Buffer(payload), *everything())

    @given(st.data())
    def test_are_not_taken_where_they_are_cut_short(self, data: st.DataObject) -> None:
        payload = RowEncoder().transaction(
            FIRST, TIMESTAMP, [insertion(SPACE, "a"), insertion(SPACE, "b" * 40)]
        )
        end = data.draw(st.integers(0, len(payload) - 1))
        made = LogFolder(space_of("string"))
        assert not made.apply_buffer(Buffer(payload[:end]), *everything())
        assert not made.states

    @given(
        st.integers(295, 310),
        st.integers(1, 8),
        st.none() | st.builds(lambda lsn: VClock({1: lsn}), st.integers(295, 310)),
        st.sampled_from([VClock({1: 300}), VClock()]),
    )
    def test_follow_what_was_there_before(
        self, first: int, count: int, end: VClock | None, start: VClock
    ) -> None:
        """As rows do that are found together."""
        payload = b"".join(encode_row(row_of(insertion(SPACE, 1), 1, first + each)) for each in range(count))
        rows = rows_in(payload)
        assume(rows is not None)
        assert rows is not None
        packed, together = (ContinuityCheck(start, lambda: False) for _ in range(2))
        made = LogFolder(space_of("unsigned"))
        is_taken = made.apply_buffer(Buffer(payload), *everything(), packed, end)
        assert is_taken == together.accepts(rows, end)
        for lsn in range(295, 320):
            assert is_behind(packed, lsn) == is_behind(together, lsn)


def is_behind(continuity: ContinuityCheck, lsn: int) -> bool:
    """Whether rows are missing before a log that begins with an LSN."""
    try:
        copy(continuity).check_reached(VClock({1: lsn}), "log")
    except LogGapError:
        return True
    return False


def test_tasks_share_the_rows() -> None:
    """Each is given out by one of them."""
    encoder = RowEncoder()
    payload = b"".join(
        encoder.transaction(FIRST + number, TIMESTAMP, (replacement(SPACE, number, "text"),))
        for number in range(300)
    )
    rows = rows_in(payload)
    assert rows is not None
    given_out: list[bytes] = []
    for task in range(3):
        made = LogFolder(space_of("unsigned"), task, 3)
        made.apply_rows(rows, *everything())
        own = list(made.rows())
        assert 80 <= len(own) <= 120
        given_out += own
    assert len(given_out) == len(set(given_out)) == 300


def test_what_does_not_fit_is_told_with_its_number() -> None:
    requests = [replacement(SPACE, 1, "a"), replacement(SPACE, 2, "b"), update(SPACE, [2], [["+", 1, 1]])]
    rows = rows_in(RowEncoder().transaction(FIRST, TIMESTAMP, requests))
    assert rows is not None
    with pytest.raises(SourceError, match=rf"row {FIRST + 2} of the member 1, space 'rows'"):
        LogFolder(space_of("unsigned")).apply_rows(rows, *everything())
    lenient = LogFolder(space_of("unsigned"), is_lenient=True)
    lenient.apply_rows(rows, *everything())
    assert len(list(lenient.rows())) == 2


def test_names_are_not_understood_where_they_change() -> None:
    """Even by a task whose rows these are not."""
    requests = [update(SPACE, [number], [["=", "text", "new"]]) for number in range(5)]
    rows = rows_in(RowEncoder().transaction(FIRST, TIMESTAMP, requests))
    assert rows is not None
    for task in range(3):
        for has_snapshot in (True, False):
            made = LogFolder(space_of("unsigned"), task, 3, has_snapshot=has_snapshot, is_renamed=True)
            with pytest.raises(NeedsFullReplay):
                made.apply_rows(rows, *everything())


def test_a_member_that_cannot_be_is_an_error() -> None:
    rows = rows_in(encode_row(row_of(insertion(SPACE, 1), 100, FIRST)))
    assert rows is not None
    with pytest.raises(SourceError, match="of member 100"):
        LogFolder(space_of("unsigned")).apply_rows(rows, *everything())
