"""Columns made of many packed tuples at once, against each value by itself."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgpack
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Datetime
from pyspark_tarantool.source.arrow.columns import NamedField, RowColumns
from pyspark_tarantool.source.decode.packed import Buffer
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ExtraFields, NumberAs, ReadOptions, UnsignedAs

ANY: Final = FieldType.ANY

integers = st.integers(-(2**63), 2**64 - 1)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=40),
    st.binary(max_size=40),
    st.decimals(allow_nan=False, allow_infinity=False, places=5, min_value=-(10**20), max_value=10**20),
    st.uuids(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner, max_size=20),
    max_leaves=20,
)


def columns_of(*types: FieldType, wanted: StructType | None = None, **options: Any) -> RowColumns:
    """The columns of a space whose fields are called `a`, `b` and so on."""
    fields = [NamedField(chr(ord("a") + place), kind) for place, kind in enumerate(types)]
    return RowColumns("s", fields, ReadOptions(("x",), **options), wanted)


def one_column(
    field_type: FieldType, column: list[Any], wanted: StructType | None = None, **options: Any
) -> list[Any]:
    """What values become in a column."""
    made = columns_of(field_type, wanted=wanted, **options)
    batch = made.batch([codec.pack([value]) for value in column], "file")
    found: list[Any] = batch.column(0).to_pylist()
    return found


class TestTuples:
    @given(st.lists(st.lists(values, max_size=8), max_size=8))
    @example([[list(range(1000))], [["x"] * 70, {"y": [[[]]]}], []])
    def test_are_cut_into_their_items(self, rows: list[list[Any]]) -> None:
        """Wherever arrays and maps begin and end, and however long and deep they are."""
        tuples = Tuples.of([codec.pack(row) for row in rows], 6)
        for place in range(6):
            assert tuples.item(place).raws() == [
                codec.pack(row[place]) if place < len(row) else None for row in rows
            ]
        assert tuples.cells.raws() == [codec.pack(row) for row in rows]
        assert tuples.counts.tolist() == list(map(len, rows))

    def test_may_be_missing(self) -> None:
        tuples = Tuples.of([None, codec.pack([1]), None, codec.pack([2, 3])], 2)
        assert tuples.item(0).values() == [None, 1, None, 2]
        assert tuples.item(1).values() == [None, None, None, 3]
        assert Tuples.of([None], 1).item(0).values() == [None]

    @given(st.binary(max_size=30))
    def test_of_any_bytes_are_refused_or_well_formed(self, data: bytes) -> None:
        try:
            tuples = Tuples.of([data], 3)
        except ValueError:
            return
        assert isinstance(codec.unpack(data), list)
        assert tuples.cells.raws() == [data]

    @given(st.binary(max_size=60), st.binary(min_size=4, max_size=6))
    def test_are_searched_for_in_a_buffer(self, data: bytes, pattern: bytes) -> None:
        text = data + pattern + data + pattern
        places = [place for place in range(len(text)) if text.startswith(pattern, place)]
        assert Buffer(text).find(pattern).tolist() == places

    def test_some_of_them(self) -> None:
        tuples = Tuples.of([codec.pack([number, str(number)]) for number in range(5)], 2)
        some = tuples.take(np.array([True, False, False, True, False]))
        assert some.item(1).values() == ["0", "3"]
        assert some.cells.values() == [[0, "0"], [3, "3"]]


class TestValues:
    @given(st.lists(st.none() | st.integers(0, 2**64 - 1)))
    def test_of_unsigned_are_decimals(self, column: list[int | None]) -> None:
        assert one_column(FieldType.UNSIGNED, column) == column

    @given(st.lists(st.none() | integers))
    def test_of_integer_are_decimals(self, column: list[int | None]) -> None:
        assert one_column(FieldType.INTEGER, column) == column

    @given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
    def test_of_integer_as_bigint(self, column: list[int | None]) -> None:
        assert one_column(FieldType.INTEGER, column, unsigned=UnsignedAs.BIGINT) == column
        assert one_column(FieldType.NUMBER, column, number=NumberAs.BIGINT) == column

    @given(st.lists(st.none() | st.text() | st.text(alphabet="ab", min_size=200, max_size=300)))
    def test_of_string(self, column: list[str | None]) -> None:
        assert one_column(FieldType.STRING, column) == column

    @given(st.lists(st.none() | st.binary()))
    def test_of_varbinary(self, column: list[bytes | None]) -> None:
        assert one_column(FieldType.VARBINARY, column) == column

    @given(st.lists(st.none() | st.floats(allow_nan=False)))
    def test_of_double(self, column: list[float | None]) -> None:
        assert one_column(FieldType.DOUBLE, column) == column

    @given(st.lists(st.none() | st.text() | integers | st.floats(allow_nan=False, allow_infinity=False)))
    def test_of_any_are_json(self, column: list[Any]) -> None:
        found = one_column(ANY, column)
        assert [None if text is None else json.loads(text) for text in found] == column

    @given(st.lists(values, max_size=5))
    def test_of_any_are_alike_in_all_companies(self, column: list[Any]) -> None:
        """A value has the same text, whatever other values there are beside it."""
        assert one_column(ANY, column) == [one_column(ANY, [value])[0] for value in column]

    def test_of_boolean_decimal_and_uuid(self) -> None:
        number = UUID(int=5)
        assert one_column(FieldType.BOOLEAN, [True, None, False]) == [True, None, False]
        assert one_column(FieldType.DECIMAL, [Decimal("1.50"), None]) == ["1.50", None]
        assert one_column(FieldType.UUID, [number, None]) == [str(number), None]

    def test_of_number(self) -> None:
        column = [1, -(2**63), 2**64 - 1, 0.5, 1.0, Decimal("1.50"), None]
        texts = ["1", "-9223372036854775808", "18446744073709551615", "0.5", "1.0", "1.50", None]
        assert one_column(FieldType.NUMBER, column) == texts
        doubles = [1.0, -(2.0**63), 2.0**64, 0.5, 1.0, 1.5, None]
        assert one_column(FieldType.NUMBER, column, number=NumberAs.DOUBLE) == doubles
        assert one_column(FieldType.NUMBER, [1, 2.0, Decimal("3.0")], number=NumberAs.BIGINT) == [1, 2, 3]

    def test_without_json(self) -> None:
        """What JSON lacks has a form that is told in the documentation."""
        told = {
            float("nan"): '"NaN"',
            float("inf"): '"Infinity"',
            float("-inf"): '"-Infinity"',
            b"\x00\xff": '"AP8="',
            Decimal("1e3"): "1000",
            Datetime(0): '"1970-01-01T00:00:00Z"',
        }
        for value, text in told.items():
            assert one_column(ANY, [value]) == [text]
        assert one_column(ANY, [{1: None, (2, 3): float("nan")}]) == ['{"1":null,"[2,3]":"NaN"}']
        timestamps = [
            codec.Raw(msgpack.packb(moment)) for moment in (msgpack.Timestamp(1, 5), msgpack.Timestamp(-1))
        ]
        for unknown in (codec.ExtType(77, b"ab"), *timestamps):
            assert one_column(ANY, [unknown]) == [f'"{b64encode(codec.pack(unknown)).decode()}"']
        assert one_column(ANY, [["null", None]]) == ['["null",null]']


class TestWanted:
    """Columns that the user names."""

    def test_have_the_types_that_are_given(self) -> None:
        wanted = StructType().add("b", StringType()).add("a", DecimalType(12, 2))
        made = columns_of(FieldType.NUMBER, FieldType.UNSIGNED, ANY, wanted=wanted)
        batch = made.batch([codec.pack(row) for row in ([1.25, 7, [1]], [Decimal("-3"), None])], "file")
        assert batch.to_pydict() == {"b": ["7", None], "a": [Decimal("1.25"), Decimal("-3.00")]}

    def test_of_a_field_that_there_is_not_are_refused(self) -> None:
        with pytest.raises(SourceError, match=r"^space 's' has no column 'z': there are a, _extra, _raw$"):
            columns_of(ANY, wanted=StructType().add("z", StringType()))

    def test_of_a_type_that_there_is_not_are_refused(self) -> None:
        wanted = StructType().add("a", StructType())
        expected = "^space 's': the field 'a' of type any cannot be a column of type struct<>$"
        with pytest.raises(SourceError, match=expected):
            columns_of(ANY, wanted=wanted)

    @pytest.mark.parametrize(
        ("field_type", "column", "value", "shown"),
        [
            (FieldType.UNSIGNED, LongType(), 2**63, "9223372036854775808"),
            (FieldType.UNSIGNED, ShortType(), 2**15, "32768"),
            (FieldType.NUMBER, LongType(), 1.5, "1.5"),
            (FieldType.NUMBER, DecimalType(4, 1), Decimal("1.25"), "1.25"),
            (FieldType.NUMBER, DecimalType(4, 1), 10000, "10000"),
            (FieldType.NUMBER, DecimalType(20, 0), True, "true"),
            (FieldType.STRING, LongType(), "1", '"1"'),
            (ANY, BinaryType(), 5, "5"),
            (ANY, DoubleType(), "x" * 200, '"' + "x" * 99 + "…"),
            (FieldType.DATETIME, TimestampType(), Datetime(2**60), None),
        ],
    )
    def test_do_not_take_what_does_not_fit(
        self, field_type: FieldType, column: Any, value: Any, shown: str | None
    ) -> None:
        """The message names file, space, field and value."""
        made = columns_of(field_type, wanted=StructType().add("a", column))
        with pytest.raises(SourceError) as error:
            made.batch([codec.pack([None]), codec.pack([value])], "FILE")
        text = str(error.value)
        assert text.startswith("FILE: space 's', field 'a': the value ")
        assert (
            shown is None
            or f"the value {shown} does not fit a column of type {column.simpleString()}" in text
        )

    def test_must_have_values_where_nil_is_not_allowed(self) -> None:
        made = columns_of(ANY, wanted=StructType().add("a", StringType(), nullable=False))
        assert made.batch([codec.pack([1])], "FILE").column("a").to_pylist() == ["1"]
        with pytest.raises(SourceError, match=r"^FILE: space 's', field 'a': a value is nil$"):
            made.batch([codec.pack([1]), codec.pack([])], "FILE")


class TestExtraFields:
    ROWS: Final = [codec.pack(row) for row in ([1], [2, 3], [4, {"a": None}, "x"], [])]

    def test_are_a_column(self) -> None:
        batch = columns_of(ANY, raw=True).batch(self.ROWS, "file")
        assert batch.schema.names == ["a", "_extra", "_raw"]
        assert batch.column("_extra").to_pylist() == [None, "[3]", '[{"a":null},"x"]', None]
        assert batch.column("_raw").to_pylist() == self.ROWS

    def test_are_dropped(self) -> None:
        assert columns_of(ANY, extra_fields=ExtraFields.DROP).schema.names == ["a"]

    def test_are_an_error(self) -> None:
        made = columns_of(ANY, extra_fields=ExtraFields.FAIL)
        expected = r"^FILE: space 's': a tuple has 3 fields, more than the 1 of the format: \[4,.*\]$"
        with pytest.raises(SourceError, match=expected):
            made.batch(self.ROWS, "FILE")

    def test_do_not_hide_a_field_of_that_name(self) -> None:
        fields = [NamedField("_extra", ANY), NamedField("_raw", ANY)]
        made = RowColumns("s", fields, ReadOptions(("x",), raw=True))
        assert made.schema.names == ["_extra", "_raw", "_extra_", "_raw_"]


def test_what_is_no_tuple_is_refused() -> None:
    with pytest.raises(SourceError, match=r"^FILE: space 's': no array$"):
        columns_of(ANY).batch([codec.pack(5)], "FILE")


def test_no_rows_are_a_batch_of_none() -> None:
    assert columns_of(*FieldType).batch([], "FILE").num_rows == 0
    assert pa.types.is_decimal(columns_of(FieldType.UNSIGNED).arrow_schema.field("a").type)
