"""Parses the update operations of a request, independently of a tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from iproto_server.box.types.json_path import JsonToken, TokenKind, parse_json_path
from iproto_server.box.update.errors import (
    argument_type_error,
    field_error,
    field_text,
    splice_error,
    up_to_zero,
)
from iproto_server.box.update.packed_values import (
    ARRAYS,
    INTEGERS,
    SIZES,
    read_number,
    read_unsigned,
    string_content,
)
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import LARGEST_OPERATION_COUNT

_ARGUMENT_COUNTS: Final = dict.fromkeys("=!#+-&|^", 3) | {":": 5}
_MOST_PARTS: Final = max(_ARGUMENT_COUNTS.values())
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
_UINT32_MASK: Final = 2**32 - 1

_END_ONLY: Final = (JsonToken(TokenKind.END, 0, "", 0, 0),)

# Requests are often identical ("set the status to T"). The cache is bounded: a few kilobytes of keys.
_CACHED_COUNT: Final = 128
_LONGEST_CACHED: Final = 64

Argument: TypeAlias = "bytes | int | float | Decimal | tuple[int, int, bytes]"


class Operation(NamedTuple):
    """One operation.

    Attributes:
        opcode: one of `=!#+-&|^:`.
        field_no: the top-level field, from 0; negative ones count from the end.
        path: the field as named in the request; None if it was given by number.
        tokens: the steps into the field; only END for the field itself.
        argument: of `=` and `!` the packed value; of `#` the number of fields; of `+` and `-` a number; of
            `&`, `|` and `^` an unsigned integer; of `:` the offset, the length to cut and the bytes to paste.
    """

    opcode: str
    field_no: int
    path: str | None
    tokens: tuple[JsonToken, ...]
    argument: Argument


class Operations:
    """The operations of one request, in order. Immutable.

    Attributes:
        fault: the error of malformed operations that were parsed with `deferred`.
        request: for the engine, the packed operations, the field numbers by name and the index base; None if
            they were not packed.
    """

    __slots__ = ("_operations", "fault", "request")

    fault: BoxError | None
    request: tuple[bytes, Mapping[str, int], int] | None

    def __init__(self, operations: tuple[Operation, ...], fault: BoxError | None = None) -> None:
        self._operations = operations
        self.fault = fault
        self.request = None

    def check(self) -> tuple[Operation, ...]:
        """Return the operations.

        Raises:
            BoxError: they were parsed with `deferred` and are malformed.
        """
        if self.fault is not None:
            raise self.fault
        return self._operations


def parse_update(
    raw: bytes, field_names: Mapping[str, int], index_base: int = 0, *, deferred: bool = False
) -> Operations:
    """Parse the operations of an UPDATE or UPSERT request.

    Args:
        raw: the operations; well-formed msgpack.
        field_names: field numbers, from 0, by name. Must not change afterwards.
        index_base: the number of the first field (and of the first byte in splices), 32 bits.
        deferred: do not raise errors of the operations here, but in `Operations.check` and when they are
            applied: an UPDATE that finds no row succeeds even with malformed operations.

    Returns:
        The operations.

    Raises:
        BoxError: the operations are malformed (ILLEGAL_PARAMS, UNKNOWN_UPDATE_OP, UPDATE_FIELD,
            UPDATE_ARG_TYPE, UPDATE_SPLICE) or name a field that the format does not have (NO_SUCH_FIELD_NAME,
            NO_SUCH_FIELD_NO).

    Source: Tarantool reference, `box.space`, `space_object:update()`.
    """
    # Tarantool interprets the 32 bits as a signed number.
    base = index_base - (index_base >> 31 << 32)
    cached = _cache.get(raw)
    if cached is not None and cached[0] is field_names and cached[1] == index_base:
        return cached[2]
    try:
        operations = _quick_assignments(raw, field_names, base) or _operations(
            _split_request(raw), field_names, base
        )
    except BoxError as error:
        if not deferred:
            raise
        return Operations((), error)
    operations.request = (raw, field_names, base)
    if len(raw) <= _LONGEST_CACHED:
        if len(_cache) >= _CACHED_COUNT:
            _cache.clear()
        _cache[raw] = (field_names, index_base, operations)
    return operations


_cache: dict[bytes, tuple[Mapping[str, int], int, Operations]] = {}


def operations_from_python(
    operations: Sequence[Sequence[object]], field_names: Mapping[str, int], index_base: int = 0
) -> Operations:
    """Make operations from Python values, such as `[("=", "status", "T"), ("+", 3, 1)]`.

    Args:
        operations: each the opcode, the field (number, name or path) and the arguments.
        field_names: as for `parse_update`.
        index_base: the first number of fields and bytes. Numbers in JSON paths always count from 1.

    Returns:
        The operations.

    Raises:
        BoxError: as `parse_update`; PROC_LUA if a value cannot be packed.
    """
    if len(operations) == 1:
        only = _quick_operation(operations[0], field_names, index_base)
        if only is not None:
            return Operations((only,))
    if len(operations) > LARGEST_OPERATION_COUNT:
        raise _too_many()
    return Operations(
        tuple(
            [
                _quick_operation(given, field_names, index_base)
                or _operation(
                    _Parts(len(given), [codec.pack(part) for part in given])
                    if isinstance(given, list | tuple)
                    else None,
                    number,
                    field_names,
                    index_base,
                )
                for number, given in enumerate(operations, start=1)
            ]
        )
    )


def _quick_operation(
    given: Sequence[object], field_names: Mapping[str, int], index_base: int
) -> Operation | None:
    """Make a common operation without packing all of it; None for others, including invalid ones."""
    if (type(given) is not tuple and type(given) is not list) or len(given) != 3:
        return None
    opcode, field, argument = given
    if type(field) is str:
        path = field
        field_no = field_names.get(field)
        if field_no is None:
            return None
    elif type(field) is int and index_base <= field < _INT32.stop:
        path = None
        field_no = field - index_base
    else:
        return None
    if opcode == "=":
        return Operation("=", field_no, path, _END_ONLY, codec.pack(argument))
    if (opcode == "+" or opcode == "-") and type(argument) is int and argument in _INT64:
        return Operation(opcode, field_no, path, _END_ONLY, argument)
    return None


def _quick_assignments(raw: bytes, field_names: Mapping[str, int], index_base: int) -> Operations | None:
    """Parse a few assignments to small field numbers or short names; None for anything else."""
    count = raw[0] - 0x90
    if not 0 < count < 0x10:
        return None
    operations = []
    position = 1
    for left in range(count - 1, -1, -1):
        if raw[position : position + 3] != b"\x93\xa1=":
            return None
        first = raw[position + 3]
        start = position + 4
        path = None
        if first < 0x80:
            field_no = first - index_base
        elif 0xA0 <= first < 0xC0:
            end = start + first - 0xA0
            path = raw[start:end].decode("utf-8", "surrogateescape")
            field_no = field_names.get(path, -1)
            start = end
        else:
            return None
        if not 0 <= field_no < _INT32.stop:
            return None
        if left:
            size = SIZES[raw[start]]
            if not size:
                return None
            position = start + size
        else:
            position = len(raw)
        operations.append(Operation("=", field_no, path, _END_ONLY, raw[start:position]))
    return Operations(tuple(operations))


class _Parts(NamedTuple):
    """The packed parts of an operation.

    Attributes:
        total: the number of parts.
        parts: all parts, but only the first if there are more than any operation has.
    """

    total: int
    parts: list[bytes]


def _split_request(raw: bytes) -> list[_Parts | None]:
    """Split operations into their packed parts; None stands for an operation that is not an array.

    Operations and parts are counted first, because there may be millions of them.
    """
    if raw[0] not in ARRAYS:
        raise BoxError(ErrorCode.ILLEGAL_PARAMS, "update operations must be an array {{op,..}, {op,..}}")
    if codec.array_count(raw) > LARGEST_OPERATION_COUNT:
        raise _too_many()
    return [_parts(item) if item[0] in ARRAYS else None for item in codec.split_array(raw)]


def _parts(raw: bytes) -> _Parts:
    count = codec.array_count(raw)
    if count > _MOST_PARTS:
        return _Parts(count, codec.first_items(raw, 1))
    return _Parts(count, codec.split_array(raw))


def _operations(split: list[_Parts | None], field_names: Mapping[str, int], index_base: int) -> Operations:
    return Operations(
        tuple(
            [
                _operation(parts, number, field_names, index_base)
                for number, parts in enumerate(split, start=1)
            ]
        )
    )


def _too_many() -> BoxError:
    return BoxError(ErrorCode.ILLEGAL_PARAMS, "too many operations for update")


def _operation(
    given: _Parts | None, number: int, field_names: Mapping[str, int], index_base: int
) -> Operation:
    if given is None:
        raise BoxError(ErrorCode.ILLEGAL_PARAMS, "update operation must be an array {op,..}")
    count, parts = given
    if not count:
        raise BoxError(ErrorCode.ILLEGAL_PARAMS, "update operation must be an array {op,..}, got empty array")
    opcode = string_content(parts[0])
    if opcode is None:
        raise BoxError(ErrorCode.ILLEGAL_PARAMS, "update operation name must be a string")
    name = opcode.decode("utf-8", "surrogateescape")
    expected = _ARGUMENT_COUNTS.get(name)
    if expected is None:
        raise BoxError(ErrorCode.UNKNOWN_UPDATE_OP, number, f'"{up_to_zero(name)}"')
    if count != expected:
        text = f"wrong number of arguments, expected {expected}, got {count}"
        raise BoxError(ErrorCode.UNKNOWN_UPDATE_OP, number, text)
    field_no, path, tokens = _field(name, parts[1], field_names, index_base)
    argument: Argument = parts[2]
    if name not in "=!":
        argument = _argument(name, field_text(field_no, path), parts, index_base)
    return Operation(name, field_no, path, tokens, argument)


def _field(
    opcode: str, raw: bytes, field_names: Mapping[str, int], index_base: int
) -> tuple[int, str | None, tuple[JsonToken, ...]]:
    if raw[0] in INTEGERS:
        return _field_by_number(opcode, raw, index_base)
    content = string_content(raw)
    if content is None:
        raise BoxError(ErrorCode.ILLEGAL_PARAMS, "field id must be a number or a string")
    path = content.decode("utf-8", "surrogateescape")
    # A name may look like a path, so it is looked up as a name first.
    number = field_names.get(path)
    if number is not None:
        return number, path, _END_ONLY
    first, *rest = parse_json_path(path)
    if first.kind is TokenKind.FAULT:
        raise field_error(field_text(0, path), f"invalid JSON in position {first.end}")
    number = first.index if first.kind is TokenKind.INDEX else None
    if first.kind is TokenKind.KEY:
        number = field_names.get(first.key)
    if number is None:
        raise BoxError(ErrorCode.NO_SUCH_FIELD_NAME, up_to_zero(path))
    return number, path, _END_ONLY if rest[0].kind is TokenKind.END else tuple(rest)


def _field_by_number(opcode: str, raw: bytes, index_base: int) -> tuple[int, None, tuple[JsonToken, ...]]:
    number = codec.unpack(raw)
    assert isinstance(number, int)
    if number not in _INT32:
        # Tarantool names a random field here.
        raise argument_type_error(opcode, field_text(0, None), "an integer")
    if 0 <= number - index_base < _INT32.stop:
        return number - index_base, None, _END_ONLY
    if number >= 0:
        raise BoxError(ErrorCode.NO_SUCH_FIELD_NO, number)
    return number, None, _END_ONLY


def _argument(opcode: str, field: str, parts: list[bytes], index_base: int) -> Argument:
    raw = parts[2]
    if opcode in "+-":
        number = read_number(raw)
        if number is None:
            raise argument_type_error(opcode, field, "a number")
        return number
    if opcode == ":":
        return _splice_arguments(field, parts, index_base)
    unsigned = read_unsigned(raw)
    if unsigned is None:
        raise argument_type_error(opcode, field, "a positive integer")
    if opcode == "#":
        unsigned &= _UINT32_MASK
        if not unsigned:
            raise field_error(field, "cannot delete 0 fields")
    return unsigned


def _splice_arguments(field: str, parts: list[bytes], index_base: int) -> tuple[int, int, bytes]:
    offset = _read_int32(parts[2], field)
    if offset >= 0:
        offset -= index_base
        if not 0 <= offset < _INT32.stop:
            raise splice_error(field)
    cut_length = _read_int32(parts[3], field)
    paste = string_content(parts[4])
    if paste is None:
        raise argument_type_error(":", field, "a string")
    return offset, cut_length, paste


def _read_int32(raw: bytes, field: str) -> int:
    number = codec.unpack(raw) if raw[0] in INTEGERS else None
    if not isinstance(number, int) or number not in _INT32:
        raise argument_type_error(":", field, "an integer")
    return number
