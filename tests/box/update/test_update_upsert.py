"""UPSERT: skipped operations and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from iproto_server.box.update import apply_upsert, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

NAMES = {"id": 0, "n": 1, "m": 2}
ROW = [1, 10, {"k": 1}]


def upserted(*operations: Sequence[object]) -> tuple[Any, list[int]]:
    """The new tuple, and the error numbers of skipped operations."""
    skipped: list[BoxError] = []
    parsed = parse_update(codec.pack(list(operations)), NAMES)
    raw = apply_upsert(parsed, codec.pack(ROW), on_skipped=skipped.append)
    assert apply_upsert(parsed, codec.pack(ROW)) == raw
    return codec.unpack(raw), [error.code for error in skipped]


def test_operations_that_fit_are_applied() -> None:
    assert upserted(["+", "n", 1], ["=", 3, "x"]) == ([1, 11, {"k": 1}, "x"], [])
    assert upserted(["+", "n", 1]) == ([1, 11, {"k": 1}], [])


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (["=", 7, 1], ErrorCode.NO_SUCH_FIELD_NO),
        (["#", -7, 1], ErrorCode.NO_SUCH_FIELD_NO),
        (["+", "m.x", 1], ErrorCode.NO_SUCH_FIELD_NAME),
        (["+", "m", 1], ErrorCode.UPDATE_ARG_TYPE),
        (["+", 1, 2**64 - 1], ErrorCode.UPDATE_INTEGER_OVERFLOW),
        (["!", "m.k", 1], ErrorCode.UPDATE_FIELD),
        (["=", "m.", 1], ErrorCode.UPDATE_FIELD),
    ],
)
def test_operations_that_do_not_fit_the_tuple_are_skipped(operation: list[object], code: ErrorCode) -> None:
    assert upserted(["=", 3, "before"], operation, ["=", 4, "after"]) == ([*ROW, "before", "after"], [code])
    assert upserted(operation) == (ROW, [code])


def test_a_second_computation_is_skipped_and_the_first_stands() -> None:
    assert upserted(["+", 1, 1], ["+", 1, 1]) == ([1, 11, {"k": 1}], [ErrorCode.UPDATE_FIELD])


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (["?", 1, 1], ErrorCode.UNKNOWN_UPDATE_OP),
        (["=", 1], ErrorCode.UNKNOWN_UPDATE_OP),
        (["=", None, 1], ErrorCode.ILLEGAL_PARAMS),
        (["=", "nosuch", 1], ErrorCode.NO_SUCH_FIELD_NAME),
        (["+", 1, "x"], ErrorCode.UPDATE_ARG_TYPE),
    ],
)
def test_malformed_operations_end_it(operation: list[object], code: ErrorCode) -> None:
    with pytest.raises(BoxError) as raised:
        upserted(["=", 3, "before"], operation)
    assert raised.value.code == code


def test_malformed_operations_end_it_when_they_are_read_late_too() -> None:
    operations = parse_update(codec.pack([["?", 1, 1]]), NAMES, deferred=True)
    with pytest.raises(BoxError, match="Unknown UPDATE operation"):
        apply_upsert(operations, codec.pack(ROW))
