"""Blocks that Spark reads: compiled code, and numpy, find the same rows, tuples, columns and states."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any, Final

import pyarrow as pa

from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import XlogError
from iproto_server.storage.snapshot import SnapshotEncoder
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, RowEncoder, RowType
from iproto_server.storage.xlog.encoder import delete_body, insert_body, update_body, upsert_body
from pyspark_tarantool import native
from pyspark_tarantool.source.arrow.cell_arrays import integers, strings_of, texts
from pyspark_tarantool.source.arrow.json_text import json_array
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.log_span import counting
from pyspark_tarantool.source.decode.packed import Buffer, Cells
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.decode.row_scanner import read_rows
from pyspark_tarantool.source.decode.snapshot_rows import read_tuples
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.options import OnDamaged
from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from pyspark_tarantool.source.state.log_folder import LogFolder, NeedsFullReplay
from tests.fuzz.draw import Draw
from tests.fuzz.spaces.updates import draw_operation
from tests.fuzz.target import Target
from tests.storage.files import TIMESTAMP, Request

SPACE: Final = 512
_LSNS: Final = (1, 120, 250, 65_530, 2**32 - 3, 2**33)
_SPACE_IDS: Final = (SPACE, SPACE, SPACE, 5, 200, 70_000)
_KINDS: Final = ("unsigned", "string", "number", "scalar")
_ITEMS: Final = 2


def draw_row(draw: Draw) -> list[object]:
    """Draw a row whose first field is mostly a key."""
    how = draw.byte()
    first = draw.scalar() if how & 1 else draw.pick(("", "a", "x" * 40)) if how & 2 else draw.integer()
    return [first, *(draw.value(2) for _ in range(how >> 2 & 3))]


def draw_request(draw: Draw) -> Request:
    """Draw a row of a log."""
    kind = draw.byte()
    space, row = draw.pick(_SPACE_IDS), draw_row(draw)
    packed, key = codec.pack(row), codec.pack(row[:1])
    if kind % 8 < 4:
        return (RowType.INSERT if kind & 1 else RowType.REPLACE), insert_body(space, packed)
    if kind % 8 < 6:
        return RowType.DELETE, delete_body(space, key, kind >> 6 & kind >> 5)
    operations = codec.pack([draw_operation(draw) for _ in range(draw.byte() % 3)])
    if kind % 8 == 6:
        return RowType.UPDATE, update_body(space, key, operations, index_base=kind >> 4 & 1)
    return RowType.UPSERT, upsert_body(space, packed, operations, index_base=kind >> 4 & 1)


def damaged(payload: bytes, damages: list[tuple[int, int]]) -> bytes:
    """Change bytes, or cut the end off."""
    changed = bytearray(payload)
    for position, change in damages:
        if changed and change:
            changed[position % len(changed)] ^= change
        else:
            del changed[position % (len(changed) + 1) :]
    return bytes(changed)


def columns(tuples: Tuples) -> list[object]:
    """Return the tuples, and all columns of their items; None for columns that they do not fit."""
    found: list[object] = [tuples.cells.raws(), tuples.counts.tolist()]
    for cells in map(tuples.item, range(_ITEMS)):
        found += [cells.raws(), listed(texts_of(cells))]
        found += [listed(integers(cells, arrow)) for arrow in (pa.int64(), pa.int16(), pa.decimal128(20))]
        found += [listed(strings_of(cells, arrow)) for arrow in (pa.string(), pa.binary())]
    return found


def texts_of(cells: Cells) -> pa.Array | None:
    """Return JSON texts; None for values without one."""
    array = texts(cells)
    try:
        return json_array(cells.values()) if array is None else array
    except ValueError:
        return None


def listed(array: pa.Array | None) -> object:
    """Return the values of an array; strings, which need not be UTF-8, as bytes."""
    if array is None:
        return None
    return (array.cast(pa.binary()) if pa.types.is_string(array.type) else array).to_pylist()


def rows_in(payload: bytes) -> object:
    """Read the rows of a log's block, and the items of their keys or tuples; groups of rows may differ."""
    damage = DamageHandler(OnDamaged.FAIL)
    found: list[object] = []
    try:
        for rows in read_rows([Block(0, len(payload), payload)], "file", damage, _ITEMS):
            numbers = (rows.replica_id.tolist(), rows.tsn.tolist(), map(repr, rows.timestamp.tolist()))
            found += zip(
                *numbers, rows.changes(), rows.old.raws(), rows.new.raws(), items_of(rows), strict=True
            )
    except XlogError as error:
        found.append(str(error))
    return found


def items_of(rows: LogRows) -> Iterable[object]:
    """Return the number of items, and the items, of each key and tuple; nothing of what is no array."""
    try:
        apart = [rows.taken_apart(cells, _ITEMS) for cells in (rows.key, rows.tuple)]
    except ValueError:
        return [None] * len(rows)
    return zip(
        *(each.counts.tolist() for each in apart),
        *(each.item(number).raws() for each in apart for number in range(_ITEMS)),
        strict=True,
    )


def tuples_in(payload: bytes) -> object:
    """Read the tuples of a snapshot's block, and make columns of them."""
    damage = DamageHandler(OnDamaged.FAIL)
    found: list[object] = []
    try:
        for tuples in read_tuples([Block(0, len(payload), payload)], SPACE, _ITEMS, "file", damage):
            found += columns(tuples)
    except XlogError as error:
        found.append(str(error))
    return found


def states_in(payload: bytes, kind: str, task: int, tasks: int, *, has_snapshot: bool) -> object:
    """Fold the rows of a log's block into the states of keys."""
    index = (SPACE, 0, "primary", "tree", {"unique": True}, [[0, kind]])
    space = SpaceDefinition(SPACE, "rows", 0, (), (index,), {}, False)
    folder = LogFolder(space, task, tasks, has_snapshot=has_snapshot, is_lenient=True)
    low, high = counting(VClock(), None, None)
    try:
        if not folder.apply_buffer(Buffer(payload), low, high):
            for rows in read_rows(
                [Block(0, len(payload), payload)], "file", DamageHandler(OnDamaged.FAIL), 1
            ):
                folder.apply_rows(rows, low, high)
    except (XlogError, SourceError, NeedsFullReplay) as error:
        return type(error).__name__, str(error)
    states: list[Any] = [
        (key, [tuple(each) for each in state] if isinstance(state, list) else state)
        for key, state in folder.states.items()
    ]
    return sorted(states, key=lambda pair: pair[0]), sorted(folder.rows())


def outcome(data: bytes) -> object:
    """Read a block of a log, or of a snapshot, in all ways.

    Returns:
        What is found.
    """
    logging.getLogger("pyspark_tarantool.source").setLevel(logging.CRITICAL)
    draw = Draw(data)
    how = draw.byte()
    damages = [(draw.byte() << 8 | draw.byte(), draw.byte()) for _ in range(how >> 1 & 3)]
    kind, task, tasks = draw.pick(_KINDS), draw.byte() % 3, draw.byte() % 3 + 1
    if how & 1:
        snapshot = SnapshotEncoder(TIMESTAMP)
        snapshot.rows = draw.pick(_LSNS)
        while not draw.is_used_up and snapshot.rows < 2**33 + 100:
            rows = [codec.pack(draw_row(draw)) for _ in range(draw.byte() % 8)]
            snapshot.add(draw.pick(_SPACE_IDS), rows)
        return tuples_in(damaged(b"".join(snapshot.take()), damages))
    encoder = RowEncoder()
    lsn, payload, number = draw.pick(_LSNS), b"", 0
    while not draw.is_used_up and number < 60:
        requests = [draw_request(draw) for _ in range(draw.byte() % 3 + 1)]
        payload += encoder.transaction(lsn + number, TIMESTAMP, requests)
        number += len(requests)
    payload = damaged(payload, damages)
    if not payload:
        return None
    states = states_in(payload, kind, task % tasks, tasks, has_snapshot=bool(how & 8))
    return rows_in(payload), states


@cache
def replaced() -> list[tuple[ModuleType, str, object, object]]:
    """List the names in Spark's modules that stand for compiled code, with that and its Python version."""
    versions = [
        (getattr(sys.modules[python.__module__], python.__name__), python)
        for python in native.in_python.values()
    ]
    return [
        (module, name, compiled, python)
        for path, module in sys.modules.items()
        if path.startswith("pyspark_tarantool.")
        for name, value in vars(module).items()
        for compiled, python in versions
        if value is compiled
    ]


def check(data: bytes) -> None:
    """Read a block by compiled code, and by its Python versions."""
    compiled = repr(outcome(data))
    try:
        for module, name, _, python in replaced():
            setattr(module, name, python)
        assert repr(outcome(data)) == compiled
    finally:
        for module, name, value, _ in replaced():
            setattr(module, name, value)


TARGET: Final = Target(
    check,
    [
        bytes((0, 0, 0, 0, 0, 0, 1, 0, 4, 1, 2, 0, 2, 0, 0, 5, 0, 0, 2, 0, 4, 0, 0, 7)),
        *(
            bytes((8, kind, 0, 0, lsn, 0, 2, 0, how, 1, 2, 0, 4, 0, how, 1))
            for kind in range(4)
            for how in (0, 2)
            for lsn in (0, 2, 4)
        ),
        *(
            bytes((0, kind, 1, 1, 3, 2, 2, 0, 4, 9, 1, 3, 0, 4, 8, 1, 3, 6, 0, 0, 8, 1, 0, 2, 3))
            for kind in range(4)
        ),
        *(
            bytes((1, 0, 0, 0, lsn, 5, *(4, 9, 0, 1, 4, 8, 3, 2, 6, 1, 3, 4, 4, 7, 0, 5), 0))
            for lsn in range(6)
        ),
        bytes((1, 0, 0, 0, 1, 7, *(2, 0, 2, 1, 2, 2, 6, 1, 3, 2, 10, 1, 3, 2, 3, 1), 0)),
        bytes((3, 0, 60, 1, 0, 0, 0, 1, 5, *(4, 9, 0, 1, 4, 8, 3, 2, 6, 1, 3, 4), 0)),
        bytes((2, 0, 40, 7, 0, 0, 0, 1, 0, 2, 0, 4, 9, 1, 2, 0, 3, 0, 4, 8, 1, 3)),
    ],
    {
        "a number that exceeds 63 bits": b"\xfe\xfe\xff\xff\xff\xff\xff\xc9\xda\xfa\xff\xff\xff/\xff\0\0\xfe"
        + b"\xff" * 12,
        "a timestamp of MessagePack": b"\1\0\0\0\4\5"
        + b"\4\x08\1\0\0\0\4\5" * 3
        + b"\4\x08\3\2\6\1\x19\x87\xb1\x8e\xf8\3\4\4\7\0\5\xf9\0",
    },
    memory=16 << 20,
)
