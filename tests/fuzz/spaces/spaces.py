"""Spaces of all kinds, and requests to them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from iproto_server import Box, BoxError, ErrorCode
from iproto_server.codec import msgpack as codec
from iproto_server.protocol.constants import Key, RequestType
from tests.fuzz.draw import Draw
from tests.fuzz.spaces.updates import draw_operation
from tests.fuzz.wire.requests import frame_of

_ROWS_MOST: Final = 40
FIRST: Final = 700

_UNSIGNED: Final = (0, 1, 2, 3, 127, 128, 2**32, 2**64 - 1)
_INTEGERS: Final = (-1, 0, 1, -129, 300, -(2**63), 2**63)
_NUMBERS: Final = (0, 1, 1.0, -1.5, 2**63, 2.0**63, Decimal("1.5"), Decimal("1.0"), -(2**53) - 1, 1e300)
_STRINGS: Final = ("", "a", "A", "b", "ab", "a\0", "é", "x" * 40, "xxxxxxxxxxxxxxxxy")
_SCALARS: Final = (*_NUMBERS, *_STRINGS, True, False, b"a", UUID(int=5))
_ANY: Final[tuple[object, ...]] = (None, 1, "a", [1, 2], {"b": 3}, 0.5, [], {"b": "x", "c": [7]})
_LISTS: Final[tuple[object, ...]] = ([], [1], [1, 2, 3], [3, 3], [2**40, 0], [None], ["a"], 5, None)
_MAPS: Final[tuple[object, ...]] = ({"b": 1}, {"b": 2, "c": "x"}, {"b": None}, {}, [1], None)
_POOLS: Final[dict[str, tuple[object, ...]]] = {
    "unsigned": _UNSIGNED,
    "integer": _INTEGERS,
    "number": _NUMBERS,
    "string": _STRINGS,
    "scalar": _SCALARS,
    "boolean": (True, False),
    "varbinary": (b"", b"a", b"ab", b"\0"),
    "decimal": (Decimal(0), Decimal("1.5"), Decimal("-1E-5")),
    "uuid": (UUID(int=0), UUID(int=1), UUID(int=2**127)),
    "double": (0.0, -0.0, 1.5, -1.0, 1e300),
    "any": _ANY,
    "list": _LISTS,
    "map": _MAPS,
}

_Index = dict[str, Any]
SPACES: Final[tuple[tuple[tuple[str, ...], tuple[_Index, ...]], ...]] = (
    (("unsigned", "any"), ({"parts": [(0, "unsigned")]},)),
    (
        ("unsigned", "unsigned", "string"),
        (
            {"parts": [(0, "unsigned")]},
            {"parts": [(1, "unsigned")]},
            {"parts": [{"field": 2, "type": "string", "is_nullable": True}], "unique": False},
        ),
    ),
    (
        ("unsigned", "string", "any"),
        ({"parts": [(0, "unsigned")], "type": "hash"}, {"parts": [(1, "string")], "type": "hash"}),
    ),
    (
        ("string", "unsigned", "integer"),
        (
            {"parts": [(0, "string"), (1, "unsigned")]},
            {"parts": [(2, "integer")], "unique": False},
            {"parts": [(1, "unsigned"), (0, "string"), (2, "integer")]},
        ),
    ),
    (("string", "number"), ({"parts": [(0, "string")]}, {"parts": [(1, "number")], "unique": False})),
    (("scalar", "boolean"), ({"parts": [(0, "scalar")]}, {"parts": [(1, "boolean")], "unique": False})),
    (
        ("unsigned", "list", "map"),
        (
            {"parts": [(0, "unsigned")]},
            {"parts": [{"field": 1, "type": "unsigned", "path": "[*]"}], "unique": False},
            {"parts": [{"field": 2, "type": "unsigned", "path": "b", "is_nullable": True}], "unique": False},
        ),
    ),
    (
        ("string", "unsigned"),
        (
            {"parts": [{"field": 0, "type": "string", "collation": "unicode_ci"}]},
            {"parts": [{"field": 1, "type": "unsigned", "is_nullable": True}], "unique": False},
        ),
    ),
    (("decimal", "uuid"), ({"parts": [(0, "decimal")]}, {"parts": [(1, "uuid")], "unique": False})),
    (("varbinary", "double"), ({"parts": [(0, "varbinary")]}, {"parts": [(1, "double"), (0, "varbinary")]})),
    (("uuid", "any"), ({"parts": [(0, "uuid")]},)),
    (("integer", "unsigned"), ({"parts": [(0, "integer")]}, {"parts": [(1, "unsigned")]})),
)
"""The types of the fields, and the indexes, of each space. Some are also made without a format."""

HASHED: Final = FIRST + 2
"""The space whose rows have no order."""

_TRIGGERED: Final = FIRST + len(SPACES)
_BEFORE: Final = _TRIGGERED + 1
_TEMPORARY: Final = _BEFORE + 1
_END: Final = _TEMPORARY + 1

NAMES: Final = (*(f"s{number}" for number in range(FIRST, _END)), "rows", "scratch", "twofold")
NOT_LOGGED: Final = (f"s{_TEMPORARY}", "scratch")

PROCEDURES: Final = (
    *("echo", "one", "put", "put_everywhere", "put_aside", "put_twofold", "drop", "drop_twofold"),
    *("put_and_tell", "put_and_fail", "wrap", "unpackable", "nothing", "asynchronous"),
    *(
        f"box.space.s{number}:{method}"
        for number in (FIRST, FIRST + 1, FIRST + 3)
        for method in ("select", "insert", "replace", "get", "delete", "update", "upsert")
    ),
    *("box.space.s701.index[1]:select", "box.space.s701.index[2]:get", "box.space.s702:count"),
    *("box.space.s702:get", "box.space.s702:replace", "box.space.s702:delete"),
)
_KINDS: Final = (
    *(RequestType.INSERT, RequestType.REPLACE, RequestType.REPLACE, RequestType.SELECT, RequestType.SELECT),
    *(RequestType.UPDATE, RequestType.UPDATE, RequestType.UPSERT, RequestType.DELETE, RequestType.CALL),
    *(RequestType.CALL_16, RequestType.PING),
)
_LIMITS: Final = (0, 1, 2, 5, 100, 2**32 - 1, 2**32, 2**64 - 1)


def make_spaces(box: Box) -> None:
    """Make spaces of all kinds."""
    for number, (types, indexes) in enumerate(SPACES, FIRST):
        space = box.schema.create_space(f"s{number}", id=number)
        if number % 2:
            space.format(
                [
                    {"name": f"f{place}", "type": kind, "is_nullable": _is_nullable(indexes, place)}
                    for place, kind in enumerate(types)
                ]
            )
        for place, index in enumerate(indexes):
            space.create_index(f"i{place}", **index)
    for number in (_TRIGGERED, _BEFORE, _TEMPORARY):
        space = box.schema.create_space(f"s{number}", id=number, temporary=number == _TEMPORARY)
        space.create_index("primary", parts=[(0, "unsigned")])
    box.space[f"s{_TRIGGERED}"].on_replace(_refuse)
    box.space[f"s{_BEFORE}"].before_replace(_alter)


def _is_nullable(indexes: tuple[_Index, ...], place: int) -> bool:
    return any(
        isinstance(part, dict) and part["field"] == place and part.get("is_nullable", False)
        for index in indexes
        for part in index["parts"]
    )


def _refuse(old: Any, new: Any) -> None:
    if new is not None and new[0] == 3:
        raise BoxError(ErrorCode.TUPLE_FOUND, "a", "trigger")
    if old is not None and old[0] == 2:
        raise ValueError("a fault")


def _alter(old: Any, new: Any) -> Any:
    return old if new is not None and len(new) > 2 else new


def draw_row(draw: Draw, types: tuple[str, ...]) -> list[object]:
    """Draw a row, which may not fit."""
    row = [draw.pick(_POOLS[kind]) for kind in types]
    changes = draw.byte()
    if changes >= 0xC0:
        row[changes % len(row) :] = draw.values(3)
    return row


def draw_key(draw: Draw, space: int, index: int) -> list[object]:
    """Draw a key of an index, which may not fit."""
    how = draw.byte()
    types, indexes = SPACES[(space - FIRST) % len(SPACES)]
    if space != HASHED and (how >= 0xE0 or index >= len(indexes)):
        return draw.values(3)
    parts = indexes[index % len(indexes)]["parts"]
    fields = [part["field"] if isinstance(part, dict) else part[0] for part in parts]
    key = [
        draw.pick(_POOLS["unsigned" if types[field] in ("list", "map") else types[field]]) for field in fields
    ]
    return key[: len(key) - how % 4 // 3]


def draw_frame(draw: Draw) -> bytes:
    """Draw a request, valid or not."""
    how = draw.byte()
    if how == 0xFF:
        return draw.chunk()
    kind = draw.pick(_KINDS)
    body: dict[Any, object] = {}
    if kind in (RequestType.CALL, RequestType.CALL_16):
        body[Key.FUNCTION_NAME] = draw.pick(PROCEDURES)
        space = FIRST + draw.byte() % 4
        arguments: list[object] = [draw_row(draw, SPACES[space - FIRST][0]) for _ in range(draw.byte() % 3)]
        body[Key.TUPLE] = arguments if how & 0x10 else [*draw.values(3)]
    elif kind != RequestType.PING:
        space = FIRST + draw.byte() % (_END - FIRST)
        index = draw.byte() % 8
        index = index if index < 4 else 0
        body[Key.SPACE_ID] = space
        types = SPACES[(space - FIRST) % len(SPACES)][0]
        if kind in (RequestType.INSERT, RequestType.REPLACE, RequestType.UPSERT):
            body[Key.TUPLE] = draw_row(draw, types)
        else:
            body[Key.KEY] = draw_key(draw, space, index)
            if index:
                body[Key.INDEX_ID] = index
        operations: list[object] = []
        if kind in (RequestType.UPDATE, RequestType.UPSERT):
            operations = [draw_update(draw, types) for _ in range(draw.byte() % 4)]
            body[Key.TUPLE if kind == RequestType.UPDATE else Key.OPS] = operations
            if how & 0x08:
                body[Key.INDEX_BASE] = 1
        if kind == RequestType.SELECT:
            body[Key.LIMIT] = draw.pick(_LIMITS)
            if how & 0x08 and space != HASHED:
                body[Key.ITERATOR] = draw.byte() % 13
            if how & 0x10:
                body[Key.OFFSET] = draw.byte() % 4
    if how & 0x60 == 0x60 and body.get(Key.SPACE_ID) != HASHED:
        body[draw.pick([*Key])] = draw.value(2)
    return frame_of(kind, body)


def draw_update(draw: Draw, types: tuple[str, ...]) -> object:
    """Draw an operation, which often fits the type of its field."""
    how = draw.byte()
    if how & 1:
        return draw_operation(draw)
    field = draw.byte() % (len(types) + 1)
    kind = types[field % len(types)]
    return ["=!+-"[how >> 1 & 3], field, draw.pick(_POOLS[kind])]


def rows_of(box: Box) -> list[object]:
    """Return the number and sizes of rows of each space, and the first rows of each index."""
    found: list[object] = []
    for name in NAMES:
        space = box.space[name]
        if not space.len() and not space.bsize():
            continue
        found.append((name, space.len(), space.bsize()))
        for index in space.index:
            raws = [row.raw for row in index.select(limit=_ROWS_MOST)]
            found.append(sorted(raws) if name == f"s{HASHED}" else raws)
    return found


def check_indexes(box: Box, names: Iterable[str] = NAMES) -> None:
    """Check that all indexes of spaces have their rows, under the keys that the rows give them."""
    for name in names:
        space = box.space[name].core()
        if space.primary is None or not len(space.primary):
            assert not any(len(index) for index in space.indexes.values())
            continue
        rows = dict(space.primary.items())
        for index in space.indexes.values():
            entries = list(index.items())
            assert [key for key, _ in entries] == sorted({key for key, _ in entries})
            if index.is_multikey:
                assert {primary_key for _, primary_key in entries} <= set(rows)
            elif index.id:
                assert sorted(primary_key for _, primary_key in entries) == sorted(rows)
                for key, primary_key in entries:
                    assert index.key_of(codec.unpack(rows[primary_key]), primary_key) == key
            else:
                for key, row in entries:
                    assert index.key_of(codec.unpack(row), b"") == key


def empty(box: Box) -> None:
    """Remove all rows, and what procedures have noted."""
    for name in NAMES:
        if box.space[name].len():
            box.run(box.session.background, box.space[name].truncate)
    box.told.clear()  # type: ignore[attr-defined]
