"""Tuples of snapshots, found many at once, against those that are read row by row."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from iproto_server import codec
from iproto_server.storage.snapshot import SnapshotEncoder
from iproto_server.storage.xlog import Block
from spark.source.damages import Damages
from spark.source.options import OnDamaged
from spark.source.snapshot_rows import _plain_tuples, read_tuples, tuples_of
from tests.storage.files import TIMESTAMP

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
    damages = Damages(OnDamaged.FAIL)
    made = [Block(0, 1, payload) for spaces in blocks if (payload := payload_of(first, spaces))]
    found = [raw for tuples in read_tuples(made, space, 2, "file", damages) for raw in tuples.cells.raws()]
    assert found == [raw for block in made for raw in tuples_of(block, space, "file", damages)]
    assert found == [raw for spaces in blocks for number, some in spaces if number == space for raw in some]


def test_of_one_space_are_found_many_at_once() -> None:
    some = [codec.pack([number, "text"]) for number in range(1000)]
    payload = payload_of(0, [(512, some)])
    tuples = _plain_tuples(payload, 512, 2)
    assert tuples is not None
    assert tuples.cells.raws() == some
    assert _plain_tuples(payload, 513, 2) is None
    assert _plain_tuples(payload[:-1], 512, 2) is None
    assert _plain_tuples(payload + b"\0", 512, 2) is None
    assert _plain_tuples(b"", 512, 2) is None
