"""Formats: parsing of `_space`, and checks of tuples."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec.msgpack import Datetime, ExtType, Interval
from iproto_server.errors import BoxError, ErrorCode

QUEUE = [
    {"name": "id", "type": "number"},
    {"name": "status", "type": "string"},
    {"name": "runat", "type": "number"},
    {"name": "data", "type": "*"},
]


def parse_error(rows: list[Any], **options: Any) -> tuple[int, str]:
    with pytest.raises(BoxError) as caught:
        Format.parse(rows, "s", **options)
    return caught.value.code, caught.value.message


def check_error(space_format: Format, fields: list[Any]) -> tuple[int, str]:
    with pytest.raises(BoxError) as caught:
        space_format.check(fields)
    return caught.value.code, caught.value.message


def one_field(name: str, is_nullable: bool = False) -> Format:
    return Format.parse([{"name": "a", "type": name, "is_nullable": is_nullable}], "s")


def key(*definitions: tuple[Any, ...]) -> KeyDef:
    return KeyDef(
        [
            KeyPart(number, FieldType(name), bool(rest), nullable_action="none" if rest else "default")
            for number, name, *rest in definitions
        ]
    )


class TestParse:
    def test_names_and_types(self) -> None:
        queue = Format.parse(QUEUE, "queue")
        assert [each.type for each in queue.fields] == ["number", "string", "number", "any"]
        assert list(queue.names.items()) == [("id", 0), ("status", 1), ("runat", 2), ("data", 3)]
        assert (queue.min_field_count, queue.exact_field_count) == (4, 0)

    @pytest.mark.parametrize(
        ("written", "meant"), [("*", "any"), ("NUM", "unsigned"), ("str", "string"), ("Map", "map")]
    )
    def test_type_names_in_any_case_and_from_old_versions(self, written: str, meant: str) -> None:
        assert one_field(written).fields[0].type == meant

    def test_the_type_is_any_unless_it_is_given(self) -> None:
        assert Format.parse([{"name": "a"}], "s").fields[0].type is FieldType.ANY

    def test_unknown_keys_are_kept(self) -> None:
        assert Format.parse([{"name": "a", "comment": 3}], "s").fields[0].extra == {"comment": 3}

    @pytest.mark.parametrize(
        ("field", "reason"),
        [
            ("x", "field 1 is not map"),
            ([], "field 1 is not map"),
            ({"name": "a", 5: 1}, "field 1 format is not map with string keys"),
            ({"type": "any"}, "field 1 name is not specified"),
            ({"name": ""}, "field 1 name is not specified"),
            ({"name": "x" * 65001}, "field 1 name is too long"),
            ({"name": "a", "type": "zzz"}, "field 1 has unknown field type"),
            ({"name": "a", "type": "int"}, "field 1 has unknown field type"),
            ({"name": "a", "nullable_action": "zz"}, "field 1 has unknown field on conflict nullable action"),
            (
                {"name": "a", "nullable_action": "none"},
                "field 1 has conflicting nullability and nullable action properties",
            ),
            (
                {"name": "a", "is_nullable": True, "nullable_action": "abort"},
                "field 1 has conflicting nullability and nullable action properties",
            ),
            (
                {"name": "a", "type": "unsigned", "collation": 1},
                "collation is reasonable only for string, scalar and any fields",
            ),
        ],
    )
    def test_invalid_formats(self, field: Any, reason: str) -> None:
        assert parse_error([field]) == (ErrorCode.ALTER_SPACE, f"Can't modify space 's': {reason}")
        assert parse_error([field], error_code=ErrorCode.CREATE_SPACE) == (
            ErrorCode.CREATE_SPACE,
            f"Failed to create space 's': {reason}",
        )

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("name", 1, "string"),
            ("name", None, "string"),
            ("type", 1, "enum"),
            ("type", None, "enum"),
            ("is_nullable", 1, "boolean"),
            ("is_nullable", None, "boolean"),
            ("collation", "unicode", "unsigned"),
            ("collation", -1, "unsigned"),
            ("collation", True, "unsigned"),
            ("default", 5, "string"),
        ],
    )
    def test_a_key_of_the_wrong_type(self, name: str, value: Any, expected: str) -> None:
        assert parse_error([{"name": "a"}, {"name": "b", name: value}]) == (
            ErrorCode.WRONG_SPACE_FORMAT,
            f"Wrong space format (field 2): '{name}' must be {expected}",
        )

    def test_a_collation_that_does_not_exist(self) -> None:
        assert parse_error([{"name": "a", "collation": 999}]) == (
            ErrorCode.WRONG_COLLATION_OPTIONS,
            "Wrong collation options (field 1): collation was not found by ID",
        )

    def test_a_name_twice(self) -> None:
        assert parse_error([{"name": "a"}, {"name": "a"}]) == (
            ErrorCode.SPACE_FIELD_IS_DUPLICATE,
            "Space field 'a' is duplicate",
        )

    @pytest.mark.parametrize("name", ["a\n", "a\u2028", "a\udcff", "\ufffd", "a\u0378"])
    def test_a_name_that_cannot_be_printed(self, name: str) -> None:
        assert parse_error([{"name": name}])[0] == ErrorCode.IDENTIFIER

    @pytest.mark.parametrize("name", ["a b", "ё", "x.y", "\xa0", "\u200b"])
    def test_a_name_that_can(self, name: str) -> None:
        assert Format.parse([{"name": name}], "s").names == {name: 0}

    def test_fewer_fields_than_the_format_names(self) -> None:
        assert parse_error([{"name": "a"}, {"name": "b"}], exact_field_count=1) == (
            ErrorCode.ALTER_SPACE,
            "Can't modify space 's': exact_field_count must be either 0 or >= formatted field count",
        )


VALUES: list[tuple[Any, str]] = [
    (0, "unsigned integer number scalar"),
    (2**64 - 1, "unsigned integer number scalar"),
    (-1, "integer number scalar"),
    (1.0, "double number scalar"),
    (Decimal("0.1"), "decimal number scalar"),
    (True, "boolean scalar"),
    ("", "string scalar"),
    ("\udcff", "string scalar"),
    (b"", "varbinary scalar"),
    (uuid.UUID(int=1), "uuid scalar"),
    (Datetime(0), "datetime scalar"),
    (Interval(), "interval"),
    ([], "array"),
    ({}, "map"),
    (None, ""),
    (ExtType(99, b""), ""),
]
"""Values, and the types other than `any` that accept each."""


class TestTypes:
    @pytest.mark.parametrize("name", [each.value for each in FieldType if each is not FieldType.ANY])
    def test_values_of_types(self, name: str) -> None:
        for value, types in VALUES:
            assert FieldType(name).accepts(value) == (name in types.split()), value
            if name in types.split():
                one_field(name).check([value])
            else:
                assert check_error(one_field(name), [value]) == (
                    ErrorCode.FIELD_TYPE,
                    f"Tuple field 1 type does not match one required by operation: expected {name}",
                )

    def test_any_is_everything(self) -> None:
        for value, _ in VALUES:
            one_field("any").check([value])

    @pytest.mark.parametrize("name", [each.value for each in FieldType if each is not FieldType.ANY])
    def test_nil_belongs_to_nullable_fields_only(self, name: str) -> None:
        one_field(name, is_nullable=True).check([None])
        one_field(name, is_nullable=True).check([])
        assert check_error(one_field(name), [None])[0] == ErrorCode.FIELD_TYPE


class TestCheck:
    def test_a_task_of_the_queue_fits(self) -> None:
        queue = Format.parse(QUEUE, "queue")
        queue.check([1, "R", 0, {"any": "thing"}])
        queue.check([1, "R", 0.5, None, "more", "fields"])

    @pytest.mark.parametrize(
        ("fields", "code", "text"),
        [
            ([], 39, "Tuple field 1 required by space format is missing"),
            ([1, "R", 0], 39, "Tuple field 4 required by space format is missing"),
            (
                ["x"],
                23,
                "Tuple field 1 type does not match one required by operation: expected number",
            ),
            (
                [1, 2, "x", 0],
                23,
                "Tuple field 2 type does not match one required by operation: expected string",
            ),
        ],
    )
    def test_the_first_fault_is_told(self, fields: list[Any], code: int, text: str) -> None:
        assert check_error(Format.parse(QUEUE, "queue"), fields) == (code, text)

    def test_a_fixed_number_of_fields(self) -> None:
        fixed = Format.parse([], "s", 3)
        fixed.check([1, 2, 3])
        for count in (0, 2, 4):
            assert check_error(fixed, [1] * count) == (
                ErrorCode.EXACT_FIELD_COUNT,
                f"Tuple field count {count} does not match space field count 3",
            )

    def test_a_nullable_field_between_required_ones_may_be_nil_but_not_missing(self) -> None:
        rows = [{"name": "a", "type": "string", "is_nullable": True}, {"name": "b", "type": "unsigned"}]
        space_format = Format.parse(rows, "s")
        space_format.check([None, 1])
        assert check_error(space_format, [None])[1].startswith("Tuple field 2 required")
        assert check_error(space_format, [None, -1])[0] == ErrorCode.FIELD_TYPE

    @given(st.data())
    def test_the_quick_check_finds_what_a_look_at_every_field_finds(self, data: st.DataObject) -> None:
        rows = data.draw(
            st.lists(
                st.tuples(st.sampled_from(["unsigned", "string", "any", "scalar"]), st.booleans()), max_size=5
            )
        )
        exact_count = data.draw(st.sampled_from([0, 0, len(rows), len(rows) + 1]))
        space_format = Format.parse(
            [{"name": f"f{n}", "type": name, "is_nullable": nil} for n, (name, nil) in enumerate(rows)],
            "s",
            exact_count,
        )
        fields = data.draw(st.lists(st.sampled_from([None, -1, 1, "x"]), max_size=6))
        fits = not exact_count or len(fields) == exact_count
        for number, (name, nil) in enumerate(rows):
            if number >= len(fields):
                fits &= nil
            else:
                fits &= FieldType(name).accepts(fields[number]) or (nil and fields[number] is None)
        if fits:
            space_format.check(fields)
        else:
            check_error(space_format, fields)


class TestIndexParts:
    def test_indexed_fields_are_required_even_without_a_format(self) -> None:
        indexed = Format.parse([], "s").with_index_parts([key((2, "string"), (0, "unsigned"))])
        indexed.check([1, None, "x"])
        assert indexed.min_field_count == 3
        assert check_error(indexed, [1])[1] == "Tuple field 3 required by space format is missing"
        assert check_error(indexed, [])[1] == "Tuple field 1 required by space format is missing"
        assert check_error(indexed, ["a"])[0] == ErrorCode.FIELD_TYPE
        assert indexed.names == {}

    @pytest.mark.parametrize(
        ("in_format", "in_part", "narrowed"),
        [
            ("any", "unsigned", "unsigned"),
            ("scalar", "number", "number"),
            ("number", "unsigned", "unsigned"),
            ("unsigned", "number", "unsigned"),
            ("number", "decimal", "decimal"),
            ("unsigned", "scalar", "unsigned"),
        ],
    )
    def test_the_stricter_type_counts(self, in_format: str, in_part: str, narrowed: str) -> None:
        indexed = one_field(in_format).with_index_parts([key((0, in_part))])
        assert check_error(indexed, [[]])[1].endswith(f"expected {narrowed}")

    def test_types_without_a_common_value(self) -> None:
        with pytest.raises(BoxError) as caught:
            one_field("string").with_index_parts([key((0, "unsigned"))])
        assert (caught.value.code, caught.value.message) == (
            ErrorCode.FORMAT_MISMATCH_INDEX_PART,
            "Field 1 has type 'string' in space format, but type 'unsigned' in index definition",
        )
        with pytest.raises(BoxError) as caught:
            one_field("any").with_index_parts([key((0, "unsigned")), key((0, "string"))])
        assert (caught.value.code, caught.value.message) == (
            ErrorCode.INDEX_PART_TYPE_MISMATCH,
            "Field 1 has type 'unsigned' in one index, but type 'string' in another",
        )

    def test_a_field_may_be_nil_only_where_format_and_parts_allow_it(self) -> None:
        nullable, required = key((0, "string", True)), key((0, "string"))
        one_field("string", is_nullable=True).with_index_parts([nullable]).check([None])
        Format.parse([], "s").with_index_parts([nullable]).check([])
        for space_format, key_defs in (
            (one_field("string", is_nullable=True), [nullable, required]),
            (one_field("string"), [nullable]),
            (Format.parse([], "s"), [nullable, required]),
            (Format.parse([], "s"), [required, nullable]),
        ):
            assert check_error(space_format.with_index_parts(key_defs), [None])[0] == ErrorCode.FIELD_TYPE

    def test_the_declared_format_stays_as_it_is(self) -> None:
        declared = one_field("any")
        declared.with_index_parts([key((0, "unsigned"), (5, "string"))])
        declared.check([None])
