"""Type checks of option maps in rows of system spaces."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from iproto_server.errors import BoxError, ErrorCode

INTEGER: Final = "integer"
FLOAT: Final = "float"
_UINT32_MAX: Final = 0xFFFFFFFF


def check_option_types(
    options: Mapping[Any, Any],
    known: Mapping[str, str],
    field_number: int,
    error_code: ErrorCode = ErrorCode.WRONG_INDEX_OPTIONS,
) -> None:
    """Raise BoxError `error_code` for an unknown option or a value of the wrong type.

    Parameters:
        options: the options.
        known: the names of the types of all options.
        field_number: the field number in messages.
        error_code: an error whose text takes the field number and a reason.
    """
    for name, value in options.items():
        if not isinstance(name, str):
            raise BoxError(error_code, field_number, "key must be a string")
        expected = known.get(name)
        if expected is None:
            raise BoxError(error_code, field_number, f"unexpected option '{name}'")
        if not _is_of_type(value, expected):
            raise BoxError(error_code, field_number, f"'{name}' must be {expected}")


def _is_of_type(value: object, expected: str) -> bool:
    if expected == "boolean":
        return isinstance(value, bool)
    if expected in ("enum", "string"):
        return isinstance(value, str)
    if expected == FLOAT:
        return type(value) in (int, float, Decimal)
    if expected == INTEGER:
        return type(value) is int
    if expected == "unsigned":
        return type(value) is int and 0 <= value <= _UINT32_MAX
    return True
