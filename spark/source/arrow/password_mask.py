"""Masks the password hashes in rows of `_user`: who knows one can log in as that user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from iproto_server.box.catalog.system_space_ids import USER
from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.packed import Buffer, Cells
from pyspark_tarantool.source.decode.packed_tuples import Tuples

USER_NAME: Final = "_user"
MASK: Final = "********"

_FIRST: Final = 4
"""The index of the field `auth`; Tarantool 3 has `auth_history` behind it."""

_PLAIN: Final = frozenset({*range(_FIRST), "id", "owner", "name", "type"})
"""The fields without hashes, by index and by name."""

_NUMBERS: Final = ("type", "lsn", "replica_id", "tsn", "timestamp", "space_id", "index_id", "index_base")


def masked_tuples(tuples: Tuples) -> Tuples:
    """Mask the hashes in tuples of `_user`."""
    raws = [raw if raw is None else _tuple(raw) for raw in tuples.cells.raws()]
    return Tuples.of(raws, tuples.wanted)


def masked_rows(rows: LogRows) -> LogRows:
    """Mask the hashes in the rows of `_user` among rows of logs."""
    places = np.flatnonzero(rows.space_id == USER).tolist()
    if not places:
        return rows
    cells = {name: getattr(rows, name).raws() for name in ("key", "tuple", "operations", "old", "new")}
    for name in ("tuple", "old", "new"):
        _replace(cells[name], places, lambda _, raw: _tuple(raw))
    _replace(cells["operations"], places, lambda place, raw: _operations(raw, int(rows.index_base[place])))
    values: dict[str, Any] = {name: getattr(rows, name) for name in _NUMBERS}
    return LogRows(**values, **_packed(cells), values=None)


def _replace(raws: list[bytes | None], places: Sequence[int], change: Callable[[int, bytes], bytes]) -> None:
    for place in places:
        raw = raws[place]
        if raw is not None:
            raws[place] = change(place, raw)


def _packed(columns: dict[str, list[bytes | None]]) -> dict[str, Any]:
    """Cells of packed values, in a buffer of their own."""
    pieces: list[bytes] = []
    offsets: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in columns}
    position = 0
    # Row by row: the starts in a column have to ascend.
    for row in zip(*columns.values(), strict=True):
        for (starts, ends), raw in zip(offsets.values(), row, strict=True):
            starts.append(-1 if raw is None else position)
            if raw is not None:
                pieces.append(raw)
                position += len(raw)
            ends.append(-1 if raw is None else position)
    buffer = Buffer(*pieces)
    return {
        name: Cells(buffer, np.array(starts, np.int64), np.array(ends, np.int64))
        for name, (starts, ends) in offsets.items()
    }


def _tuple(raw: bytes) -> bytes:
    fields = codec.unpack(raw)
    packed: bytes = codec.pack([*fields[:_FIRST], *map(_masked, fields[_FIRST:])])
    return packed


def _operations(raw: bytes, index_base: int) -> bytes:
    """Mask the arguments of operations on fields that may have hashes."""
    packed: bytes = codec.pack([_operation(each, index_base) for each in codec.unpack(raw)])
    return packed


def _operation(operation: Any, index_base: int) -> Any:
    if not isinstance(operation, list) or len(operation) < 3:
        return operation
    field = operation[1]
    is_number = isinstance(field, int) and field >= index_base
    if (field - index_base if is_number else field) in _PLAIN:
        return operation
    return [*operation[:2], *map(_masked, operation[2:])]


def _masked(value: Any) -> Any:
    """A value with all its texts masked, but not the keys of its maps, which name the method."""
    if isinstance(value, dict):
        return {key: _masked(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(_masked, value))
    return MASK if isinstance(value, str | bytes) else value
