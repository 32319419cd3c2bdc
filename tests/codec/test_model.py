"""The codec packs and unpacks as the library `msgpack` does."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from enum import IntEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from iproto_server import Float64, Number64
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from tests.codec import model
from tests.codec.test_msgpack import texts, values
from tests.codec.test_scan import ENDLESS

DEPTH_MAX = 1024

any_texts = st.text(st.characters(), max_size=4).filter(
    lambda text: not any(0xD800 <= ord(letter) < 0xDC80 or 0xDD00 <= ord(letter) < 0xE000 for letter in text)
)
"""Texts that have bytes: lone surrogates stand for bytes from 0x80 on, or are refused."""

plain: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | any_texts
    | st.binary(max_size=20)
    | st.builds(bytearray, st.binary(max_size=3))
    | st.binary(max_size=3).map(lambda raw: memoryview(raw))
    | st.builds(codec.ExtType, st.integers(0, 127), st.binary(max_size=40)),
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(any_texts | st.integers(-(2**63), 2**64 - 1) | st.none(), inner, max_size=20)
    ),
    max_leaves=30,
)
"""Values that the library packs, too."""


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Packed bytes, cut short, lengthened, or with a few bytes changed."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) + draw(st.binary(max_size=3))


def check_unpacking(raw: bytes | bytearray | memoryview) -> None:
    """Check that bytes are unpacked, or refused, as by the library."""
    try:
        expected = model.unpacked(bytes(raw))
    except model.Malformed:
        with pytest.raises(BoxError, match="malformed value") as caught:
            codec.unpack(raw)
        assert caught.value.code == ErrorCode.INVALID_MSGPACK
        assert not codec.is_valid(raw)
    else:
        assert model.in_detail(codec.unpack(raw)) == model.in_detail(expected)
        assert codec.is_valid(raw)


packed = values.map(codec.pack) | plain.map(codec.pack)


@given(st.binary(max_size=30) | damaged(packed) | packed)
def test_unpacking(raw: bytes) -> None:
    try:
        check_unpacking(raw)
    except model.Unknown:
        reject()


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_bytes_may_be_of_other_types(kind: Any) -> None:
    for raw in (b"\x93\x01\xa1a\xc0", b"\x92\x01", b""):
        check_unpacking(kind(raw))
    assert codec.split_array(kind(b"\x92\x01\xa1a")) == [b"\x01", b"\xa1a"]
    assert codec.split_map(kind(b"\x81\x01\xa1a")) == [(b"\x01", b"\xa1a")]
    assert codec.skip(kind(b"\x92\x01\xa1a"), 1) == 2
    assert codec.first_items(kind(b"\x92\x01\xa1a"), 1) == [b"\x01"]
    assert (codec.array_count(kind(b"\x92")), codec.map_count(kind(b"\x82"))) == (2, 2)


@pytest.mark.parametrize("raw", ["\x01", None, 5, [1]])
def test_what_is_no_bytes_is_not_unpacked(raw: Any) -> None:
    for function in (codec.unpack, codec.is_valid, codec.split_array, codec.split_map, codec.array_count):
        with pytest.raises(TypeError, match="bytes-like"):
            function(raw)


@pytest.mark.parametrize("head", ["dd", "df", "c6", "db", "c9"])
@pytest.mark.parametrize("size", ["00000000", "0000ffff", "7fffffff", "80000000", "ffffffff"])
@pytest.mark.parametrize("tail", [0, 1, 70, 70_000])
def test_sizes_that_are_claimed(head: str, size: str, tail: int) -> None:
    raw = bytes.fromhex(head + size) + bytes(tail)
    if ENDLESS not in raw:
        check_unpacking(raw)


@given(plain)
def test_packing(value: Any) -> None:
    assert codec.pack(value) == model.packed(value)


@pytest.mark.parametrize("size", [0, 15, 16, 31, 32, 255, 256, 1023, 1024, 65535, 65536, 70_000])
def test_sizes(size: int) -> None:
    for value in ("x" * size, "é" * size, b"x" * size, [1] * size, (1,) * size, dict.fromkeys(range(size))):
        assert codec.pack(value) == model.packed(value)
        assert codec.unpack(codec.pack(value)) == (list(value) if isinstance(value, tuple) else value)
    for extension in (codec.ExtType(9, b"x" * size), [codec.ExtType(9, b"x" * size)]):
        assert codec.pack(extension) == model.packed(extension)
        assert codec.unpack(codec.pack(extension)) == extension


@pytest.mark.parametrize("power", range(64))
def test_integers_at_limits(power: int) -> None:
    for value in range(2**power - 2, 2**power + 3):
        assert codec.pack(value) == model.packed(value)
        assert codec.unpack(codec.pack(value)) == value
        if value <= 2**63:
            assert codec.pack(-value) == model.packed(-value)
            assert codec.unpack(codec.pack(-value)) == -value


@given(st.integers(2**64, 2**70) | st.integers(-(2**70), -(2**63) - 1) | st.just(10**5000))
def test_larger_integers_are_refused(value: int) -> None:
    for holder in (value, [value], {value: 1}):
        with pytest.raises(BoxError, match=r"does not fit 64 bits|too large") as caught:
            codec.pack(holder)
        assert caught.value.code == ErrorCode.PROC_LUA


class Color(IntEnum):
    RED = 7


class Point(NamedTuple):
    x: int
    y: str


class Text(str):
    __slots__ = ()


class Doubled(list[Any]):
    """A list that iterates over more than it has."""

    def __iter__(self) -> Any:
        yield from super().__iter__()
        yield from super().__iter__()


class Renamed(dict[Any, Any]):
    """A dict with other items than it has."""

    def items(self) -> Any:
        return [(f"new {key}", value) for key, value in super().items()]


def ordered() -> OrderedDict[str, int]:
    made = OrderedDict(a=1, b=2, c=3)
    made.move_to_end("a")
    return made


@pytest.mark.parametrize(
    ("value", "plainly"),
    [
        (Color.RED, 7),
        (Number64(2**40), 2**40),
        (Float64(1.5), 1.5),
        (Text("é" * 40), "é" * 40),
        (type("Bytes", (bytes,), {})(b"x"), b"x"),
        (Point(1, "a"), [1, "a"]),
        (Doubled([1, 2]), [1, 2, 1, 2]),
        (ordered(), {"b": 2, "c": 3, "a": 1}),
        (defaultdict(int, {"a": 1}), {"a": 1}),
        (Renamed(a=1), {"new a": 1}),
        (type("Extension", (codec.ExtType,), {})(9, b"x"), codec.ExtType(9, b"x")),
    ],
)
def test_subclasses(value: Any, plainly: Any) -> None:
    for holder, expected in ((value, plainly), ([value], [plainly]), ({1: value}, {1: plainly})):
        assert codec.pack(holder) == model.packed(expected)


@pytest.mark.parametrize("kind", [list, tuple, dict, type("Items", (list,), {}), type("Map", (dict,), {})])
def test_depth_of_what_is_packed(kind: Any) -> None:
    deep: Any = 1
    for _ in range(DEPTH_MAX):
        deep = kind({"a": deep}) if issubclass(kind, dict) else kind([deep])
    assert codec.pack(deep) == (b"\x81\xa1a" if issubclass(kind, dict) else b"\x91") * DEPTH_MAX + b"\x01"
    with pytest.raises(BoxError, match="nested too deep") as caught:
        codec.pack([deep])
    assert caught.value.code == ErrorCode.PROC_LUA


@pytest.mark.parametrize("head", [b"\x91", b"\x81\x01", b"\x81\x90", b"\xdc\x00\x01", b"\xde\x00\x01\xc0"])
def test_depth_of_what_is_unpacked(head: bytes) -> None:
    for depth in (1, 33, 200, DEPTH_MAX):
        deep = head * depth + b"\x01"
        value = codec.unpack(deep)
        for _ in range(depth):
            (value,) = value if isinstance(value, list) else value.values()
        assert value == 1
        assert codec.is_valid(deep)
        assert codec.skip(b"\x01" + deep, 1) == 1 + len(deep)
        with pytest.raises(BoxError, match="malformed value"):
            codec.unpack(deep[:-1])
    too_deep = head * (DEPTH_MAX + 1) + b"\x01"
    with pytest.raises(BoxError, match="nested too deep"):
        codec.unpack(too_deep)
    with pytest.raises(BoxError, match="malformed value"):
        codec.unpack(too_deep[:-1])
    with pytest.raises(BoxError, match="malformed value"):
        codec.skip(too_deep, 0)
    with pytest.raises(BoxError, match="malformed"):
        (codec.split_map if head[0] in (0x81, 0xDE) else codec.split_array)(too_deep)
    assert not codec.is_valid(too_deep)


class Growing(dict[Any, Any]):
    """A dict whose items change another container while they are read."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def items(self) -> Any:
        self.change()
        return {"a": "b"}.items()


@pytest.mark.parametrize("what", ["append", "clear"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_list_that_changes_while_it_is_packed_is_refused(what: str, place: int) -> None:
    outer: list[Any] = [["x"], ["y"], ["z"]]
    outer[place] = Growing(lambda: outer.append(1) if what == "append" else outer.clear())
    for holder in (outer, [1, outer], {"a": outer}):
        with pytest.raises(RuntimeError, match="changed while it was packed"):
            codec.pack(holder)
        outer[:] = [["x"], ["y"], ["z"]]
        outer[place] = Growing(lambda: outer.append(1) if what == "append" else outer.clear())


@pytest.mark.parametrize("what", ["grow", "clear"])
@pytest.mark.parametrize("is_key", [True, False])
def test_a_dict_that_changes_while_it_is_packed_is_refused(what: str, is_key: bool) -> None:
    outer: dict[Any, Any] = {"a": ["x"]}

    def change() -> None:
        if what == "grow":
            outer.update(dict.fromkeys(range(50), 1))
        else:
            outer.clear()

    class Key(tuple[Any, ...]):
        def __iter__(self) -> Any:
            change()
            yield 1

    outer[Key() if is_key else "b"] = ["y"] if is_key else Growing(change)
    outer["c"] = ["z"]
    if is_key:
        outer[5] = 5
    with pytest.raises(RuntimeError, match="changed while it was packed"):
        codec.pack([outer])


def test_an_exception_of_a_container_goes_on() -> None:
    with pytest.raises(ZeroDivisionError):
        codec.pack([1, Growing(lambda: 1 // 0)])
    with pytest.raises(TypeError, match="pairs"):
        codec.pack(type("Map", (dict,), {"items": lambda self: [1]})())


@given(st.dictionaries(texts, values, max_size=3), st.lists(values, max_size=3))
def test_what_is_packed_already_is_copied(mapping: dict[str, Any], items: list[Any]) -> None:
    expected = codec.pack({"a": [mapping, (items,)], "b": mapping})
    packed = {"a": [codec.Raw(codec.pack(mapping)), (codec.Raw(codec.pack(items)),)], "b": mapping}
    assert codec.pack(packed) == expected
    assert codec.pack(codec.Raw(expected)) == expected
