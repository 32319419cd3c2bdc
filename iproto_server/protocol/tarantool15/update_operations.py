"""The operations of an UPDATE, on the bytes of fields.

They are applied one after another, each to the result of those before it.

Source: Tarantool 1.5.5, `src/box/tuple_update.cc`.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.tarantool15.constants import UPDATE_OPERATIONS_MAX, UpdateCode
from iproto_server.protocol.tarantool15.request import FieldReader, illegal

_LAST: Final = 0xFFFFFFFF
"""Means the field after the last one for insertions, and the last one for deletions."""

_Change = Callable[[int, int], int]
_ARITHMETIC: Final[dict[int, _Change]] = {
    UpdateCode.ADD: lambda field, argument: field + argument,
    UpdateCode.SUBTRACT: lambda field, argument: field - argument,
    UpdateCode.AND: lambda field, argument: field & argument,
    UpdateCode.XOR: lambda field, argument: field ^ argument,
    UpdateCode.OR: lambda field, argument: field | argument,
}


class Operation15(NamedTuple):
    """One operation.

    Attributes:
        field_no: the number of the field, from 0.
        code: the operation; see `UpdateCode`.
        argument: its argument.
    """

    field_no: int
    code: int
    argument: bytes


class Field:
    """A field during an UPDATE.

    Args:
        data: its new value; None if unchanged.
        origin: its number in the old row; None for a new field.

    Attributes:
        is_calculated: whether the value is the result of arithmetic.
    """

    __slots__ = ("data", "is_calculated", "origin")

    def __init__(self, data: bytes | None, origin: int | None = None) -> None:
        self.data = data
        self.origin = origin
        self.is_calculated = False


def decode_operations(packed: bytes) -> list[Operation15]:
    """Read the operations of an UPDATE.

    Args:
        packed: the number of operations, followed by the operations.

    Raises:
        BoxError: ILLEGAL_PARAMS or UNKNOWN_UPDATE_OP.
    """
    reader = FieldReader(packed)
    count = reader.number()
    if count > UPDATE_OPERATIONS_MAX:
        raise illegal("too many operations for update")
    if count == 0:
        raise illegal("no operations for update")
    operations = []
    for _ in range(count):
        field_no, code = reader.number(), reader.byte()
        if code > UpdateCode.DELETE_MANY:
            raise BoxError.with_message(ErrorCode.UNKNOWN_UPDATE_OP, "Unknown UPDATE operation")
        operations.append(Operation15(field_no, code, reader.field()))
    if not reader.is_at_end:
        raise illegal("can't unpack update operations")
    return operations


def apply_operations(
    count: int, read: Callable[[int], bytes], operations: Sequence[Operation15]
) -> list[Field]:
    """Apply operations to a row.

    Args:
        count: the number of fields of the row.
        read: returns the bytes of a field by number; called only for fields whose new value depends on the
            old one.
        operations: the operations.

    Returns:
        The fields of the new row; the data of unchanged ones is None.

    Raises:
        BoxError: NO_SUCH_FIELD_NO, FIELD_TYPE, UPDATE_ARG_TYPE, UPDATE_SPLICE, UPDATE_FIELD, ILLEGAL_PARAMS.
    """
    fields = [Field(None, number) for number in range(count)]
    for field_no, code, argument in operations:
        if code == UpdateCode.INSERT or (code == UpdateCode.SET and field_no >= len(fields)):
            place = _place(field_no, len(fields))
            fields.insert(place, Field(argument))
        elif code == UpdateCode.SET:
            fields[field_no].data = argument
            fields[field_no].is_calculated = False
        elif code == UpdateCode.DELETE:
            del fields[_place(field_no, len(fields) - 1)]
        elif code == UpdateCode.DELETE_MANY:
            place = _place(field_no, len(fields) - 1)
            del fields[place : place + _delete_count(place, argument)]
        else:
            field = fields[_checked(field_no, len(fields) - 1)]
            old = field.data
            if old is None:
                assert field.origin is not None
                old = read(field.origin)
            field.is_calculated = code != UpdateCode.SPLICE
            if field.is_calculated:
                field.data = _calculate(field_no, code, old, argument)
            else:
                field.data = _splice(old, argument)
    return fields


def _checked(field_no: int, last: int) -> int:
    if field_no > last:
        raise BoxError(ErrorCode.NO_SUCH_FIELD_NO, field_no)
    return field_no


def _place(field_no: int, last: int) -> int:
    """A field's number; the greatest 32-bit number means the last one."""
    if field_no == _LAST and last >= 0:
        return last
    return _checked(field_no, last)


def _delete_count(field_no: int, argument: bytes) -> int:
    if not argument:
        return 1
    if len(argument) != 4:
        raise _wrong_argument(field_no, "NUM")
    count = int.from_bytes(argument, "little")
    if count == 0:
        text = f"Field {field_no} UPDATE error: cannot delete 0 fields"
        raise BoxError.with_message(ErrorCode.UPDATE_FIELD, text)
    return count


def _calculate(field_no: int, code: int, old: bytes, argument: bytes) -> bytes:
    """The result of arithmetic on four or eight bytes, of the same size; the argument is no longer."""
    size = len(old)
    if size not in (4, 8):
        text = "Field type does not match one required by operation: expected a 32-bit or 64-bit int"
        raise BoxError.with_message(ErrorCode.FIELD_TYPE, text)
    if len(argument) not in (4, size):
        raise _wrong_argument(field_no, "NUM" if size == 4 else "NUM or NUM64")
    left = int.from_bytes(old, "little", signed=True)
    right = int.from_bytes(argument, "little", signed=True)
    value = _ARITHMETIC[code](left, right)
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _wrong_argument(field_no: int, expected: str) -> BoxError:
    text = f"Argument type in operation on field {field_no} does not match field type: expected a {expected}"
    return BoxError.with_message(ErrorCode.UPDATE_ARG_TYPE, text)


def _splice(old: bytes, argument: bytes) -> bytes:
    """Perl's `splice`; the argument has three fields: offset, number of bytes to cut, bytes to insert."""
    reader = FieldReader(argument)
    size = len(old)
    offset = _signed(reader)
    if offset < 0:
        if -offset > size:
            raise BoxError.with_message(ErrorCode.UPDATE_SPLICE, "Field SPLICE error: offset is out of bound")
        offset += size
    offset = min(offset, size)
    cut = _signed(reader)
    left = size - offset
    cut = max(cut + left, 0) if cut < 0 else min(cut, left)
    paste = reader.field()
    if not reader.is_at_end:
        raise illegal("field splice format error")
    return old[:offset] + paste + old[offset + cut :]


def _signed(reader: FieldReader) -> int:
    size = reader.length()
    if size != 4:
        raise illegal("incorrect packet format (expected a 32-bit int)")
    value = reader.number()
    return value - (value >> 31 << 32)
