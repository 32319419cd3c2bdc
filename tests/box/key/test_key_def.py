"""Keys of tuples and of clients: extraction, refusals and order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.types.field_type import FieldType
from iproto_server.errors import BoxError, ErrorCode
from tests.box.key.test_key_encoding import VALUES, exact


def parts(*definitions: tuple[Any, ...]) -> KeyDef:
    """A key of parts given as (field number, type) or (field number, type, is nullable)."""
    return KeyDef([KeyPart(number, FieldType(name), *rest) for number, name, *rest in definitions])


STATUS_ID = parts((1, "string"), (0, "number"))
NULLABLE = parts((1, "unsigned", True), (0, "unsigned"))


def refused(function: Callable[[Sequence[Any]], bytes], key: Sequence[Any]) -> tuple[int, str]:
    with pytest.raises(BoxError) as caught:
        function(key)
    return caught.value.code, caught.value.message


def test_the_key_of_a_tuple_is_the_key_that_a_client_would_give() -> None:
    assert STATUS_ID.extract([7, "R", 0, None]) == STATUS_ID.encode_key(["R", 7])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_any_number_of_parts(count: int) -> None:
    key_def = parts(*((number, "unsigned") for number in reversed(range(count))))
    fields = list(range(count))
    assert key_def.extract(fields) == key_def.encode_key(fields[::-1])
    assert key_def.part_count == count


def test_a_partial_key_is_the_beginning_of_every_key_that_starts_with_it() -> None:
    assert STATUS_ID.extract([7, "R"]).startswith(STATUS_ID.encode_key(["R"]))
    assert not STATUS_ID.extract([7, "R\0"]).startswith(STATUS_ID.encode_key(["R"]))
    assert STATUS_ID.encode_key([]) == b""


def test_a_nullable_part_may_be_nil_or_missing_and_sorts_first() -> None:
    nil = NULLABLE.extract([7, None])
    assert nil == parts((1, "unsigned", True), (0, "unsigned")).encode_key([None, 7])
    assert parts((0, "unsigned"), (3, "string", True)).extract([7]) == parts(
        (0, "unsigned"), (3, "string", True)
    ).extract([7, 0, 0, None])
    assert nil < NULLABLE.extract([7, 0]) < NULLABLE.extract([6, 1])


def test_too_many_parts() -> None:
    assert refused(STATUS_ID.encode_key, ["R", 1, 2]) == (
        ErrorCode.KEY_PART_COUNT,
        "Invalid key part count (expected [0..2], got 3)",
    )


@pytest.mark.parametrize(
    ("key_def", "key", "part", "expected"),
    [
        (STATUS_ID, [1], 0, "string"),
        (STATUS_ID, ["R", "x"], 1, "number"),
        (STATUS_ID, ["R", True], 1, "number"),
        (STATUS_ID, [None], 0, "string"),
        (STATUS_ID, [b"R"], 0, "string"),
        (NULLABLE, [-1], 0, "unsigned"),
        (NULLABLE, [1.0], 0, "unsigned"),
        (NULLABLE, [None, None], 1, "unsigned"),
        (NULLABLE, [2**64], 0, "unsigned"),
        (parts((0, "integer")), [-(2**63) - 1], 0, "integer"),
        (parts((0, "string")), ["\ud800"], 0, "string"),
        (parts((0, "scalar")), [[1]], 0, "scalar"),
        (parts((0, "scalar")), [{}], 0, "scalar"),
    ],
)
def test_a_part_of_the_wrong_type_is_counted_from_0(
    key_def: KeyDef, key: list[Any], part: int, expected: str
) -> None:
    assert refused(key_def.encode_key, key) == (
        ErrorCode.KEY_PART_TYPE,
        f"Supplied key type of part {part} does not match index part type: expected {expected}",
    )


@pytest.mark.parametrize("key", [["R"], [], ["R", 1, 2]])
def test_an_exact_key_must_be_whole(key: list[Any]) -> None:
    assert refused(STATUS_ID.encode_exact_key, key) == (
        ErrorCode.EXACT_MATCH,
        f"Invalid key part count in an exact match (expected 2, got {len(key)})",
    )


def test_an_exact_key_has_no_nil_even_where_the_part_is_nullable() -> None:
    assert NULLABLE.encode_exact_key([1, 2]) == NULLABLE.encode_key([1, 2])
    assert refused(NULLABLE.encode_exact_key, [None, 2])[0] == ErrorCode.KEY_PART_TYPE
    assert refused(NULLABLE.encode_exact_key, ["one", None]) == refused(NULLABLE.encode_exact_key, ["one", 2])


def test_merging_adds_the_parts_of_the_primary_key_that_are_not_there() -> None:
    primary = parts((0, "unsigned"), (2, "string"))
    assert parts((1, "string")).merge(primary) == parts((1, "string"), (0, "unsigned"), (2, "string"))
    assert parts((2, "string")).merge(primary) == parts((2, "string"), (0, "unsigned"))
    both = parts((2, "scalar"), (0, "number"))
    assert both.merge(primary) is both


def test_definitions_are_compared_by_their_parts() -> None:
    assert parts((0, "unsigned")) == parts((0, "unsigned"))
    assert parts((0, "unsigned")) != parts((0, "unsigned", True))
    assert len({parts((0, "unsigned")), parts((0, "unsigned"))}) == 1


@given(data=st.data())
def test_keys_of_many_parts_sort_part_by_part(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    nullable = data.draw(st.lists(st.booleans(), min_size=len(types), max_size=len(types)))
    key_def = KeyDef(
        [
            KeyPart(number, field_type, is_nullable)
            for number, (field_type, is_nullable) in enumerate(zip(types, nullable, strict=True))
        ]
    )
    row = st.tuples(
        *(
            VALUES[field_type] | st.none() if is_nullable else VALUES[field_type]
            for field_type, is_nullable in zip(types, nullable, strict=True)
        )
    )
    one, other = data.draw(row), data.draw(row)
    # Rows with equal first fields are of interest.
    same = data.draw(st.integers(0, len(types)))
    other = one[:same] + other[same:]
    reference = [[(-1,) if value is None else exact(value) for value in each] for each in (one, other)]
    encoded = [key_def.extract(each) for each in (one, other)]
    assert (encoded[0] < encoded[1]) == (reference[0] < reference[1])
    assert (encoded[0] == encoded[1]) == (reference[0] == reference[1])
    assert key_def.encode_key(one) == encoded[0]
    length = data.draw(st.integers(0, len(types)))
    prefix = key_def.encode_key(one[:length])
    assert encoded[1].startswith(prefix) == (reference[1][:length] == reference[0][:length])
