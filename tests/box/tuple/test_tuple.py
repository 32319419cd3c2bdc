"""Tuples: rows for procedures and triggers."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

from iproto_server import NIL, Box, BoxError, Tuple, TupleMap
from iproto_server.box.tuple.format import Format
from iproto_server.codec import msgpack as codec
from iproto_server.protocol.response import encode_result
from iproto_server.server.requests.call import encode_result_16
from tests.box.boxes import accounts

FORMAT = Format.parse(
    [{"name": "id", "type": "unsigned"}, {"name": "name"}, {"name": "note", "is_nullable": True}], "s"
)


def row(*fields: Any, named: bool = True) -> Tuple:
    return Tuple(codec.pack(list(fields)), FORMAT if named else None)


class TestTransforming:
    def test_as_many_fields_keep_their_names(self) -> None:
        changed = row(1, "Ann", "x").transform(1, 1, "Bob")
        assert changed == [1, "Bob", "x"]
        assert changed["name"] == "Bob"

    def test_more_or_fewer_fields_have_no_names(self) -> None:
        for changed, fields in (
            (row(1, "Ann", "x").transform(0, 2), ["x"]),
            (row(1, "Ann").transform(2, 0, 3, 4), [1, "Ann", 3, 4]),
            (row(1, "Ann").transform(0, 1, 2, 3), [2, 3, "Ann"]),
        ):
            assert changed == fields
            with pytest.raises(KeyError, match="name"):
                changed["name"]

    def test_the_tuple_stays(self) -> None:
        given = row(1, "Ann")
        assert list(given) == [1, "Ann"]
        given.transform(0, 2)
        assert list(given) == [1, "Ann"]

    def test_other_fields_keep_their_bytes(self) -> None:
        given = Tuple(b"\x92\xcc\x01\xcc\x02")
        assert given.transform(0, 1, 5).raw == b"\x92\x05\xcc\x02"

    @pytest.mark.parametrize(("start", "count"), [(-1, 1), (0, 3), (2, 1), (3, 0), (0, -1), (2**40, 1)])
    def test_fields_that_are_not_there(self, start: int, count: int) -> None:
        with pytest.raises(IndexError, match=f"a tuple of 2 fields has no {count} fields from {start} on"):
            row(1, "Ann").transform(start, count)


class TestReading:
    def test_by_number_from_0_and_from_the_end(self) -> None:
        assert (row(1, "Ann")[0], row(1, "Ann")[1], row(1, "Ann")[-1]) == (1, "Ann", "Ann")

    def test_by_name(self) -> None:
        assert row(1, "Ann")["name"] == "Ann"

    def test_a_named_field_that_the_tail_lacks_is_nil(self) -> None:
        assert row(1, "Ann")["note"] is None

    def test_an_unknown_name(self) -> None:
        with pytest.raises(KeyError, match="age"):
            row(1, "Ann")["age"]

    def test_a_name_where_there_is_no_format(self) -> None:
        with pytest.raises(KeyError, match="name"):
            row(1, "Ann", named=False)["name"]

    def test_a_number_beyond_the_end(self) -> None:
        with pytest.raises(IndexError):
            row(1, "Ann")[2]

    def test_a_field_that_is_neither_name_nor_number(self) -> None:
        with pytest.raises(TypeError):
            row(1)[1.5]  # type: ignore[call-overload]

    def test_a_slice_is_a_list(self) -> None:
        assert row(1, "Ann", "x")[1:] == ["Ann", "x"]

    def test_get_has_a_default_for_what_is_not_there(self) -> None:
        ann = row(1, "Ann")
        assert (ann.get(0), ann.get("name"), ann.get("note", "-")) == (1, "Ann", None)
        assert (ann.get(2), ann.get(2, "-"), ann.get("age", "-")) == (None, "-", "-")

    def test_it_is_a_sequence(self) -> None:
        ann = row(1, "Ann", "Ann")
        assert (len(ann), list(ann), "Ann" in ann, ann.index("Ann"), ann.count("Ann")) == (
            3,
            [1, "Ann", "Ann"],
            True,
            1,
            2,
        )
        number, *others = ann
        assert (number, others) == (1, ["Ann", "Ann"])

    def test_every_type_of_value(self) -> None:
        values = [None, True, -1, 1.5, "text", b"bytes", [1, [2]], {"a": {"b": 1}}, Decimal("1.50")]
        assert list(row(*values)) == values

    def test_no_fields_at_all(self) -> None:
        assert (len(row()), list(row()), row().tomap()) == (0, [], {})
        assert row()["name"] is None


class TestMaps:
    def test_names_in_the_formats_order(self) -> None:
        assert list(row(1, "Ann", None).tomap().items()) == [("id", 1), ("name", "Ann"), ("note", None)]

    def test_fields_that_are_not_there_and_fields_without_a_name_are_left_out(self) -> None:
        assert row(1).tomap() == {"id": 1}
        assert row(1, "Ann", None, "fourth").tomap() == {"id": 1, "name": "Ann", "note": None}

    def test_with_the_numbers_that_lua_gives(self) -> None:
        assert row(1, "Ann").tomap(names_only=False) == {1: 1, 2: "Ann", "id": 1, "name": "Ann"}

    def test_without_a_format_there_are_only_numbers(self) -> None:
        assert row(1, named=False).tomap() == {}
        assert row(1, named=False).tomap(names_only=False) == {1: 1}


class TestComparing:
    def test_tuples_are_equal_when_their_bytes_are(self) -> None:
        assert row(1, "Ann") == row(1, "Ann", named=False)
        assert row(1) != row(1.0)
        assert len({row(1), row(1), row(2)}) == 2

    def test_with_lists_and_tuples_of_python(self) -> None:
        assert row(1, "Ann") == [1, "Ann"]
        assert row(1, "Ann") == (1, "Ann")
        assert row(1, "Ann") != [1]

    def test_with_something_else(self) -> None:
        assert row(1) != 1
        assert row() != {}


class TestBytes:
    def test_a_tuple_is_packed_as_it_came(self) -> None:
        wide = b"\x92\xcd\x00\x01\xca\x3f\x80\x00\x00"  # 1 in three bytes, and a single-precision 1.0
        assert codec.pack(Tuple(wide)) == wide
        assert codec.pack({"t": [Tuple(wide)]}) == b"\x81\xa1t\x91" + wide

    def test_storing_and_reading_keeps_every_byte(self) -> None:
        box = Box()
        space = box.schema.create_space("s")
        space.create_index("primary")
        wide = b"\x92\xcd\x00\x01\xca\x3f\x80\x00\x00"
        assert space.insert(Tuple(wide)).raw == wide
        found = space.get(1)
        assert found is not None
        assert found.raw == wide

    def test_a_stored_tuple_does_not_follow_what_it_was_made_of(self) -> None:
        space = accounts(Box())
        note = {"since": [2020]}
        stored = space.insert([4, "Dan", 0, note])
        note["since"].append(2021)
        assert stored["note"] == {"since": [2020]}

    def test_a_tuple_keeps_the_names_it_was_read_with(self) -> None:
        space = accounts(Box())
        ann = space.get(1)
        assert ann is not None
        space.format([("number", "unsigned"), "name", "balance", {"name": "note", "is_nullable": True}])
        renamed = space.get(1)
        assert renamed is not None
        assert (ann["id"], renamed["number"]) == (1, 1)

    def test_a_tuple_outlives_its_row(self) -> None:
        space = accounts(Box())
        ann = space.get(1)
        assert ann is not None
        space.drop()
        assert ann["name"] == "Ann"


def test_they_name_themselves() -> None:
    assert repr(row(1, "Ann")) == "Tuple([1, 'Ann'])"
    assert repr(NIL) == "NIL"


class TestReadOnlyMaps:
    def test_it_reads_as_the_dict_does(self) -> None:
        ann = row(1, "Ann", None).as_map()
        assert (ann["id"], ann.get("name"), ann.get("age"), ann.get("age", 7)) == (1, "Ann", None, 7)
        assert (len(ann), list(ann), list(ann.keys())) == (3, ["id", "name", "note"], ["id", "name", "note"])
        assert list(ann.items()) == [("id", 1), ("name", "Ann"), ("note", None)]
        assert list(ann.values()) == [1, "Ann", None]
        assert "id" in ann
        assert "age" not in ann
        assert repr(ann) == "TupleMap({'id': 1, 'name': 'Ann', 'note': None})"

    def test_it_equals_mappings_with_the_same_items(self) -> None:
        ann, same = row(1, "Ann").as_map(), {"id": 1, "name": "Ann"}
        mappings: tuple[Any, ...] = (
            same,
            MappingProxyType(same),
            UserDict(same),
            OrderedDict(same),
            row(1.0, "Ann").as_map(),
        )
        for other in mappings:
            assert ann == other
            assert other == ann
            assert [ann] == [other]
        others: tuple[Any, ...] = (
            {},
            {"id": 1},
            {**same, "note": None},
            row(1, named=False).as_map(),
            [1],
            1,
            "id",
        )
        for other in others:
            assert ann != other
            assert other != ann

    def test_it_is_a_mapping_and_copies_to_a_dict(self) -> None:
        ann = row(1, "Ann").as_map()
        assert isinstance(ann, Mapping)
        assert dict(ann) == {**ann} == {} | {**ann} == row(1, "Ann").tomap()
        match ann:
            case {"name": name, **others}:
                assert (name, others) == ("Ann", {"id": 1})
            case _:
                pytest.fail("not matched")

    def test_nobody_can_change_it_or_hash_it(self) -> None:
        ann: Any = row(1, "Ann").as_map()
        with pytest.raises(TypeError, match="assignment"):
            ann["id"] = 2
        with pytest.raises(TypeError, match="deletion"):
            del ann["id"]
        with pytest.raises(TypeError, match="unhashable"):
            hash(ann)
        with pytest.raises(TypeError, match="unhashable"):
            ann[[]]

    def test_an_unknown_key(self) -> None:
        for key in ("note", "age", 1):
            with pytest.raises(KeyError, match=str(key)):
                row(1, "Ann").as_map()[key]

    def test_only_the_keyword_is_accepted(self) -> None:
        with pytest.raises(TypeError):
            row(1).as_map(False)  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            row(1).as_map(names=False)  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            TupleMap()  # type: ignore[call-arg]

    @pytest.mark.parametrize("names_only", [True, False])
    @pytest.mark.parametrize("named", [True, False])
    @pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 15, 16, 17, 40, 300])
    def test_it_is_packed_as_the_dict_is(self, count: int, named: bool, names_only: bool) -> None:
        fields = [None, "Ann", 1.5, [1, {"a": b"b"}], Decimal("1.50"), "\udcff", "é" * 40, -1, 2**64 - 1]
        given = row(*(fields * 40)[:count], named=named)
        found, expected = given.as_map(names_only=names_only), given.tomap(names_only=names_only)
        assert found == expected
        for make in (lambda each: each, lambda each: [each], lambda each: {"a": (each, each)}):
            assert codec.pack(make(found)) == codec.pack(make(expected))
        assert encode_result(5, 7, found) == encode_result(5, 7, expected)
        assert encode_result(5, 7, (found, found)) == encode_result(5, 7, (expected, expected))
        assert encode_result_16(5, 7, [found]) == encode_result_16(5, 7, [expected])

    def test_values_keep_the_form_that_they_are_stored_in(self) -> None:
        wide = Tuple(b"\x92\xcd\x00\x01\xca\x3f\x80\x00\x00", FORMAT)  # 1 in three bytes, single precision
        assert codec.pack(wide.as_map()) == b"\x82\xa2id\xcd\x00\x01\xa4name\xca\x3f\x80\x00\x00"
        assert wide.as_map() == {"id": 1, "name": 1.0}

    @pytest.mark.parametrize(
        "raw", [b"", b"\x05", b"\x92\x01", b"\x91\xc1", b"\x91\x01\x01", b"\xdc\xff\xff"]
    )
    def test_what_is_no_array_is_not_packed(self, raw: bytes) -> None:
        found = Tuple(raw, FORMAT).as_map()
        for pack in (codec.pack, lambda value: codec.pack([value]), lambda value: value.raw):
            with pytest.raises(BoxError, match=r"malformed array|bytes after an array"):
                pack(found)

    def test_it_can_be_stored_in_a_field(self) -> None:
        box = Box()
        space = box.schema.create_space("maps")
        space.create_index("primary")
        stored = space.insert([1, row(1, "Ann").as_map()])
        assert stored == [1, {"id": 1, "name": "Ann"}]
        assert isinstance(stored[1], dict)
