"""Compiled functions and their twins in Python answer the same, and refuse the same in the same words."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import native
from iproto_server.box.key import key_def as key_defs
from iproto_server.box.key.key_def import KeyDef, distinct_key_of
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.tuple.format import Format, quick_row_check
from iproto_server.box.tuple.tuple import Tuple, TupleMap, pack_map
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.update import execute
from iproto_server.codec import msgpack as codec
from tests.codec.odd_values import odd_values
from tests.codec.test_msgpack import values

packed = values.map(codec.pack)


class Row(list[Any]):
    """A list that is more than that."""


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that were something once: cut short, lengthened, or with a few bytes changed."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) + draw(st.binary(max_size=3))


def outcome(function: Callable[..., Any], *arguments: Any) -> str:
    """What comes of a call, in all details: its result, or its error."""
    try:
        return told(function(*arguments))
    except Exception as error:  # noqa: BLE001  # whatever it is, both must raise it
        return f"{type(error).__name__}: {error}"


def told(result: Any) -> str:
    if isinstance(result, codec.Raw):
        return f"{type(result).__name__} {result.raw!r}"
    if isinstance(result, list | tuple):
        return f"{type(result).__name__}[{', '.join(map(told, result))}]"
    if isinstance(result, dict):
        return "{" + ", ".join(f"{told(key)}: {told(value)}" for key, value in result.items()) + "}"
    return f"{type(result).__name__} {result!r}"


def alike(compiled: Callable[..., Any], *arguments: Any) -> None:
    python = native.in_python[compiled.__name__]
    assert python is not compiled
    assert outcome(compiled, *arguments) == outcome(python, *arguments)


# -- values --


@given(st.binary(max_size=30) | damaged(packed) | packed)
def test_unpack(raw: bytes) -> None:
    alike(codec.unpack, raw)


@pytest.mark.parametrize("depth", [1, 30, 31, 32, 33, 34, 200, 1100])
@pytest.mark.parametrize("head", [b"\x91", b"\x81\x01", b"\xdc\x00\x01", b"\xde\x00\x01\xc0"])
def test_unpack_what_is_nested(head: bytes, depth: int) -> None:
    alike(codec.unpack, head * depth + b"\xc0")
    alike(codec.unpack, head * depth)


@pytest.mark.parametrize("head", ["dd", "df", "c6", "db", "c9"])
@pytest.mark.parametrize("size", ["00000000", "0000ffff", "7fffffff", "80000000", "ffffffff"])
@pytest.mark.parametrize("tail", [0, 1, 70, 70_000])
def test_unpack_what_claims_to_be_large(head: str, size: str, tail: int) -> None:
    alike(codec.unpack, bytes.fromhex(head + size) + bytes(tail))


@pytest.mark.parametrize("raw", [bytearray(b"\x01"), memoryview(b"\x01"), "\x01", None, 5])
def test_unpack_what_is_no_bytes(raw: Any) -> None:
    alike(codec.unpack, raw)


@given(odd_values)
def test_pack(value: Any) -> None:
    alike(codec.pack, value)


@pytest.mark.parametrize("size", [0, 15, 16, 31, 32, 255, 256, 1023, 1024, 65535, 65536, 70_000])
def test_pack_of_every_size(size: int) -> None:
    for value in ("x" * size, "é" * size, b"x" * size, [1] * size, dict.fromkeys(range(size))):
        alike(codec.pack, value)


@pytest.mark.parametrize("power", range(66))
def test_pack_integers_at_the_edges(power: int) -> None:
    for value in range(2**power - 2, 2**power + 3):
        alike(codec.pack, value)
        alike(codec.pack, -value)


def test_pack_what_holds_itself() -> None:
    inside: list[Any] = []
    inside.append(inside)
    alike(codec.pack, inside)


@given(st.integers(0, 17), packed, st.lists(values, max_size=17))
def test_assign(number: int, value: bytes, fields: list[Any]) -> None:
    raw = codec.pack(fields)
    expected = native.in_python["assign"](number, value, raw)
    found = execute._assign(number, value, raw)
    if expected is None and number <= len(fields):
        # The compiled one looks closer: at long fields and rows, and behind the last field.
        expected = codec.pack([*fields[:number], codec.Raw(value), *fields[number + 1 :]])
    assert found == expected


# -- keys and rows --

KINDS = [
    FieldType.UNSIGNED,
    FieldType.STRING,
    FieldType.NUMBER,
    FieldType.DOUBLE,
    FieldType.INTEGER,
    FieldType.BOOLEAN,
    FieldType.VARBINARY,
    FieldType.SCALAR,
    FieldType.UUID,
    FieldType.DECIMAL,
]
field_values = (
    st.integers(-(2**65), 2**65)
    | st.floats()
    | st.booleans()
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=5)
    | st.decimals(-(10**20), 10**20)
    | st.uuids()
    | st.none()
    | st.sampled_from(
        [0, 0.0, -0.0, math.inf, -math.inf, "", "\0", b"\0", 2**63, 2**64 - 1, -(2**63), 1 << 53]
    )
)
parts = st.builds(KeyPart, st.integers(0, 3), st.sampled_from(KINDS), st.booleans())


def in_python(make: Callable[[], Any]) -> Any:
    """Make something of which nothing is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("quick_row_key", "quick_client_key"):
            patch.setattr(key_defs, name, native.in_python[name])
        return make()


@given(st.lists(parts, min_size=1, max_size=4), st.lists(field_values, max_size=5))
def test_key_of_a_row_and_of_a_client(definition: list[KeyPart], fields: list[Any]) -> None:
    compiled, python = KeyDef(definition), in_python(lambda: KeyDef(definition))
    assert type(compiled.extract) is not type(python.extract)
    assert outcome(compiled.extract, fields) == outcome(python.extract, fields)
    for key in (fields, tuple(fields), fields[:1], fields[:2]):
        assert outcome(compiled.encode_key, key) == outcome(python.encode_key, key)


@given(st.lists(parts, min_size=1, max_size=3), st.booleans(), st.lists(field_values, max_size=5))
def test_key_of_a_row_in_a_tree(definition: list[KeyPart], is_unique: bool, fields: list[Any]) -> None:
    def make() -> Callable[[Sequence[Any], bytes], bytes]:
        return distinct_key_of(KeyDef(definition), is_unique, KeyDef([KeyPart(0, FieldType.UNSIGNED)]))

    assert outcome(make(), fields, b"primary") == outcome(in_python(make), fields, b"primary")


field_rows = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from([each.value for each in FieldType]), "is_nullable": st.booleans()}
    ),
    max_size=5,
)


@given(field_rows, st.integers(0, 6), st.lists(field_values | values, max_size=7))
def test_check_of_a_row(definition: list[dict[str, Any]], count: int, fields: list[Any]) -> None:
    given_fields = [{"name": f"f{number}", **each} for number, each in enumerate(definition)]
    count = count if count >= len(definition) else 0
    made = Format.parse(given_fields, "space", count)
    rules = [(number, rule.type.value, rule.is_nullable, None) for number, rule in enumerate(made.rules)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("iproto_server.box.tuple.format.quick_row_check", native.in_python["quick_row_check"])
        python = Format.parse(given_fields, "space", count).check
    compiled = quick_row_check(tuple(rules), count, python)
    assert outcome(compiled, fields) == outcome(python, fields)


# -- tuples --

FORMAT = Format.parse([{"name": "id", "type": "any"}, {"name": "name", "type": "any"}], "space")
USES: list[Callable[[Any], Any]] = [
    lambda row: row[0],
    lambda row: row[-1],
    lambda row: row[True],
    lambda row: row[7],
    lambda row: row[1:],
    lambda row: row["id"],
    lambda row: row["name"],
    lambda row: row["other"],
    lambda row: row[None],
    lambda row: row.get("id"),
    lambda row: row.get("other", 5),
    lambda row: row.get(9, 5),
    lambda row: row.get(9, default=5),
    lambda row: row.get(field=0),
    lambda row: len(row),
    lambda row: list(row),
    lambda row: list(reversed(row)),
    lambda row: 1 in row,
    lambda row: row.index(1),
    lambda row: row.count(1),
    lambda row: row.fields,
    lambda row: row.tomap(),
    lambda row: row.tomap(names_only=False),
    lambda row: row.tomap(True),
    lambda row: repr(row),
    lambda row: hash(row) == hash(row.raw),
    lambda row: row == list(row),
    lambda row: row == tuple(row),
    lambda row: row == [],
    lambda row: row != [],
    lambda row: row == 5,
    lambda row: row < row,
    lambda row: bool(row),
    lambda row: isinstance(row, Sequence) and isinstance(row, codec.Raw),
    lambda row: codec.pack([1, row, {"a": row}]),
    lambda row: [*row, 1],
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("fields", [[], [1], [1, "x"], [5, [1], {"a": None}]])
@pytest.mark.parametrize("format", [FORMAT, None])
def test_use_of_a_tuple(use: Callable[[Any], Any], fields: list[Any], format: Format | None) -> None:
    def without_words(made: Any) -> str:
        # How Python words a wrong call is its own business.
        told = outcome(use, made)
        return told.partition(":")[0] if told.startswith(("TypeError", "ValueError")) else told

    python = native.in_python["Tuple"]
    raw = codec.pack(fields)
    for given_fields in (None, fields):
        assert without_words(Tuple(raw, format, given_fields)) == without_words(
            python(raw, format, given_fields)
        )


MAP_USES: list[Callable[[Any], Any]] = [
    lambda found: found["b"],
    lambda found: found["c"],
    lambda found: found[1],
    lambda found: found[True],
    lambda found: found[[]],
    lambda found: [found.get("b"), found.get("c", default=7), found.get("x"), found.get(1)],
    lambda found: found.get(),
    lambda found: found.get([]),
    lambda found: [list(found), [*found.keys()], [*found.values()], [*found.items()]],
    lambda found: [len(found), bool(found), "b" in found, 2 in found],
    lambda found: [] in found,
    lambda found: dict(found),
    lambda found: {**found},
    lambda found: [found == dict(found), dict(found) == found, found != dict(found), found == {}, found == 5],
    lambda found: found == found.items(),
    lambda found: found < found,
    lambda found: hash(found),
    lambda found: reversed(found),
    lambda found: isinstance(found, Mapping) and isinstance(found, codec.Raw),
    repr,
    lambda found: found.raw,
    lambda found: codec.pack([1, found, {"a": (found, found)}]),
]


@pytest.mark.parametrize("use", MAP_USES)
@pytest.mark.parametrize("fields", [[], [1], [1, "x"], [5, [1], {"a": None}], [1, 2, 3, 4]])
@pytest.mark.parametrize("format", [FORMAT, None])
@pytest.mark.parametrize("names_only", [True, False])
def test_use_of_a_tuple_map(
    use: Callable[[Any], Any], fields: list[Any], format: Format | None, names_only: bool
) -> None:
    raw = codec.pack(fields)
    compiled = TupleMap(Tuple(raw, format), names_only)
    python = native.in_python["TupleMap"](native.in_python["Tuple"](raw, format), names_only)
    told = [outcome(use, each) for each in (compiled, python)]
    if told[1].startswith("TypeError"):
        assert told[0].startswith("TypeError")
    else:
        assert told[0] == told[1]
        assert compiled == python
        assert python == compiled


@given(st.lists(values, max_size=20), st.integers(0, 20), st.booleans())
def test_packing_the_map_of_a_tuple(fields: list[Any], names: int, names_only: bool) -> None:
    row = Tuple(codec.pack(fields), Format.parse([{"name": f"f{name}"} for name in range(names)], "s"))
    packed = pack_map(row, names_only)
    assert packed == native.in_python["pack_map"](row, names_only)
    assert packed == codec.pack(row.tomap(names_only=names_only))


@given(st.lists(values, max_size=4), st.integers(0, 200), st.binary(max_size=2), st.booleans())
def test_packing_the_map_of_a_damaged_tuple(
    fields: list[Any], size: int, more: bytes, names_only: bool
) -> None:
    row = Tuple(codec.pack(fields)[:size] + more, FORMAT)
    assert outcome(pack_map, row, names_only) == outcome(native.in_python["pack_map"], row, names_only)


@pytest.mark.parametrize("arguments", [(), (5,), ([1],), (b"\x90",), (None, True), (Row([1]), True, 1)])
def test_a_tuple_map_is_made_of_a_tuple(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        TupleMap(*arguments)


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 65535, 65536])
@pytest.mark.parametrize(
    "values", [(), ("T",), (1, [2, {"a": None}], b"x"), (Row([1]), codec.Raw(b"\xcc\x01"))]
)
def test_transforming_a_tuple(size: int, values: tuple[Any, ...]) -> None:
    raw = codec.array_header(size) + b"\xcc\x05" * size  # a number in more bytes than it needs
    compiled, python = Tuple(raw), native.in_python["Tuple"](raw)
    for start in (-1, 0, 1, 2, size - 1, size, size + 1):
        for count in (-1, 0, 1, 2, size, size + 1):
            arguments = (start, count, *values)
            assert outcome(compiled.transform, *arguments) == outcome(python.transform, *arguments)


@pytest.mark.parametrize("arguments", [(), (0,), ("0", 1), (0, None), (0.0, 1), (0, 1, object())])
def test_wrong_transformations_of_a_tuple(arguments: tuple[Any, ...]) -> None:
    compiled, python = Tuple(b"\x92\x01\x02"), native.in_python["Tuple"](b"\x92\x01\x02")
    texts = [outcome(each.transform, *arguments) for each in (compiled, python)]
    kinds = [text.partition(":")[0] for text in texts]
    assert kinds[0] == kinds[1]
    assert kinds[0] in ("TypeError", "BoxError")


def test_tuples_are_equal_by_their_bytes() -> None:
    assert Tuple(b"\x91\x01") == Tuple(b"\x91\x01", FORMAT)
    assert Tuple(b"\x91\x01") != Tuple(b"\x91\xcc\x01")


def test_a_tuple_takes_over_what_another_knows() -> None:
    old = Tuple(codec.pack([1, "R"]), FORMAT)
    new = Tuple(codec.pack([1, "T"]), FORMAT)
    new.assume(old, 1, "T")
    assert new.fields == [1, "T"]
    assert old.fields == [1, "R"]


@pytest.mark.parametrize(
    "make",
    [
        lambda kind: kind(raw=b"\x90", format=None, fields=[]),
        lambda kind: kind(b"\x90", fields=[]),
        lambda kind: kind(),
        lambda kind: kind(b"\x90", None, None, None),
        lambda kind: kind(b"\x90", other=1),
    ],
)
def test_making_a_tuple(make: Callable[[Any], Any]) -> None:
    compiled, python = outcome(make, Tuple), outcome(make, native.in_python["Tuple"])
    assert compiled.split(":")[0] == python.split(":")[0]


@pytest.mark.parametrize("arguments", [("\x90",), (None,), (b"\x90", None, (1,)), (bytearray(b"\x90"),)])
def test_a_tuple_is_made_of_bytes_and_a_list(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Tuple(*arguments)


@pytest.mark.parametrize("raw", [b"", b"\x05", b"\x91", b"\xc1", struct.pack(">BI", 0xDD, 2**32 - 1)])
def test_a_tuple_of_what_is_no_array_has_no_fields(raw: bytes) -> None:
    with pytest.raises(Exception, match=r"packed array|malformed"):
        len(Tuple(raw))
    assert Tuple.__new__(Tuple).raw == b"\x90"
