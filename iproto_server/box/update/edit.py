"""A single operation inside a field; the rest of the field stays unchanged."""

from __future__ import annotations

from typing import Final, NamedTuple

from iproto_server.box.types.json_path import TokenKind
from iproto_server.box.update.document import Child
from iproto_server.box.update.packed_values import is_array, is_map
from iproto_server.box.update.path_cursor import PathCursor
from iproto_server.box.update.value import Computed, compute
from iproto_server.codec import msgpack as codec

_HEADER_LENGTHS: Final = {0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}


class Edit(NamedTuple):
    """The bytes of a changed field in three pieces; the middle one may be of type `double`."""

    before: bytes
    value: Computed
    after: bytes


class Parent(NamedTuple):
    """The value that an operation works in, usually an array or map, and its offset in the field."""

    raw: bytes
    start: int


def edit(raw: bytes, cursor: PathCursor) -> Edit:
    """Apply an operation inside a field.

    Args:
        raw: the packed field.
        cursor: the operation, at the field, with at least one step left.

    Returns:
        The changed field.

    Raises:
        BoxError: the operation cannot be applied.
    """
    parent, child = _locate(raw, cursor)
    opcode = cursor.operation.opcode
    if opcode in "=!":
        return _put(raw, cursor, parent, child)
    if child is None:
        raise cursor.no_such_field()
    if opcode == "#":
        return delete(raw, cursor, parent, child)
    return _replace(raw, parent, child, compute(opcode, cursor.operation.argument, child.raw, cursor.field))


def _locate(raw: bytes, cursor: PathCursor) -> tuple[Parent, Child | None]:
    """Follow the path to its end or to a missing value; the cursor stays at that token."""
    parent, place = Parent(raw, 0), 0
    child: Child | None = None
    while True:
        token = cursor.peek()
        if token.kind is TokenKind.END:
            return parent, child
        if token.kind is TokenKind.ANY:
            raise cursor.unexpected_any(token)
        if child is not None:
            place += child.start
            parent = Parent(child.raw, place)
        assert token.target is not None
        child = cursor.documents.child(parent.raw, token.target)
        if child is None:
            return parent, None
        cursor.position += 1


def _replace(raw: bytes, parent: Parent, child: Child, value: Computed) -> Edit:
    start = parent.start + child.start
    return Edit(raw[:start], value, raw[start + len(child.raw) :])


def _put(raw: bytes, cursor: PathCursor, parent: Parent, child: Child | None) -> Edit:
    argument = cursor.operation.argument
    assert isinstance(argument, bytes)
    value = Computed(argument, argument)
    if child is None:
        return _put_new(raw, cursor, parent, value)
    if cursor.operation.opcode == "=":
        return _replace(raw, parent, child, value)
    if is_map(parent.raw):
        raise cursor.error("the key exists already")
    return _insert(raw, cursor, parent, child.start, value)


def _put_new(raw: bytes, cursor: PathCursor, parent: Parent, value: Computed) -> Edit:
    token = cursor.peek()
    if cursor.token_at(cursor.position + 1).kind is not TokenKind.END:
        raise cursor.no_such_field()
    if token.kind is TokenKind.INDEX:
        if not is_array(parent.raw):
            raise cursor.error("can not access by index a non-array field")
        if token.index > len(cursor.documents.array(parent.raw)):
            raise cursor.no_such_field()
        return _insert(raw, cursor, parent, len(parent.raw), value)
    if not is_map(parent.raw):
        raise cursor.error("can not access by key a non-map field")
    header = codec.map_header(len(cursor.documents.map(parent.raw).pairs) + 1)
    return Edit(raw[: parent.start] + header + codec.pack(token.key), value, raw[_body(parent) :])


def _insert(raw: bytes, cursor: PathCursor, parent: Parent, start: int, value: Computed) -> Edit:
    """Insert a value into an array at the byte offset `start`."""
    header = codec.array_header(len(cursor.documents.array(parent.raw)) + 1)
    middle = parent.start + start
    return Edit(raw[: parent.start] + header + raw[_body(parent) : middle], value, raw[middle:])


def delete(raw: bytes, cursor: PathCursor, parent: Parent, child: Child) -> Edit:
    """Delete items of an array, or a pair of a map.

    Args:
        raw: the packed field.
        cursor: the operation.
        parent: the array or map.
        child: the first item, or the pair's value.

    Returns:
        The changed field.

    Raises:
        BoxError: the operation would delete more than one pair.
    """
    count = cursor.operation.argument
    assert isinstance(count, int)
    start = parent.start + child.start
    if is_array(parent.raw):
        items = cursor.documents.array(parent.raw)
        gone = items[child.place : child.place + count]
        header = codec.array_header(len(items) - len(gone))
        end = start + sum(map(len, gone))
    else:
        if count != 1:
            raise cursor.error("can delete only 1 field from a map in a row")
        header = codec.map_header(len(cursor.documents.map(parent.raw).pairs) - 1)
        end = start + len(child.raw)
        start -= len(child.key)
    return Edit(raw[: parent.start] + header + raw[_body(parent) : start], Computed(b"", b""), raw[end:])


def _body(parent: Parent) -> int:
    """Return the offset of the parent's items within the field."""
    return parent.start + _HEADER_LENGTHS.get(parent.raw[0], 1)
