"""Compiled functions and their twins in Python answer the same, and refuse the same in the same words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import native
from iproto_server.box.key import key_def as key_defs
from iproto_server.box.key.key_def import KeyDef, distinct_key_of
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.tuple.format import Format, quick_row_check
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.update import execute
from iproto_server.codec import msgpack as codec
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
