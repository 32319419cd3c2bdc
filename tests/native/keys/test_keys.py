"""Keys and checks of rows, compared with what their parts and rules say one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.key.key_def import KeyDef, distinct_key_of
from iproto_server.box.key.key_encoding import NIL, NOT_NIL
from iproto_server.box.key.key_part import KeyPart, encoder_of
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import ClientKey, RowCheck, RowKey
from tests.codec.test_msgpack import values
from tests.native.outcomes import outcome

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


def part_key(part: KeyPart, value: Any) -> bytes:
    """The encoding of a value of a part."""
    if not part.is_nullable:
        return encoder_of(part)(value)
    return NIL if value is None else NOT_NIL + encoder_of(part)(value)


def row_part_key(part: KeyPart, fields: Sequence[Any]) -> bytes:
    value = fields[part.field_no] if part.field_no < len(fields) or not part.is_nullable else None
    return part_key(part, value)


def client_part_key(number: int, part: KeyPart, value: Any) -> bytes:
    refused = BoxError(ErrorCode.KEY_PART_TYPE, number, part.type.value)
    if not (part.type.accepts(value) or (value is None and part.is_nullable)):
        raise refused
    try:
        return part_key(part, value)
    except (ValueError, OverflowError, OSError):
        raise refused from None
    except Exception as error:
        if type(error).__name__ == "error":  # struct's
            raise refused from None
        raise


def client_part_keys(definition: Sequence[KeyPart], key: Sequence[Any]) -> list[bytes]:
    pairs = zip(definition, key, strict=False)
    return [client_part_key(number, part, value) for number, (part, value) in enumerate(pairs)]


def joined(make: Callable[[], list[bytes]]) -> str:
    """What comes of encoding parts one after the other."""
    return outcome(lambda: b"".join(make()))


def same(found: str, expected: str) -> bool:
    """Whether outcomes are the same; Python has several words for a missing field."""
    return found == expected or (found.startswith("IndexError") and expected.startswith("IndexError"))


@given(st.lists(parts, min_size=1, max_size=20), st.lists(field_values, max_size=5))
def test_key_of_a_row(definition: list[KeyPart], fields: list[Any]) -> None:
    expected = joined(lambda: [row_part_key(part, fields) for part in definition])
    for given_fields in (fields, tuple(fields)):
        assert same(outcome(KeyDef(definition).extract, given_fields), expected)


@given(st.lists(parts, min_size=1, max_size=20), st.lists(field_values, max_size=5))
def test_key_of_a_client(definition: list[KeyPart], fields: list[Any]) -> None:
    encode = KeyDef(definition).encode_key
    for key in (fields, tuple(fields), fields[:1], fields[:2]):
        if len(key) > len(definition):
            with pytest.raises(BoxError) as caught:
                encode(key)
            assert caught.value.code == ErrorCode.KEY_PART_COUNT
            continue
        expected = joined(partial(client_part_keys, definition, key))
        assert outcome(encode, key) == expected
        exact = outcome(encode.exact, key)
        if len(key) != len(definition):
            assert exact.startswith("BoxError: Invalid key part count in an exact match")
        elif None not in key:
            assert exact == expected
        else:
            assert exact.startswith("BoxError: Supplied key type of part ")


@given(st.lists(parts, min_size=1, max_size=3), st.booleans(), st.lists(field_values, max_size=5))
def test_key_of_a_row_in_a_tree(definition: list[KeyPart], is_unique: bool, fields: list[Any]) -> None:
    primary = KeyDef([KeyPart(0, FieldType.UNSIGNED)])
    key_def = KeyDef(definition)

    def expected() -> list[bytes]:
        if len(definition) > 1 and definition[-1] == primary.parts[0]:
            # The primary key is encoded already.
            return [*(row_part_key(part, fields) for part in definition[:-1]), b"primary"]
        own = [row_part_key(part, fields) for part in definition]
        has_nil = any(part.is_nullable and key == NIL for part, key in zip(definition, own, strict=True))
        follows = primary.missing_from(key_def) is not None and (has_nil or not is_unique)
        return [*own, b"primary"] if follows else own

    found = outcome(distinct_key_of(key_def, is_unique, primary), fields, b"primary")
    assert same(found, joined(expected))


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ((1,),),
        ((("x",),),),
        ((), 5),
        (((-1, "string", False, str, None),),),
        (((0, 1, False, str, None),),),
    ],
)
def test_parts_that_are_none(arguments: tuple[Any, ...]) -> None:
    for kind in (RowKey, ClientKey, RowCheck):
        with pytest.raises((TypeError, ValueError)):
            kind(*arguments)


def test_an_encoder_that_makes_no_bytes() -> None:
    bad: Any = str
    key = RowKey(((0, "uuid", False, bad, None),))
    with pytest.raises(TypeError, match="a key is made of bytes, not of str"):
        key([5])


def test_an_encoder_that_changes_the_fields() -> None:
    fields: list[Any] = [1, 2, 3]

    def encode(value: object) -> bytes:
        fields.clear()
        return b"x"

    key = RowKey(tuple((number, "uuid", True, encode, None) for number in range(3)))
    assert key(fields) == NOT_NIL + b"x" + NIL + NIL


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
    assert type(made.check) is RowCheck

    def check() -> None:
        if count and len(fields) != count:
            raise BoxError(ErrorCode.EXACT_FIELD_COUNT, len(fields), count)
        for number, (value, rule) in enumerate(zip(fields, made.rules, strict=False), start=1):
            if not rule.accepts(value):
                raise BoxError(ErrorCode.FIELD_TYPE, number, rule.type.value)
        for number, rule in enumerate(made.rules, start=1):
            if number > len(fields) and not rule.is_nullable:
                raise BoxError(ErrorCode.FIELD_MISSING, number)

    assert outcome(made.check, fields) == outcome(made.check, tuple(fields)) == outcome(check)
