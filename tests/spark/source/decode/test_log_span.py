"""Rows of logs taken together: whether they end with a transaction, and follow without a gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import assume, given
from hypothesis import strategies as st

from iproto_server.storage.errors import LogGapError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, RowEncoder, encode_row
from iproto_server.storage.xlog.decoder import decode_rows
from pyspark_tarantool.source.decode.log_span import ContinuityCheck, LogSpan
from pyspark_tarantool.source.decode.row_scanner import is_whole
from pyspark_tarantool.source.io.data_files import DataFile
from tests.spark.source.logged import changes_in, row_of, rows_in
from tests.storage.files import TIMESTAMP, deletion, header, insertion, update

SPACE: Final = 512
FIRST: Final = 1000
LOG: Final = LogSpan(DataFile("log", 0, header(), 0, closed=True), 0, 0, None)


class TestWholeTransactions:
    def test_rows_end_with_a_transaction_or_within_one(self) -> None:
        encoder = RowEncoder()
        requests = [insertion(SPACE, 1), update(SPACE, [1], [["=", 1, 2]]), deletion(SPACE, 1)]
        payload = encoder.transaction(FIRST, TIMESTAMP, (insertion(SPACE, 0),))
        payload += encoder.transaction(FIRST + 1, TIMESTAMP, requests)
        ends = [len(b"".join(map(encode_row, decode_rows(payload)[:count]))) for count in range(1, 5)]
        assert ends[-1] == len(payload)
        for end, expected in zip(ends, (True, False, False, True), strict=True):
            rows = rows_in(payload[:end])
            assert rows is not None
            assert is_whole(rows) is expected


class TestContinuity:
    @given(
        st.lists(st.tuples(st.sampled_from([1, 2, 1]), st.integers(298, 306)), min_size=1, max_size=12),
        st.booleans(),
        st.none() | st.builds(lambda lsn: VClock({1: lsn, 2: lsn}), st.integers(299, 306)),
    )
    def test_rows_taken_together_have_no_gap(
        self, places: Sequence[tuple[int, int]], is_sorted: bool, end: VClock | None
    ) -> None:
        given_rows = sorted(set(places)) if is_sorted else places
        payload = b"".join(encode_row(row_of(insertion(SPACE, 1), member, lsn)) for member, lsn in given_rows)
        rows = rows_in(payload)
        assume(rows is not None)
        assert rows is not None
        start = VClock({1: 300, 2: 300})
        together, one_by_one = (ContinuityCheck(start, lambda: False) for _ in range(2))
        is_taken = together.accepts(rows, end)
        try:
            one_by_one.check(LOG._replace(end=end), Block(0, 0, payload), changes_in(payload))
        except LogGapError:
            assert not is_taken
            assert together._clock == start
        else:
            assert is_taken or not is_sorted
            assert not is_taken or together._clock == one_by_one._clock

    def test_members_are_counted_each_for_itself(self) -> None:
        places = [(1, 301), (2, 501), (1, 302), (2, 502)]
        payload = b"".join(encode_row(row_of(insertion(SPACE, 1), *place)) for place in places)
        rows = rows_in(payload)
        assert rows is not None
        continuity = ContinuityCheck(VClock({1: 300, 2: 500}), lambda: False)
        assert continuity.accepts(rows, None)
        assert continuity._clock == {1: 302, 2: 502}
        assert continuity.accepts(rows, None)  # It has seen them: nothing is new.
        assert continuity._clock == {1: 302, 2: 502}
