"""Tuples of snapshots, found many at once, against those that are read row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.storage.snapshot import SnapshotEncoder
from iproto_server.storage.xlog import Block
from pyspark_tarantool.source.decode.packed import Buffer
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.decode.snapshot_rows import (
    _searched_tuples,
    plain_tuples,
    quick_tuples,
    read_tuples,
    tuples_of,
)
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.options import OnDamaged
from tests.storage.files import TIMESTAMP

Find = Callable[[Buffer, int, int], Tuples | None]

SPACES: Final = (100, 200, 512, 70000)


def payload_of(first: int, spaces: list[tuple[int, list[bytes]]]) -> bytes:
    """The rows of a block, the first of which has a number."""
    encoder = SnapshotEncoder(TIMESTAMP)
    encoder.rows = first
    full = [b"".join(pieces) for space, raws in spaces for pieces in encoder.add(space, raws)]
    return b"".join([*full, *encoder.take()])


INNER: Final = payload_of(300, [(512, [codec.pack([1, "x"])] * 3)])
"""Rows, which may be in tuples, too."""

raws = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 2**64 - 1), st.text()),
        st.tuples(st.integers(0, 5), st.sampled_from([INNER, INNER[4:], INNER[-30:]])),
        st.tuples(st.lists(st.integers(), max_size=0), st.dictionaries(st.text(), st.text(), max_size=3)),
    ).map(codec.pack),
    max_size=20,
)


@given(
    blocks=st.lists(st.lists(st.tuples(st.sampled_from(SPACES), raws), max_size=3), max_size=4),
    first=st.sampled_from([0, 1, 120, 250, 65530]),
    space=st.sampled_from(SPACES),
)
def test_are_the_same_many_at_once_and_one_by_one(
    blocks: list[list[tuple[int, list[bytes]]]], first: int, space: int
) -> None:
    """Whatever is in the blocks, and whatever the tuples hold."""
    damages = DamageHandler(OnDamaged.FAIL)
    made = [Block(0, 1, payload) for spaces in blocks if (payload := payload_of(first, spaces))]
    found = [raw for tuples in read_tuples(made, space, 2, "file", damages) for raw in tuples.cells.raws()]
    assert found == [raw for block in made for raw in tuples_of(block, space, "file", damages)]
    assert found == [raw for spaces in blocks for number, some in spaces if number == space for raw in some]


@pytest.fixture(
    params=[pytest.param(plain_tuples, id="as installed"), pytest.param(_searched_tuples, id="numpy")]
)
def find(request: pytest.FixtureRequest) -> Find:
    """What finds tuples of rows that are alike."""
    find: Find = request.param
    return find


class TestPlainTuples:
    def test_of_one_space_are_found_many_at_once(self, find: Find) -> None:
        some = [codec.pack([number, "text"]) for number in range(1000)]
        tuples = find(Buffer(payload_of(0, [(512, some)])), 512, 2)
        assert tuples is not None
        assert tuples.cells.raws() == some
        assert tuples.counts.tolist() == [2] * 1000
        assert tuples.item(0).values() == list(range(1000))
        assert tuples.item(1).values() == ["text"] * 1000

    def test_have_items_as_far_as_there_are_and_are_wanted(self, find: Find) -> None:
        tuples = find(
            Buffer(payload_of(0, [(512, list(map(codec.pack, ([1, 2, 3], [4], [[5], {6: 7}]))))])), 512, 2
        )
        assert tuples is not None
        assert tuples.wanted == 2
        assert tuples.counts.tolist() == [3, 1, 2]
        assert [tuples.item(number).values() for number in range(3)] == [
            [1, 4, [5]],
            [2, None, {6: 7}],
            [None] * 3,
        ]

    def test_are_of_the_space_that_is_wanted(self, find: Find) -> None:
        payload = payload_of(0, [(512, [codec.pack([1])] * 2), (513, [codec.pack([2])])])
        assert find(Buffer(payload), 512, 1) is None
        assert find(Buffer(payload), 513, 1) is None

    def test_are_not_found_where_bytes_are_missing_or_left(self, find: Find) -> None:
        """Nor where there are none at all: what is wrong with them others have to tell."""
        payload = payload_of(0, [(512, [codec.pack([number, "text"]) for number in range(100)])])
        row = payload_of(0, [(512, [codec.pack([1, "text"])])])
        for size in range(len(row)):
            assert find(Buffer(row[:size]), 512, 2) is None
            assert find(Buffer(payload + row[:size]), 512, 2) is None or not size
        assert find(Buffer(payload + b"\0"), 512, 2) is None

    @pytest.mark.parametrize(
        "row",
        [
            pytest.param(
                b"\x83\x00\x03\x03\x01\x04\xcb" + bytes(8) + b"\x82\x10\x05\x21\x91\x01", id="REPLACE"
            ),
            pytest.param(b"\x82\x03\x01\x00\x02\x82\x10\x05\x21\x91\x01", id="type is not first"),
            pytest.param(b"\x82\x00\x02\x03\x81\x01\x01\x82\x10\x05\x21\x91\x01", id="LSN is a map"),
            pytest.param(b"\x82\x00\x02\x81\x01\x01\x01\x82\x10\x05\x21\x91\x01", id="a key is a map"),
            pytest.param(b"\x82\x00\x02\x03\x01\x82\x21\x91\x01\x10\x05", id="tuple before space"),
            pytest.param(b"\x82\x00\x02\x03\x01\x83\x10\x05\x21\x91\x01\x28\x91\x01", id="more in the body"),
            pytest.param(b"\x82\x00\x02\x03\x01\x82\x10\x05\x21\x81\x01\x01", id="no array"),
            pytest.param(b"\x82\x00\x02\x03\x01\x82\x10\x05\x21\x91\xc1", id="malformed item"),
            pytest.param(
                b"\x82\x00\x02\x03\x01\x82\x10\x05\x21\xdd\xff\xff\xff\xff", id="items that are not there"
            ),
            pytest.param(
                b"\x82\x00\x02\x03\x01\x82\x10\xcf" + b"\xff" * 8 + b"\x21\x91\x01", id="no such space"
            ),
        ],
    )
    def test_are_not_found_in_unusual_rows(self, find: Find, row: bytes) -> None:
        assert find(Buffer(row), 5, 1) is None


class TestCompiledCode:
    def test_finds_what_numpy_has_to_look_for_in_a_tuple(self) -> None:
        """A tuple that holds a row makes numpy give up."""
        payload = payload_of(300, [(512, [codec.pack([number, INNER]) for number in range(3)])])
        assert _searched_tuples(Buffer(payload), 512, 2) is None
        tuples = plain_tuples(Buffer(payload), 512, 2)
        assert tuples is not None
        assert tuples.item(1).values() == [INNER] * 3

    def test_finds_more_rows_than_it_expects_to(self) -> None:
        payload = payload_of(0, [(512, [b"\x91\x01"] * 100_000)])
        tuples = plain_tuples(Buffer(payload), 512, 1)
        assert tuples is not None
        assert tuples.item(0).values() == [1] * 100_000

    def test_looks_no_further_than_it_may(self) -> None:
        row = payload_of(0, [(512, [codec.pack([1, "text"])])])
        for size in range(-1, len(row) + 2):
            assert (quick_tuples(row, size, 512, 2) is None) == (size != len(row))
        assert quick_tuples(row, len(row), 512, -1) is None

    @pytest.mark.parametrize(
        "arguments",
        [(), (b"", 0, 0), ("", 0, 0, 0), (b"", "0", 0, 0), (b"", 0, 2**70, 0), (b"", 0, 0, 2**70)],
    )
    def test_refuses_what_it_is_not_made_for(self, arguments: tuple[Any, ...]) -> None:
        with pytest.raises((TypeError, OverflowError)):
            quick_tuples(*arguments)
