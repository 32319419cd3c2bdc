"""Errors of update operations, in Tarantool's words."""

from __future__ import annotations

from iproto_server.errors import BoxError, ErrorCode


def field_text(field_no: int, path: str | None) -> str:
    """Return a field for messages: its path in quotes, or its number from 1 (from the end, from -1)."""
    if path is not None:
        return f"'{up_to_zero(path)}'"
    return str(field_no + 1 if field_no >= 0 else field_no)


def argument_type_error(opcode: str, field: str, expected: str) -> BoxError:
    """Return the error for an argument, or an old value, of a type unsuitable for an operation."""
    return BoxError(ErrorCode.UPDATE_ARG_TYPE, opcode, field, expected)


def field_error(field: str, reason: str) -> BoxError:
    """Return the error for a field that cannot be updated."""
    return BoxError(ErrorCode.UPDATE_FIELD, field, reason)


def splice_error(field: str) -> BoxError:
    """Return the error for a splice that starts before the string."""
    return BoxError(ErrorCode.UPDATE_SPLICE, field, "offset is out of bound")


def up_to_zero(text: str) -> str:
    """Return a text up to its first zero byte, as C formats it."""
    return text.partition("\0")[0]
