"""Rows of files against the answers to `select` of those who serve them: our server, and a Tarantool."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgpack
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo

from iproto_server.codec.msgpack import Datetime, Interval, pack, unpack
from tests.interchange.database.home import OURS, TARANTOOL, Home
from tests.interchange.database.packing import Packed, extension, float32, long_form
from tests.interchange.database.statements import Statement, call, create_index, insert, snapshot
from tests.spark.source.reading import Read

pytestmark = pytest.mark.real_tarantool

SPACE: Final = 600
NAME: Final = "everything"

TYPES: Final = (
    "unsigned",
    "any",
    "integer",
    "number",
    "double",
    "decimal",
    "string",
    "varbinary",
    "boolean",
    "uuid",
    "scalar",
    "array",
    "map",
)
"""The types of Tarantool 2.6; fields have the names of their types."""

_UUID: Final = UUID("6f0f4d0e-1b52-4a3c-9a73-4d8a9c8d8f11")
_LONG: Final = "long " * 20_000


def _row(key: int, **values: Any) -> list[Any]:
    """A row that has nil in all fields but those given."""
    return [key, *(values.get(name) for name in TYPES[1:])]


ROWS: Final[list[list[Any]]] = [
    _row(0),
    [1],
    [2, "any", 3],
    _row(2**64 - 1, integer=2**64 - 1, number=2**64 - 1, scalar=2**64 - 1, any=2**64 - 1),
    _row(2**63, integer=-(2**63), number=-(2**63), scalar=-(2**63), any=-(2**63)),
    _row(2**63 - 1, integer=2**63 - 1, number=2**32, any=[2**64 - 1, -(2**63), 0]),
    _row(10, integer=-1, number=-129, scalar=-32769, any=-(2**31) - 1),
    _row(11, number=0.1, double=0.1, scalar=-0.5, any=1e300),
    _row(12, number=float32(0.1), double=1e-320, scalar=float32(1.5), any=float32(-2.25)),
    _row(13, number=1.0, double=-0.0, scalar=1e100, any=5e-324),
    _row(14, number=Decimal("1.50"), decimal=Decimal("-0.000001"), scalar=Decimal("7"), any=Decimal("0.0")),
    _row(15, decimal=Decimal("9" * 38), any=[Decimal("12345678901234567890123456789.5")]),
    _row(16, string="", scalar="", any=""),
    _row(17, string='quoted "text" \\ and\n\x01', scalar='"', any='"\\\x1f\x7f'),
    _row(18, string="späße ☃ \U0001f600", scalar="ü", any={"schlüssel": "größe"}),
    _row(19, string=_LONG, any=_LONG, array=[_LONG], varbinary=_LONG.encode()),
    _row(20, varbinary=b"", scalar=b"\x00\xff", any=b"\xde\xad"),
    _row(21, boolean=True, scalar=False, any=True),
    _row(22, boolean=False, scalar=True, any=[None, True, False]),
    _row(23, uuid=_UUID, any={"uuid": _UUID}),
    _row(24, array=[], map={}, any=[]),
    _row(25, array=[1, [2, [3, {"deep": [4.5, None, "x"]}]]], map={"a": {"b": {"c": [1, 2]}}}, any={}),
    _row(26, map={1: "one", "two": 2, -3: [3]}, any={True: 1}),
    _row(27, array=list(range(1000)), any={str(number): number for number in range(100)}),
    [*_row(28, any="with more"), "extra", {"behind": [1, 2]}],
    [*_row(29), None],
    _row(30, any=extension(100, b"\x01\x02\x03"), array=[extension(9, b"")]),
    _row(31, integer=long_form(5), number=long_form(6), any=long_form(7), scalar=long_form(8)),
]

NO_UTF8: Final = 32
_BAD: Final = Packed(b"\xa2\xff\xfe")


def _create() -> list[Statement]:
    fields = [{"name": name, "type": name, "is_nullable": True} for name in TYPES]
    fields[0]["is_nullable"] = False
    return [
        call("box.schema.space.create", NAME, {"id": SPACE, "format": fields}),
        create_index(NAME, "pk", (1, "unsigned")),
    ]


@pytest.fixture(scope="module")
def selected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """A directory with all rows, some of them in a log only, and what both servers answer to `select`."""
    home = Home(tmp_path_factory.mktemp("home"))
    bad = _row(NO_UTF8, string=_BAD, scalar=_BAD, any=[_BAD])
    half = len(ROWS) // 2
    with home.of(OURS, checkpoint_count=9) as server:
        server.do(_create())
        server.do([insert(SPACE, *row) for row in [*ROWS[:half], bad]])
        server.do([snapshot()])
        server.do([insert(SPACE, *row) for row in ROWS[half:]])
        ours = server.contents().of(f"{NAME}.pk")
    with home.of(TARANTOOL, checkpoint_count=9) as server:
        theirs = server.contents().of(f"{NAME}.pk")
        server.do([snapshot()])
    assert ours == theirs
    assert len(ours) == len(ROWS) + 1
    return home.directory, ours


def _json(value: Any) -> Any:
    """What `json.loads` makes of the text of a value, numbers as texts."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        return _base64(value)
    if isinstance(value, msgpack.ExtType):
        return _base64(bytes(msgpack.packb(value)))
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): _json(item) for key, item in value.items()}
    return [_json(item) for item in value]


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _read_json(text: str | None) -> Any:
    return None if text is None else json.loads(text, parse_int=str, parse_float=str)


def _same_number(text: str | None, value: Any) -> bool:
    """Whether a text is that of a number, to the last digit and bit."""
    if text is None or value is None:
        return text is None and value is None
    if isinstance(value, float):
        return struct.pack(">d", float(text)) == struct.pack(">d", value) and not text.isdecimal()
    return text == (f"{value:f}" if isinstance(value, Decimal) else str(value))


_CHECKS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "unsigned": lambda column, value: column == value and isinstance(column, Decimal),
    "integer": lambda column, value: column == value,
    "number": _same_number,
    "double": lambda column, value: (
        (column is None) == (value is None)
        and (value is None or struct.pack(">d", column) == struct.pack(">d", value))
    ),
    "decimal": lambda column, value: column == (None if value is None else f"{value:f}"),
    "string": lambda column, value: column == value,
    "varbinary": lambda column, value: column == value,
    "boolean": lambda column, value: column is value,
    "uuid": lambda column, value: column == (None if value is None else str(value)),
}
"""How a column is compared with the value that was selected; those of other types are JSON."""


def assert_equal(rows: list[dict[str, Any]], selected_rows: list[bytes]) -> None:
    """Compare field by field, those with strings that are no UTF-8 left out."""
    expected = {raw: unpack(raw) for raw in selected_rows if b"\xff\xfe" not in raw}
    found = {bytes(row["_raw"]): row for row in rows}
    assert found.keys() == expected.keys()
    for raw, values in expected.items():
        row = found[raw]
        for place, name in enumerate(TYPES):
            value = values[place] if place < len(values) else None
            check = _CHECKS.get(name)
            if check is None:
                assert _read_json(row[name]) == _json(value), (name, row[name], value)
            else:
                assert check(row[name], value), (name, row[name], value)
        extra = values[len(TYPES) :]
        assert _read_json(row["_extra"]) == (_json(extra) if extra else None)


def test_a_snapshot_has_what_both_servers_select(
    spark: SparkSession, selected: tuple[Path, list[bytes]]
) -> None:
    """Through Spark, and with each tuple's bytes as they were sent to the client."""
    directory, rows = selected
    table = spark.read.format("tarantool").options(mode="snapshot", space=NAME, raw="true")
    shown = table.load(str(directory)).where(f"unsigned != {NO_UTF8}").collect()
    assert_equal([row.asDict() for row in shown], rows)


def test_the_state_after_the_logs_is_what_both_servers_select(selected: tuple[Path, list[bytes]]) -> None:
    directory, rows = selected
    read = Read(directory, mode="current", space=NAME, raw="true")
    assert sorted(read.column("_raw")) == sorted(rows)


def test_changes_have_the_tuples_that_were_inserted(selected: tuple[Path, list[bytes]]) -> None:
    directory, rows = selected
    batches = Read(directory, mode="changes", space=NAME, raw="true").batches
    assert {tuple(batch.column("operation").unique().to_pylist()) for batch in batches} == {("INSERT",)}
    found = [
        {**after, "_raw": raw}
        for batch in batches
        for utf8 in [batch.filter([b"\xff\xfe" not in raw for raw in batch.column("tuple_raw").to_pylist()])]
        for after, raw in zip(
            utf8.column("after").to_pylist(), utf8.column("tuple_raw").to_pylist(), strict=True
        )
    ]
    assert_equal(found, rows)


def test_strings_that_are_no_utf8_keep_their_bytes(selected: tuple[Path, list[bytes]]) -> None:
    directory, _ = selected
    read = Read(directory, filters=(EqualTo(("unsigned",), Decimal(NO_UTF8)),), mode="snapshot", space=NAME)
    assert read.unhandled == []
    assert read.column("unsigned") == [NO_UTF8]
    assert read.bytes_of("string") == [b"\xff\xfe"]
    assert read.bytes_of("scalar") == [b'"\xff\xfe"']
    assert read.bytes_of("any") == [b'["\xff\xfe"]']


MOMENTS: Final = [
    (Datetime(0), "1970-01-01T00:00:00Z"),
    (Datetime(1_700_000_000, 123_456_789), "2023-11-14T22:13:20.123456789Z"),
    (Datetime(-1, 999_999_999, tzoffset=-90), "1969-12-31T22:29:59.999999999-01:30"),
    (Datetime(253_402_300_799), "9999-12-31T23:59:59Z"),
    (Datetime(-62_135_596_800), "0001-01-01T00:00:00Z"),
]
SPANS: Final = [
    (Interval(), "PT0S"),
    (
        Interval(year=1, month=-2, week=3, day=4, hour=5, minute=6, second=7, nsec=8),
        "P1Y-2M3W4DT5H6M7.000000008S",
    ),
    (Interval(nsec=-1), "PT-0.000000001S"),
    (Interval(day=-1), "P-1D"),
]


def test_datetimes_and_intervals(tmp_path: Path) -> None:
    """Our server has them; Tarantool 2.6 does not."""
    home = Home(tmp_path)
    rows = [*((moment, None) for moment, _ in MOMENTS), *((None, span) for span, _ in SPANS)]
    with home.of(OURS, checkpoint_count=9) as server:
        server.do(
            [
                call(
                    "box.schema.space.create",
                    NAME,
                    {
                        "id": SPACE,
                        "format": [
                            {"name": "id", "type": "unsigned"},
                            {"name": "moment", "type": "datetime", "is_nullable": True},
                            {"name": "span", "type": "interval", "is_nullable": True},
                            {"name": "any", "type": "any", "is_nullable": True},
                        ],
                    },
                ),
                create_index(NAME, "pk", (1, "unsigned")),
                *(
                    insert(SPACE, number, *(Packed(pack(value)) for value in (*row, list(row))))
                    for number, row in enumerate(rows)
                ),
                snapshot(),
            ]
        )
        selected = [unpack(raw) for raw in server.contents().of(f"{NAME}.pk")]
    assert [tuple(row[1:3]) for row in selected] == rows
    batch = Read(tmp_path, mode="snapshot", space=NAME).batches[0]
    microseconds = batch.column("moment").cast(pa.int64()).to_pylist()
    expected = [moment.seconds * 1_000_000 + moment.nsec // 1000 for moment, _ in MOMENTS]
    assert microseconds == expected + [None] * len(SPANS)
    assert batch.column("span").to_pylist() == [None] * len(MOMENTS) + [text for _, text in SPANS]
    texts = [json.loads(text) for text in batch.column("any").to_pylist()]
    assert texts == [[text, None] for _, text in MOMENTS] + [[None, text] for _, text in SPANS]
