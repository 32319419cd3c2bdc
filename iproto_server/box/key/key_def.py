"""Key definitions: the parts of an index, and the encoding of keys of tuples and of clients as bytes.

`key_encoding` encodes single values and `key_part` locates them; a `KeyDef` joins both. Compiled code makes
the keys (`native/keys/`). It encodes the usual types itself, and calls a part's encoder for all others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from iproto_server.box.key.key_encoding import Encoder
from iproto_server.box.key.key_part import KeyPart, Reader, encoder_of, nil_encoder_of, reader_of
from iproto_server.box.key.multikey import Entries, entries_of, no_single_key
from iproto_server.box.types.field_type import FieldType
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import KEY_PARTS_MAX, ClientKey, RowKey

Extractor = Callable[[Sequence[Any]], bytes]
"""From the decoded fields of a tuple to the bytes of a key."""

RowKeyPart = tuple[int, str, bool, Encoder, Reader | None]
"""A part of a row's key for compiled code: field number, type, whether it may be nil, encoder of values whose
type compiled code does not know, and what finds a value inside of a field."""

SHARED_MAX: Final = 1024
"""The maximum number of definitions, and of functions composed from them, that spaces share."""

_LAYOUT_TYPES: Final = frozenset(
    {
        FieldType.UNSIGNED,
        FieldType.INTEGER,
        FieldType.NUMBER,
        FieldType.DOUBLE,
        FieldType.BOOLEAN,
        FieldType.STRING,
        FieldType.VARBINARY,
    }
)

_OUT_OF_RANGE: Final = (struct.error, OverflowError, UnicodeEncodeError)
"""Errors of encoders for values that cannot be stored, such as 2**64 from a procedure."""


class KeyDef:
    """The parts of an index, and the functions composed from them.

    Definitions are equal if their parts are.

    Attributes:
        parts: the parts, in order; at least one.
        part_count: the number of parts.
        is_nullable: whether any part is nullable.
        is_multikey: whether a tuple has a key for each element of an array.
        extract: encodes the key of a tuple from its decoded fields, which must fit the parts
            (`Format.check`). It raises TypeError in a multikey index.
        entries: in a multikey index, encodes all keys of a tuple and tells which contain nil.
        encode_key: encodes a client's full or partial key. The result is a prefix of all full keys that start
            with its values. Raises BoxError KEY_PART_COUNT (31) for too many values, KEY_PART_TYPE (18) for
            a value of the wrong type; its number counts from 0.
    """

    __slots__ = ("encode_key", "entries", "extract", "is_multikey", "is_nullable", "part_count", "parts")

    extract: Extractor
    entries: Entries | None

    def __init__(self, parts: Sequence[KeyPart]) -> None:
        """Compose the functions for `parts`."""
        self.parts: Final = tuple(parts)
        self.part_count: Final = len(self.parts)
        self.is_nullable: Final = any(part.is_nullable for part in self.parts)
        self.is_multikey: Final = any(part.multikey_place is not None for part in self.parts)
        if self.is_multikey:
            self.extract, self.entries = no_single_key, entries_of(self.parts)
        else:
            self.extract, self.entries = RowKey(_row_parts(self.parts)), None
        self.encode_key: Final = ClientKey(tuple(map(_client_part, range(self.part_count), self.parts)))

    def encode_exact_key(self, key: Sequence[Any]) -> bytes:
        """Encode a full key without nil, as `get`, `update` and `delete` need it.

        Raises:
            BoxError: EXACT_MATCH (19) for too few or too many values, KEY_PART_TYPE (18) for a value of the
                wrong type.
        """
        return self.encode_key.exact(key)

    def encode_all(self, fields: Sequence[Any]) -> list[bytes]:
        """Encode all keys of a tuple: one, or those of the elements in a multikey index."""
        if self.entries is None:
            return [self.extract(fields)]
        return list(dict.fromkeys(key for key, _ in self.entries(fields)))

    def missing_from(self, other: KeyDef) -> KeyDef | None:
        """The parts of this key that `other` lacks; None if it has all of them."""
        present = {part.place: part for part in other.parts}
        missing = [
            part
            for part in self.parts
            if part.place not in present or present[part.place].tells_apart_less_than(part)
        ]
        return KeyDef(missing) if missing else None

    def merge(self, primary: KeyDef) -> KeyDef:
        """This key followed by the parts of the primary key that it lacks: unique for all tuples."""
        missing = primary.missing_from(self)
        return self if missing is None else KeyDef(self.parts + missing.parts)

    def __eq__(self, other: object) -> bool:
        """Compare the parts."""
        return self.parts == other.parts if isinstance(other, KeyDef) else NotImplemented

    def __hash__(self) -> int:
        """Hash the parts."""
        return hash(self.parts)

    def __repr__(self) -> str:
        """Name the parts."""
        return f"KeyDef({list(self.parts)!r})"


@lru_cache(SHARED_MAX)
def shared_key_def(parts: tuple[KeyPart, ...]) -> KeyDef:
    """Return a definition of the parts, the same one for all indexes with these parts."""
    return KeyDef(parts)


KeyLayout = tuple[tuple[tuple[int, str, bool], ...], int, bool]
"""How compiled code makes a key from a packed row: the parts (field number, type, is nullable), how many of
them are the index's own, and whether the others follow only if one of its own is nil."""


@lru_cache(SHARED_MAX)
def key_layout(key_def: KeyDef, is_unique: bool, primary: KeyDef | None) -> KeyLayout | None:
    """Describe what `distinct_key_of` does, to compiled code.

    Parameters:
        key_def, is_unique, primary: as for `distinct_key_of`.

    Returns:
        The layout; None where some value needs more than its type to be encoded.
    """
    missing = None if primary is None else primary.missing_from(key_def)
    rest: tuple[KeyPart, ...] = ()
    if missing is not None and not (is_unique and not key_def.is_nullable):
        rest = missing.parts
    parts = (*key_def.parts, *rest)
    if len(parts) > KEY_PARTS_MAX or not all(map(_is_plain, parts)):
        return None
    described = tuple((part.field_no, part.type.value, part.is_nullable) for part in parts)
    return described, key_def.part_count, is_unique and bool(rest)


def _is_plain(part: KeyPart) -> bool:
    return part.path is None and part.collation is None and part.type in _LAYOUT_TYPES


@lru_cache(SHARED_MAX)
def distinct_key_of(
    key_def: KeyDef, is_unique: bool, primary: KeyDef | None
) -> Callable[[Sequence[Any], bytes], bytes]:
    """Compose the function for a tuple's key in a tree, where all keys must differ.

    Parameters:
        key_def: the parts of the index.
        is_unique: whether keys without nil are unique.
        primary: the key of the primary index; None if `key_def` is that of the primary index.

    Returns:
        A function of the decoded fields of a tuple and its encoded primary key.
    """
    parts = _row_parts(key_def.parts)
    if primary is not None and _ends_with(key_def, primary):
        return RowKey(parts[: -primary.part_count], has_tail=True)
    missing = None if primary is None else primary.missing_from(key_def)
    if missing is None or (is_unique and not key_def.is_nullable):
        return RowKey(parts)
    is_whole = missing == primary
    rest = () if is_whole else _row_parts(missing.parts)
    return RowKey(parts, rest, rest_if_nil=is_unique, has_tail=is_whole)


def distinct_entry_keys_of(
    key_def: KeyDef, is_unique: bool, primary: KeyDef
) -> Callable[[Sequence[Any], bytes], list[bytes]]:
    """The function of `distinct_key_of` for a multikey index: all keys of a tuple, each once."""
    entries = key_def.entries
    assert entries is not None
    missing = primary.missing_from(key_def)
    suffix: Extractor | None = None if missing is None or missing == primary else missing.extract

    def keys_of(fields: Sequence[Any], primary_key: bytes) -> list[bytes]:
        if missing is None:
            return list(dict.fromkeys([key for key, _ in entries(fields)]))
        tail = primary_key if suffix is None else suffix(fields)
        return list(
            dict.fromkeys(
                [key + tail if has_nil or not is_unique else key for key, has_nil in entries(fields)]
            )
        )

    return keys_of


def _row_parts(parts: Sequence[KeyPart]) -> tuple[RowKeyPart, ...]:
    """The parts of a row's key for compiled code."""
    return tuple(
        (
            part.field_no,
            _type_name(part),
            part.is_nullable,
            encoder_of(part) if part.path is None or part.is_nullable else nil_encoder_of(part),
            None if part.path is None else reader_of(part),
        )
        for part in parts
    )


def _client_part(number: int, part: KeyPart) -> tuple[str, bool, Encoder]:
    """A part of a client's key for compiled code."""
    return _type_name(part), part.is_nullable, _checking_encoder(number, part)


def _type_name(part: KeyPart) -> str:
    return part.type.value if part.collation is None else "collated"


def _ends_with(key_def: KeyDef, primary: KeyDef) -> bool:
    """Tell whether the key consists of other parts followed by the primary key, which is encoded already."""
    tail = key_def.parts[-primary.part_count :]
    return key_def.part_count > primary.part_count and all(
        (part.place, part.type, part.is_nullable, part.collation)
        == (other.place, other.type, other.is_nullable, other.collation)
        for part, other in zip(tail, primary.parts, strict=True)
    )


def _checking_encoder(number: int, part: KeyPart) -> Encoder:
    """An encoder that checks the type of a client's value first. It refuses nil."""
    field_type = part.type
    accepted = field_type.accepted or frozenset()
    is_unsigned = field_type is FieldType.UNSIGNED
    encode_value = encoder_of(part)

    def encode(value: Any) -> bytes:
        if type(value) in accepted and not (is_unsigned and value < 0):
            try:
                return encode_value(value)
            except _OUT_OF_RANGE:
                pass
        raise BoxError(ErrorCode.KEY_PART_TYPE, number, field_type.value)

    return encode
