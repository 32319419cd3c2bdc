"""Checks that the indexes of a space match its rows.

The keys of each row are computed again, with functions made from the definitions of the indexes, and looked
up. An index in which each key leads to its row, and which has no other entries, equals one built from the
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from iproto_server.box.index.factory import create_index
from iproto_server.box.index.index import Index
from iproto_server.box.key.key_part import reader_of
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.row_applier import UNFIT, in_words
from iproto_server.codec import msgpack as codec


class _IndexCheck:
    """Compares a secondary index with the rows of its space.

    Parameters:
        index: the index.
        primary: the primary index of the space.

    Attributes:
        name: the name of the index.
    """

    __slots__ = ("_expected", "_index", "_keys", "_readers", "name")

    def __init__(self, index: Index, primary: Index) -> None:
        self.name = index.name
        self._index = index
        self._expected = create_index(index.definition, index.space_name, primary.key_def)
        self._readers = [] if index.is_multikey else [reader_of(part) for part in index.key_def.parts]
        self._keys = 0

    def look_up(self, fields: Sequence[Any], primary_key: bytes) -> bool:
        """Tell whether the keys of a row lead to it, and match the encoding of clients' keys.

        Parameters:
            fields: its decoded fields.
            primary_key: its encoded primary key.
        """
        index = self._index
        if index.is_multikey:
            keys = self._expected.all_keys_of(fields, primary_key)
            self._keys += len(keys)
            return all(index.get(key) == primary_key for key in keys)
        key = self._expected.key_of(fields, primary_key)
        self._keys += 1
        values = [read(fields) for read in self._readers]
        return index.get(key) == primary_key and key.startswith(index.encode_key(values))

    def faults(self, rows: int) -> Iterator[str]:
        """Faults of the index as a whole.

        Parameters:
            rows: the number of rows.
        """
        index = self._index
        if not index.kind_equals(self._expected):
            yield f"index {index.name!r} is laid out for another primary key"
        of_what = f"{self._keys} elements" if index.is_multikey else f"{rows} rows"
        if len(index) != self._keys:
            yield f"index {index.name!r} has {len(index)} entries for {of_what}"
        yield from _order_faults(index)


def faults_of(space: MemtxSpace) -> Iterator[str]:
    """Check the rows of a space against its format, and all of its indexes against the rows.

    Parameters:
        space: the space; it must not change meanwhile.

    Yields:
        Descriptions of faults, one line each.
    """
    primary = space.primary
    if primary is None:
        return
    made_anew = create_index(primary.definition, space.name)
    checks = [_IndexCheck(index, primary) for number, index in space.indexes.items() if number]
    rows = size = 0
    for key, raw in primary.items():
        rows += 1
        size += len(raw)
        try:
            fields = codec.unpack(raw)
            space.format.check(fields)
            if made_anew.key_of(fields, b"") != key or primary.get(key) != raw:
                yield f"the primary index has row {primary.values_of(fields)} elsewhere"
            for check in checks:
                if not check.look_up(fields, key):
                    yield f"index {check.name!r} does not lead to row {primary.values_of(fields)}"
        except UNFIT as error:
            yield f"row {_start(raw)}: {in_words(error)}"
    if len(primary) != rows:
        yield f"the primary index counts {len(primary)} rows and has {rows}"
    if space.bsize != size:
        yield f"the rows have {size} bytes, and {space.bsize} are counted"
    yield from _order_faults(primary)
    for check in checks:
        yield from check.faults(rows)


def _order_faults(index: Index) -> Iterator[str]:
    """Faults in the order of entries."""
    if not all(before < key for before, key in pairwise(index.keys())):
        yield f"index {index.name!r} is out of order"


def _start(raw: bytes) -> str:
    """The first bytes of a row, to identify a row without key."""
    return f"{raw[:16].hex()}{'…' if len(raw) > 16 else ''}"
