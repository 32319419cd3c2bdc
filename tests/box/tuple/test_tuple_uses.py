"""Tuples behave as lists of their fields, and their maps as dicts, whatever is done with them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import BoxError, Tuple, TupleMap
from iproto_server.box.tuple.format import Format
from iproto_server.codec import msgpack as codec
from iproto_server.protocol.response import encode_result
from tests.codec.model import in_detail
from tests.codec.test_msgpack import values

FORMAT = Format.parse([{"name": "id", "type": "any"}, {"name": "name", "type": "any"}], "space")
NO_ARRAYS = [b"", b"\x05", b"\x91", b"\xc1", b"\x81\x01\x02", struct.pack(">BI", 0xDD, 2**32 - 1)]


def outcome(use: Callable[..., Any], *arguments: Any) -> str:
    """The result of a call in detail, or the type of its error."""
    try:
        return in_detail(use(*arguments))
    except Exception as error:  # noqa: BLE001  # whatever it is, the model must raise it, too
        return type(error).__name__


class Items(list[Any]):
    """A subclass of list."""


LIST_USES: list[Callable[[Any], Any]] = [
    lambda row: row[0],
    lambda row: row[-1],
    lambda row: row[True],
    lambda row: row[7],
    lambda row: row[2**70],
    lambda row: row[1:],
    lambda row: row[::-1],
    lambda row: row[None],
    lambda row: row[1.0],
    lambda row: row[[]],
    lambda row: len(row),
    lambda row: list(row),
    lambda row: list(reversed(row)),
    lambda row: 1 in row,
    lambda row: [] in row,
    lambda row: row.index(1),
    lambda row: row.index("x", 1),
    lambda row: row.index(),
    lambda row: row.count(1),
    lambda row: bool(row),
    lambda row: row == list(row),
    lambda row: row != [],
    lambda row: row == 5,
    lambda row: row < 5,
    lambda row: [*row, 1],
    lambda row: codec.pack([1, row, {"a": row}]),
    lambda row: isinstance(row, Sequence),
]


@pytest.mark.parametrize("use", LIST_USES)
@pytest.mark.parametrize("fields", [[], [1], [1, "x"], [5, [1], {"a": None}], list(range(20))])
@pytest.mark.parametrize("format", [FORMAT, None])
def test_a_tuple_is_used_as_a_list(
    use: Callable[[Any], Any], fields: list[Any], format: Format | None
) -> None:
    for given_fields in (None, list(fields)):
        assert outcome(use, Tuple(codec.pack(fields), format, given_fields)) == outcome(use, fields)


def test_a_tuple_equals_tuples_of_python_and_has_no_order() -> None:
    row = Tuple(codec.pack([1, "x"]))
    assert row == (1, "x")
    assert row == (1, "x")
    assert row != (1,)
    with pytest.raises(TypeError):
        row < row  # type: ignore[operator]  # noqa: B015


@pytest.mark.parametrize("fields", [[], [1], [1, "x"], [5, [1], {"a": None}]])
def test_fields_by_name(fields: list[Any]) -> None:
    padded = [*fields, None, None]
    for given_fields in (None, list(fields)):
        row = Tuple(codec.pack(fields), FORMAT, given_fields)
        assert (row["id"], row["name"]) == tuple(padded[:2])
        assert (row.get("id"), row.get("name", 5), row.get("other"), row.get("other", 5)) == (
            *padded[:2],
            None,
            5,
        )
        assert row.get(9, default=5) == 5
        assert row.get(field="id") == padded[0]
        with pytest.raises(KeyError, match="other"):
            row["other"]
        with pytest.raises(KeyError, match="id"):
            Tuple(row.raw)["id"]


def test_few_fields_are_read_one_by_one_and_then_all() -> None:
    row = stored_row([1, "R", [2], None, 1.5])
    assert [row[1], row["id"], row[2], row[3], row[4], row[1]] == ["R", 1, [2], None, 1.5, "R"]
    assert row.fields is row.fields


def stored_row(fields: list[Any]) -> Tuple:
    """A tuple of bytes that are known to be well-formed."""
    return Tuple(codec.pack([*fields, 0]), FORMAT).transform(len(fields), 1, 0)


DICT_USES: list[Callable[[Any], Any]] = [
    lambda found: found["name"],
    lambda found: found["other"],
    lambda found: found[1],
    lambda found: found[True],
    lambda found: found[[]],
    lambda found: [found.get("name"), found.get("other", 7), found.get("x"), found.get(1)],
    lambda found: found.get(),
    lambda found: found.get([]),
    lambda found: [list(found), [*found.keys()], [*found.values()], [*found.items()]],
    lambda found: [len(found), bool(found), "name" in found, 2 in found],
    lambda found: [] in found,
    lambda found: dict(found),
    lambda found: {**found},
    lambda found: [found == dict(found), dict(found) == found, found != dict(found), found == {}, found == 5],
    lambda found: found == found.items(),
    lambda found: found < found,
    lambda found: hash(found),
    lambda found: codec.pack([1, found, {"a": (found, found)}]),
    lambda found: encode_result(1, 2, found),
    lambda found: encode_result(1, 2, (found, [found])),
]


@pytest.mark.parametrize("use", DICT_USES)
@pytest.mark.parametrize("fields", [[], [1], [1, "x"], [5, [1], {"a": None}], [1, 2, 3, 4]])
@pytest.mark.parametrize("format", [FORMAT, None])
@pytest.mark.parametrize("names_only", [True, False])
def test_a_map_is_used_as_a_dict(
    use: Callable[[Any], Any], fields: list[Any], format: Format | None, names_only: bool
) -> None:
    model: dict[Any, Any] = {} if names_only else dict(enumerate(fields, start=1))
    if format is not None:
        model.update(zip(["id", "name"], fields, strict=False))
    row = Tuple(codec.pack(fields), format)
    assert outcome(use, TupleMap(row, names_only)) == outcome(use, model)
    assert row.tomap(names_only=names_only) == model
    assert list(row.tomap(names_only=names_only)) == list(model)


def test_a_map_is_a_mapping_that_is_packed() -> None:
    found = TupleMap(Tuple(b"\x91\x01", FORMAT))
    assert isinstance(found, Mapping)
    assert isinstance(found, codec.Raw)
    assert found.raw == b"\x81\xa2id\x01"
    with pytest.raises(TypeError):
        reversed(found)


@given(st.lists(values, max_size=20), st.integers(0, 20), st.booleans())
def test_a_map_is_packed_as_the_dict(fields: list[Any], names: int, names_only: bool) -> None:
    row = Tuple(codec.pack(fields), Format.parse([{"name": f"f{name}"} for name in range(names)], "s"))
    assert TupleMap(row, names_only).raw == codec.pack(row.tomap(names_only=names_only))


@given(st.lists(values, max_size=4), st.integers(0, 200), st.binary(max_size=2), st.booleans())
def test_the_map_of_a_damaged_tuple_is_refused_as_the_array_is(
    fields: list[Any], size: int, more: bytes, names_only: bool
) -> None:
    raw = codec.pack(fields)[:size] + more
    found = TupleMap(Tuple(raw, FORMAT), names_only)
    refusal = refusal_of(codec.split_array, raw)
    if refusal:
        assert refusal_of(codec.pack, found) == refusal_of(lambda: found.raw) == refusal
        return
    parts = codec.split_array(raw)
    pairs = [] if names_only else [(codec.pack(number), part) for number, part in enumerate(parts, start=1)]
    pairs += zip(map(codec.pack, ["id", "name"]), parts, strict=False)
    assert found.raw == codec.map_header(len(pairs)) + b"".join(map(b"".join, pairs))


def refusal_of(function: Callable[..., Any], *arguments: Any) -> tuple[int, str] | None:
    try:
        function(*arguments)
    except BoxError as error:
        return error.code, error.message
    return None


def test_names_may_come_from_any_object() -> None:
    named: Any = SimpleNamespace(names={"a": 0}, packed_names=[b"\xa1a"])
    assert Tuple(b"\x91\x05", named)["a"] == 5
    assert TupleMap(Tuple(b"\x91\x05", named)).raw == b"\x81\xa1a\x05"
    for wrong in (["a"], None, [1]):
        with pytest.raises(TypeError):
            codec.pack(TupleMap(Tuple(b"\x91\x05", SimpleNamespace(packed_names=wrong))))  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [(), (5,), ([1],), (b"\x90",), (None, True), (Items([1]), True, 1)])
def test_a_map_is_made_of_a_tuple(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        TupleMap(*arguments)


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 65535, 65536])
@pytest.mark.parametrize(
    "added", [(), ("T",), (1, [2, {"a": None}], b"x"), (Items([1]), codec.Raw(b"\xcc\x01"))]
)
def test_transforming(size: int, added: tuple[Any, ...]) -> None:
    field = b"\xcc\x05"  # a number in more bytes than it needs
    row = Tuple(codec.array_header(size) + field * size, FORMAT)
    packed = [codec.pack(value) for value in added]
    for start in (-1, 0, 1, 2, size - 1, size, size + 1):
        for count in (-1, 0, 1, 2, size, size + 1):
            if start < 0 or count < 0 or start + count > size:
                with pytest.raises(
                    IndexError, match=f"a tuple of {size} fields has no {count} fields from {start} on"
                ):
                    row.transform(start, count, *added)
                continue
            found = row.transform(start, count, *added)
            parts = [field] * start + packed + [field] * (size - start - count)
            assert found.raw == codec.array_header(len(parts)) + b"".join(parts)
            assert found.format is (FORMAT if len(added) == count else None)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TypeError),
        ((0,), TypeError),
        (("0", 1), TypeError),
        ((0, None), TypeError),
        ((0.0, 1), TypeError),
        ((0, 1, object()), BoxError),
    ],
)
def test_wrong_transformations(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        Tuple(b"\x92\x01\x02").transform(*arguments)


def test_transforming_a_damaged_tuple() -> None:
    for raw in NO_ARRAYS:
        with pytest.raises(BoxError, match="malformed array"):
            Tuple(raw).transform(0, 1)


def test_tuples_are_equal_by_their_bytes() -> None:
    assert Tuple(b"\x91\x01") == Tuple(b"\x91\x01", FORMAT)
    assert Tuple(b"\x91\x01") != Tuple(b"\x91\xcc\x01")
    assert hash(Tuple(b"\x91\x01")) == hash(b"\x91\x01")


def test_a_tuple_takes_over_what_another_knows() -> None:
    old = Tuple(codec.pack([1, "R"]), FORMAT)
    new = Tuple(codec.pack([1, "T"]), FORMAT)
    new.assume(old, 1, "T")
    assert new.fields == [1, "T"]
    assert old.fields == [1, "R"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [((), {}), ((b"\x90", None, None, None), {}), ((b"\x90",), {"other": 1}), ((b"\x90",), {"raw": b"\x90"})],
)
def test_wrong_arguments(arguments: tuple[Any, ...], names: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Tuple(*arguments, **names)


def test_arguments_have_names() -> None:
    for row in (
        Tuple(raw=b"\x90", format=FORMAT, fields=[]),
        Tuple(b"\x90", FORMAT, []),
        Tuple(b"\x90", fields=[]),
    ):
        assert (row.raw, row.fields) == (b"\x90", [])
    assert Tuple(raw=b"\x90", format=FORMAT).format is FORMAT


@pytest.mark.parametrize("arguments", [("\x90",), (None,), (b"\x90", None, (1,)), (bytearray(b"\x90"),)])
def test_a_tuple_is_made_of_bytes_and_a_list(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Tuple(*arguments)


@pytest.mark.parametrize("raw", NO_ARRAYS)
def test_a_tuple_of_what_is_no_array_has_no_fields(raw: bytes) -> None:
    with pytest.raises((BoxError, TypeError), match=r"packed array|malformed"):
        len(Tuple(raw))
    assert Tuple.__new__(Tuple).raw == b"\x90"
