"""Values of the box as fields of Tarantool 1.5's protocol, and back: what is written is what is read."""

from __future__ import annotations

import struct
import uuid

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iproto_server import Box, BoxError, ErrorCode, Number64, Tuple
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.protocol.tarantool15.update_operations import Field
from iproto_server.server.tarantool15.fields import (
    CallResults,
    FieldKind,
    FormatCache,
    RowFields,
    field_of,
    key_of,
    plain_field,
    text_or_bytes,
    value_of,
)
from tests.protocol.tarantool15.box15_client import packed_tuple, u32, u64

SIGNED = (FieldType.INTEGER, FieldType.NUMBER)


def tuples(*rows: list[bytes]) -> list[bytes]:
    """Rows as answers have them."""
    packed = [packed_tuple(*row) for row in rows]
    return [u32(len(row) - 4) + row for row in packed]


class TestKinds:
    @pytest.mark.parametrize(
        ("kind", "data", "value"),
        [
            (FieldKind(FieldType.UNSIGNED), u32(2**32 - 1), 2**32 - 1),
            (FieldKind(FieldType.UNSIGNED), u64(2**64 - 1), 2**64 - 1),
            (FieldKind(FieldType.UNSIGNED, 8), u64(1), 1),
            (FieldKind(FieldType.UNSIGNED, 4), u32(1), 1),
            (FieldKind(FieldType.INTEGER), struct.pack("<i", -1), -1),
            (FieldKind(FieldType.INTEGER, 8), struct.pack("<q", -1), -1),
            (FieldKind(FieldType.NUMBER), struct.pack("<q", -(2**63)), -(2**63)),
            (FieldKind(FieldType.DOUBLE), struct.pack("<d", 1.5), 1.5),
            (FieldKind(FieldType.STRING), b"caf\xc3\xa9", "café"),
            (FieldKind(FieldType.STRING), b"\xff", "\udcff"),
            (FieldKind(FieldType.STRING, is_nullable=True), b"nil", "nil"),
            (FieldKind(FieldType.VARBINARY), b"text", b"text"),
            (FieldKind(FieldType.BOOLEAN), b"true", True),
            (FieldKind(FieldType.BOOLEAN), b"false", False),
            (FieldKind(FieldType.ANY), b"text", "text"),
            (FieldKind(FieldType.ANY), b"\xff", b"\xff"),
            (FieldKind(FieldType.SCALAR), b"", ""),
            (FieldKind(FieldType.UNSIGNED, is_nullable=True), b"nil", None),
            (FieldKind(FieldType.MAP, is_nullable=True), b"nil", None),
        ],
    )
    def test_bytes_and_values(self, kind: FieldKind, data: bytes, value: object) -> None:
        assert value_of(kind, data) == value
        assert field_of(kind, value) == data

    @pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 7, 9, 16])
    @pytest.mark.parametrize("type", [FieldType.UNSIGNED, *SIGNED, FieldType.DOUBLE])
    def test_numbers_of_other_sizes_are_none(self, type: FieldType, size: int) -> None:
        with pytest.raises(BoxError) as raised:
            value_of(FieldKind(type), bytes(size))
        assert raised.value.code == ErrorCode.KEY_PART_TYPE

    @pytest.mark.parametrize(
        ("kind", "data", "expected"),
        [
            (FieldKind(FieldType.UNSIGNED, 4), bytes(8), "NUM"),
            (FieldKind(FieldType.UNSIGNED, 8), bytes(4), "NUM64"),
            (FieldKind(FieldType.UNSIGNED), b"nil", "unsigned"),
            (FieldKind(FieldType.DOUBLE), bytes(4), "double"),
            (FieldKind(FieldType.BOOLEAN), b"1", "boolean"),
            (FieldKind(FieldType.MAP), b"{}", "map"),
            (FieldKind(FieldType.ARRAY), b"\x90", "array"),
            (FieldKind(FieldType.UUID), bytes(16), "uuid"),
            (FieldKind(FieldType.DECIMAL), b"1.5", "decimal"),
            (FieldKind(FieldType.DATETIME), bytes(8), "datetime"),
        ],
    )
    def test_what_is_no_value_of_the_type(self, kind: FieldKind, data: bytes, expected: str) -> None:
        message = f"Supplied key field type does not match index type: expected {expected}"
        with pytest.raises(BoxError) as raised:
            value_of(kind, data)
        assert (raised.value.code, raised.value.message) == (ErrorCode.KEY_PART_TYPE, message)

    @pytest.mark.parametrize(
        ("kind", "value", "data"),
        [
            (FieldKind(FieldType.UNSIGNED, 4), 2**32, u64(2**32)),
            (FieldKind(FieldType.INTEGER), 2**31, u64(2**31)),
            (FieldKind(FieldType.INTEGER), 2**64 - 1, u64(2**64 - 1)),
            (FieldKind(FieldType.INTEGER, 4), -1, struct.pack("<i", -1)),
            (FieldKind(FieldType.NUMBER), 1.9, u32(1)),
            (FieldKind(FieldType.NUMBER, 8), -1.9, struct.pack("<q", -1)),
            (FieldKind(FieldType.NUMBER, 8), float("nan"), u64(2**63)),
            (FieldKind(FieldType.NUMBER, 4), 2.0**40, u64(2**40)),
            (FieldKind(FieldType.DOUBLE, 4), 0.5, struct.pack("<d", 0.5)),
            (FieldKind(FieldType.STRING, is_nullable=True), None, b"nil"),
        ],
    )
    def test_values_that_only_others_have_written(self, kind: FieldKind, value: object, data: bytes) -> None:
        assert field_of(kind, value) == data

    @given(
        st.sampled_from(list(FieldType)), st.sampled_from([None, 4, 8]), st.booleans(), st.binary(max_size=9)
    )
    def test_what_is_taken_comes_back_as_the_same_bytes(
        self, type: FieldType, size: int | None, is_nullable: bool, data: bytes
    ) -> None:
        kind = FieldKind(type, size, is_nullable)
        try:
            value = value_of(kind, data)
        except BoxError:
            assume(False)
        if type is FieldType.DOUBLE and value != value:
            return  # of what is no number there are many
        if size is None and isinstance(value, int) and not isinstance(value, bool) and len(data) == 8:
            assert int.from_bytes(field_of(kind, value), "little", signed=type in SIGNED) == value
            return
        assert field_of(kind, codec.unpack(codec.pack(value))) == data


class TestPlainValues:
    @pytest.mark.parametrize(
        ("value", "data"),
        [
            (0, u32(0)),
            (2**32 - 1, u32(2**32 - 1)),
            (2**32, u64(2**32)),
            (2**64 - 1, u64(2**64 - 1)),
            (-1, struct.pack("<i", -1)),
            (-(2**31), struct.pack("<i", -(2**31))),
            (-(2**31) - 1, struct.pack("<q", -(2**31) - 1)),
            (Number64(1), u64(1)),
            (Number64(-1), struct.pack("<q", -1)),
            (1.9, u32(1)),
            (-1.9, struct.pack("<i", -1)),
            (1e18, u64(10**18)),
            (float("inf"), u64(2**63)),
            (float("-inf"), u64(2**63)),
            (float("nan"), u64(2**63)),
            (1e300, u64(2**63)),
            (True, b"true"),
            (False, b"false"),
            (None, b"nil"),
            ("é", b"\xc3\xa9"),
            ("\udcff", b"\xff"),
            (b"\0", b"\0"),
        ],
    )
    def test_they_are_what_lua_made_of_them(self, value: object, data: bytes) -> None:
        assert plain_field(value) == data

    @pytest.mark.parametrize(
        ("value", "name"),
        [([], "table"), ({}, "table"), (uuid.UUID(int=1), "UUID"), (2**64, "int"), (object(), "object")],
    )
    def test_what_1_5_has_no_bytes_for(self, value: object, name: str) -> None:
        with pytest.raises(BoxError) as raised:
            plain_field(value)
        assert raised.value.code == ErrorCode.PROC_RET
        assert raised.value.message == f"Return type '{name}' is not supported in the binary protocol"

    def test_a_text_that_is_none(self) -> None:
        with pytest.raises(BoxError, match="no UTF-8 form"):
            plain_field("\ud800")

    @given(st.binary())
    def test_bytes_are_a_text_if_they_are_utf_8(self, data: bytes) -> None:
        value = text_or_bytes(data)
        assert plain_field(value) == data
        assert isinstance(value, str) == (data.decode(errors="replace").encode() == data)


class TestRows:
    @pytest.fixture
    def box(self) -> Box:
        box = Box()

        def create() -> None:
            fields = [("id", "unsigned"), {"name": "long", "type": "unsigned", "size": 8}, ("any", "any")]
            space = box.schema.create_space("rows", format=fields)
            space.create_index("primary", parts=["id"])
            space.create_index("later", unique=False, parts=[(4, "string"), "long"])
            space.create_index(
                "path",
                unique=False,
                parts=[{"field": 3, "type": "unsigned", "path": "a", "is_nullable": True}],
            )

        box.run(box.session.background, create)
        return box

    def test_indexes_say_what_the_format_does_not(self, box: Box) -> None:
        fields = RowFields(box.catalog.space_by_name("rows").format)
        assert fields.kind(0) == FieldKind(FieldType.UNSIGNED)
        assert fields.kind(1) == FieldKind(FieldType.UNSIGNED, 8)
        assert fields.kind(2).type is FieldType.ANY
        assert fields.kind(3).type is FieldType.MAP
        assert fields.kind(4).type is FieldType.STRING
        assert fields.kind(99) == FieldKind(FieldType.ANY)

    @pytest.mark.parametrize("size", [0, 5, "8", 4.5, True, None])
    def test_a_size_there_is_not_means_nothing(self, size: object) -> None:
        box = Box()
        fields = [{"name": "id", "type": "unsigned", "size": size}]
        space = box.run(box.session.background, lambda: box.schema.create_space("rows", format=fields))
        assert RowFields(space.core().format).kind(0).size is None

    def test_keys_have_the_types_of_their_parts(self, box: Box) -> None:
        space = box.catalog.space_by_name("rows")
        fields = RowFields(space.format)
        assert key_of(space.index(1), fields, [b"text", u32(5)]) == ["text", 5]
        assert key_of(space.index(1), fields, [b"text"]) == ["text"]
        assert key_of(space.index(2), fields, [u64(5)]) == [5]
        assert key_of(space.index(2), fields, [b"nil"]) == [None]
        with pytest.raises(BoxError) as raised:
            key_of(space.index(0), fields, [u32(1), u32(2)])
        assert raised.value.message == "Invalid key part count (expected [0..1], got 2)"

    def test_a_format_is_looked_at_once(self, box: Box) -> None:
        formats = FormatCache()
        format = box.catalog.space_by_name("rows").format
        assert formats.fields(format) is formats.fields(format)

    def test_formats_that_are_gone_are_forgotten(self) -> None:
        box = Box()
        formats = FormatCache()
        space = box.run(box.session.background, lambda: box.schema.create_space("rows"))
        for number in range(1001):
            names = [{"name": f"f{number}"}]
            box.run(box.session.background, space.format, names)
            formats.fields(space.core().format)
        assert len(formats._cached) == 1

    def test_an_update_keeps_what_it_does_not_touch(self, box: Box) -> None:
        fields = RowFields(box.catalog.space_by_name("rows").format)
        old = [1, 5, 1.5, {"a": 1}, "text"]
        assert fields.updated(old, [Field(None, number) for number in range(5)]) == old

    def test_what_moves_to_a_field_of_another_type_is_read_anew(self, box: Box) -> None:
        fields = RowFields(box.catalog.space_by_name("rows").format)
        moved = fields.updated([1, 5, "x"], [Field(None, 0), Field(u64(7)), Field(None, 1)])
        assert moved == [1, 7, "\5\0\0\0\0\0\0\0"]
        with pytest.raises(BoxError) as raised:
            fields.updated([1, 5, "x"], [Field(None, 2)])
        assert raised.value.code == ErrorCode.KEY_PART_TYPE

    @pytest.mark.parametrize(
        ("before", "data", "value"),
        [(5, u32(9), 9), (-5, u32(2**32 - 1), -1), (5, u32(2**32 - 1), 2**32 - 1)],
    )
    def test_a_number_in_a_field_without_a_type_stays_one_when_it_is_calculated_with(
        self, before: int, data: bytes, value: int
    ) -> None:
        field = Field(data, 0)
        field.is_calculated = True
        assert RowFields(Format([])).updated([before], [field]) == [value]
        assert RowFields(Format([])).updated(["text"], [field]) == [text_or_bytes(data)]


class TestResults:
    def test_rows_have_the_sizes_of_their_format(self) -> None:
        box = Box()
        fields = [("id", "unsigned"), {"name": "long", "type": "unsigned", "size": 8}]
        space = box.run(box.session.background, lambda: box.schema.create_space("rows", format=fields))
        row = Tuple(codec.pack([1, 2, "x", 3]), space.core().format)
        results = CallResults(FormatCache())
        expected = [u32(1), u64(2), b"x", u32(3)]
        assert results.tuples(row) == tuples(expected)
        assert results.tuples([row, row]) == tuples(expected, expected)
        assert results.tuples((row, 1)) == tuples(expected, [u32(1)])
        assert results.tuples(Tuple(row.raw)) == tuples([u32(1), u32(2), b"x", u32(3)])

    @pytest.mark.parametrize(
        ("result", "expected"),
        [
            (None, []),
            ((), []),
            ((None,), [[b"nil"]]),
            ([], [[]]),
            ({}, [[]]),
            ([[]], [[]]),
            ([["a"], "b", ["c", "d"]], [[b"a"], [b"b"], [b"c", b"d"]]),
            ([{"a": "x"}], [[b"x"]]),
            ({"a": ["x"], "b": "y"}, [[b"x"], [b"y"]]),
            (([["a"]],), [[b"a"]]),
            (codec.Raw(codec.pack(["a", "b"])), [[b"a", b"b"]]),
            (codec.Raw(codec.pack([["a"], ["b"]])), [[b"a"], [b"b"]]),
            ([codec.Raw(codec.pack(["a"]))], [[b"a"]]),
        ],
    )
    def test_shapes(self, result: object, expected: list[list[bytes]]) -> None:
        assert CallResults(FormatCache()).tuples(result) == tuples(*expected)

    @pytest.mark.parametrize("result", [["a", ["b"]], [[["a"]]], (["a"], [["b"]]), {"a": 1, "b": {}}])
    def test_what_is_nested_deeper(self, result: object) -> None:
        with pytest.raises(BoxError) as raised:
            CallResults(FormatCache()).tuples(result)
        assert raised.value.code == ErrorCode.PROC_RET

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text() | st.binary(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
            ),
            max_leaves=8,
        )
    )
    def test_anything_is_tuples_or_refused(self, result: object) -> None:
        try:
            packed = CallResults(FormatCache()).tuples(result)
        except BoxError:
            return
        assert all(type(each) is bytes for each in packed)
