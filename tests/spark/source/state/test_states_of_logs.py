"""States compared with what recovery makes of the same rows: all requests, many keys, two members."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from iproto_server.storage.xlog import RowType
from tests.plugins.profiles import examples
from tests.spark.source.chronicle import OTHER, Chronicle
from tests.spark.source.states import packed, small_pieces
from tests.storage.files import Request, replacement

_SMALL: list[Any] = [0, 1, 2, 100, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1]
_TEXTS: list[Any] = ["", "a", "A", "ä", "b\0", "x" * 31, "x" * 32, "x" * 300]
_NUMBERS: list[Any] = [
    *_SMALL,
    -1,
    1.0,
    2.0,
    0.5,
    -0.0,
    -1.0,
    Decimal(1),
    Decimal("0.5"),
    float(2**53),
    2**53 + 1,
]
_UUIDS: list[Any] = [UUID(int=number) for number in range(4)]

# The parts of a key, and values of the first and of the second field.
KEYS: dict[str, tuple[list[Any], list[Any], list[Any]]] = {
    "unsigned": ([(0, "unsigned")], _SMALL, [""]),
    "integer": ([(0, "integer")], [*_SMALL, -1, -200], [""]),
    "number": ([(0, "number")], _NUMBERS, [""]),
    "scalar": ([(0, "scalar")], [*_NUMBERS, *_TEXTS, True, b"a"], [""]),
    "string": ([(0, "string")], _TEXTS, [""]),
    "uuid": ([(0, "uuid")], _UUIDS, [""]),
    "the second": ([(1, "string")], [1, 2], _TEXTS),
    "collation": ([{"field": 1, "type": "string", "collation": "unicode_ci"}], [1, 2], _TEXTS),
    "both": ([(1, "string"), (0, "unsigned")], _SMALL[:5], _TEXTS[:4]),
}


@st.composite
def histories(draw: st.DrawFn, path: Path, members: int = 1) -> Chronicle:
    """A database with a history."""
    parts, firsts, seconds = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    kind = draw(st.sampled_from(["tree", "tree", "hash"]))
    # Rows with larger numbers are read together.
    lsn = draw(st.sampled_from([0, 240, 1000, 65_500]))
    clock = {member: lsn for member in range(1, members + 1) if lsn}
    chronicle = Chronicle(path, parts, kind, clock=clock)
    chronicle.snapshot()
    fields = [part["field"] if isinstance(part, dict) else part[0] for part in parts]
    rows: st.SearchStrategy[Any] = st.tuples(
        st.sampled_from(firsts), st.sampled_from(seconds), st.integers(0, 300)
    )

    def request() -> Request:
        row = draw(rows)
        key = [row[field] for field in fields]
        kind = draw(
            st.sampled_from(["put", "put", "update", "upsert", "upsert", "delete", "other", "truncate"])
        )
        base = draw(st.integers(0, 1))
        operations: list[Any] = draw(
            st.sampled_from(
                [
                    [("+", 2 + base, 1)],
                    [("=", 2 + base, 7), ("!", 3 + base, "more")],
                    [("=", "number", 9)],
                    [("+", "number", 1.5)],
                ]
            )
        )
        if kind == "put":
            found = chronicle.box.space.t.get(key)
            return (
                chronicle.insert(*row) if found is None and draw(st.booleans()) else chronicle.replace(*row)
            )
        if kind == "update":
            return chronicle.update(key, *operations, base=base)
        if kind == "upsert":
            return chronicle.upsert(row, *operations, base=base)
        if kind == "delete":
            return chronicle.delete(*key)
        if kind == "truncate" and draw(st.integers(0, 3)) == 0:
            return chronicle.truncate()
        return draw(st.sampled_from([replacement(OTHER, row[2]), (int(RowType.NOP), b"")]))

    for _ in range(draw(st.integers(0, 40))):
        match draw(st.sampled_from(["commit"] * 8 + ["rotate", "snapshot", "several"])):
            case "commit":
                chronicle.commit(request(), member=draw(st.integers(1, members)))
            case "several":
                # What is inserted must not be there, so each request is made before the next is thought of.
                several = [chronicle.replace(*draw(rows)) for _ in range(draw(st.integers(2, 5)))]
                blocks = draw(st.integers(1, 2))
                chronicle.commit(*several, member=draw(st.integers(1, members)), blocks=blocks)
            case "rotate":
                chronicle.rotate(is_ended=draw(st.booleans()))
            case "snapshot":
                chronicle.snapshot()
                chronicle.rotate()
    return chronicle


_sizes = st.sampled_from([0, 300, 1000, 10_000])


class TestAnyLogs:
    @examples(40)
    @given(st.data())
    def test_one_member(self, data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as name, small_pieces():
            path = Path(name)
            chronicle = data.draw(histories(path))
            chronicle.rotate()
            assert packed(path, "t", partition_bytes=data.draw(_sizes)) == chronicle.rows
            for then in data.draw(st.lists(st.sampled_from(chronicle.then), max_size=3)):
                size = data.draw(_sizes)
                lsn = then.clock.get(1, 0)
                assert packed(path, "t", mode="at_lsn", lsn=lsn, partition_bytes=size) == then.rows
                time = then.time + 5
                assert packed(path, "t", mode="at_time", time=time, partition_bytes=size) == then.rows

    @examples(25)
    @given(st.data())
    def test_two_members(self, data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as name, small_pieces():
            path = Path(name)
            chronicle = data.draw(histories(path, members=2))
            chronicle.rotate()
            assert packed(path, "t", partition_bytes=data.draw(_sizes)) == chronicle.rows
            for then in data.draw(st.lists(st.sampled_from(chronicle.then), max_size=3)):
                size = data.draw(_sizes)
                assert packed(path, "t", mode="at_lsn", lsn=then.clock, partition_bytes=size) == then.rows
                time = then.time + 5
                assert packed(path, "t", mode="at_time", time=time, partition_bytes=size) == then.rows
