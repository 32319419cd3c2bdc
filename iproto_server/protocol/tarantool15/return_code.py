"""Return codes of Tarantool 1.5, and their mapping from errors of the box.

A return code is an error's number, shifted by eight bits, plus a completion status: 0 for success, 1 for a
temporary error, 2 for a permanent one.

Source: Tarantool 1.5.5, `include/errcode.h`.
"""

from enum import IntEnum
from typing import Final

from iproto_server.errors import BoxError, ErrorCode


class ReturnCode(IntEnum):
    """Numbers of 1.5's errors that this server uses."""

    NONMASTER = 1
    ILLEGAL_PARAMS = 2
    SECONDARY = 3
    INDEX_TYPE = 5
    SPACE_EXISTS = 6
    MEMORY_ISSUE = 7
    INJECTION = 9
    UNSUPPORTED = 10
    KEY_FIELD_TYPE = 38
    WAL_IO = 39
    FIELD_TYPE = 40
    ARG_TYPE = 41
    SPLICE = 42
    UNKNOWN_UPDATE_OP = 44
    EXACT_MATCH = 45
    KEY_PART_COUNT = 47
    PROC_RET = 48
    TUPLE_NOT_FOUND = 49
    NO_SUCH_PROC = 50
    PROC_LUA = 51
    NO_SUCH_INDEX = 53
    NO_SUCH_FIELD = 54
    TUPLE_FOUND = 55
    UPDATE_FIELD = 56
    NO_SUCH_SPACE = 57


RETURN_CODES: Final = {
    ErrorCode.ILLEGAL_PARAMS: ReturnCode.ILLEGAL_PARAMS,
    ErrorCode.MEMORY_ISSUE: ReturnCode.MEMORY_ISSUE,
    ErrorCode.TUPLE_FOUND: ReturnCode.TUPLE_FOUND,
    ErrorCode.TUPLE_NOT_FOUND: ReturnCode.TUPLE_NOT_FOUND,
    ErrorCode.UNSUPPORTED: ReturnCode.UNSUPPORTED,
    ErrorCode.NONMASTER: ReturnCode.NONMASTER,
    # The only access control of 1.5 is the secondary port, which refuses changes.
    ErrorCode.READONLY: ReturnCode.SECONDARY,
    ErrorCode.ACCESS_DENIED: ReturnCode.SECONDARY,
    ErrorCode.INJECTION: ReturnCode.INJECTION,
    ErrorCode.SPACE_EXISTS: ReturnCode.SPACE_EXISTS,
    ErrorCode.INDEX_TYPE: ReturnCode.INDEX_TYPE,
    ErrorCode.KEY_PART_TYPE: ReturnCode.KEY_FIELD_TYPE,
    ErrorCode.EXACT_MATCH: ReturnCode.EXACT_MATCH,
    ErrorCode.PARTIAL_KEY: ReturnCode.EXACT_MATCH,
    ErrorCode.PROC_RET: ReturnCode.PROC_RET,
    ErrorCode.FIELD_TYPE: ReturnCode.FIELD_TYPE,
    ErrorCode.UPDATE_SPLICE: ReturnCode.SPLICE,
    ErrorCode.UPDATE_ARG_TYPE: ReturnCode.ARG_TYPE,
    ErrorCode.UNKNOWN_UPDATE_OP: ReturnCode.UNKNOWN_UPDATE_OP,
    ErrorCode.UPDATE_FIELD: ReturnCode.UPDATE_FIELD,
    ErrorCode.KEY_PART_COUNT: ReturnCode.KEY_PART_COUNT,
    ErrorCode.PROC_LUA: ReturnCode.PROC_LUA,
    ErrorCode.NO_SUCH_PROC: ReturnCode.NO_SUCH_PROC,
    ErrorCode.NO_SUCH_FUNCTION: ReturnCode.NO_SUCH_PROC,
    ErrorCode.NO_SUCH_INDEX_ID: ReturnCode.NO_SUCH_INDEX,
    ErrorCode.NO_SUCH_INDEX_NAME: ReturnCode.NO_SUCH_INDEX,
    ErrorCode.NO_SUCH_SPACE: ReturnCode.NO_SUCH_SPACE,
    ErrorCode.NO_SUCH_FIELD_NO: ReturnCode.NO_SUCH_FIELD,
    ErrorCode.NO_SUCH_FIELD_NAME: ReturnCode.NO_SUCH_FIELD,
    ErrorCode.UNSUPPORTED_INDEX_FEATURE: ReturnCode.UNSUPPORTED,
    ErrorCode.WAL_IO: ReturnCode.WAL_IO,
}
"""Errors with a number in 1.5. All others become ILLEGAL_PARAMS with their own text."""

_TRY_AGAIN: Final = 1
_FAILED: Final = 2
_NUMBER_MASK: Final = 0xFFFFFF
_TEMPORARY: Final = frozenset({ReturnCode.MEMORY_ISSUE})
_BY_NUMBER: Final = {
    code.value: RETURN_CODES.get(code, ReturnCode.ILLEGAL_PARAMS) for code in ErrorCode if code.value
}


def return_code(error: BoxError) -> int:
    """The return code for an error.

    Other numbers are an application's own and stay unchanged, as with 1.5's `box.raise`.
    """
    number = _BY_NUMBER.get(error.code, error.code & _NUMBER_MASK or ReturnCode.ILLEGAL_PARAMS)
    return number << 8 | (_TRY_AGAIN if number in _TEMPORARY else _FAILED)


def message_of(error: BoxError) -> bytes:
    """The text of an error, with a final zero byte; errors of procedures have the prefix of 1.5."""
    try:
        text = str(error.message)
    except BaseException:  # noqa: BLE001  # an error class of an application may raise here
        text = type(error).__name__
    if error.code == ErrorCode.PROC_LUA:
        text = f"Lua error: {text}"
    text = text.partition("\0")[0] + "\0"
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # an application's text may contain invalid characters
        return text.encode("utf-8", "backslashreplace")
