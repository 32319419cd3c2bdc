"""Key definitions: the parts of an index, and the encoding of keys of tuples and of clients as bytes.

`key_encoding` encodes single values and `key_part` locates them; a `KeyDef` joins both. The functions are
composed once per index, so a request runs only the encoders that the index needs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from iproto_server.box.key.key_encoding import NIL, NOT_NIL, Encoder
from iproto_server.box.key.key_part import KeyPart, encoder_of, nil_encoder_of, reader_of
from iproto_server.box.key.multikey import Entries, entries_of, no_single_key
from iproto_server.box.types.field_type import FieldType
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin
from iproto_server.native._native import KEY_PARTS_MAX

Extractor = Callable[[Sequence[Any]], bytes]
"""From the decoded fields of a tuple to the bytes of a key."""

Plan = tuple[tuple[int, str, bool, Encoder], ...]
"""The parts of a key for compiled code: field number, type, whether nullable, and value encoder."""

_Function = TypeVar("_Function", bound=Callable[..., bytes])

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
            self.extract, self.entries = _extractor(self.parts), None
        self.encode_key: Final = _key_encoder(self.parts)

    def encode_exact_key(self, key: Sequence[Any]) -> bytes:
        """Encode a full key without nil, as `get`, `update` and `delete` need it.

        Raises:
            BoxError: EXACT_MATCH (19) for too few or too many values, KEY_PART_TYPE (18) for a value of the
                wrong type.
        """
        if len(key) != self.part_count:
            raise BoxError(ErrorCode.EXACT_MATCH, self.part_count, len(key))
        if self.is_nullable:
            for number, value in enumerate(key):
                if value is None:
                    self.encode_key(key[:number])  # faults of earlier values are reported first
                    raise BoxError(ErrorCode.KEY_PART_TYPE, number, self.parts[number].type.value)
        return self.encode_key(key)

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
    extract = key_def.extract
    if primary is not None and _ends_with(key_def, primary):
        return _with_tail(key_def.parts[: -primary.part_count])
    missing = None if primary is None else primary.missing_from(key_def)
    if missing is None or (is_unique and not key_def.is_nullable):
        return quick_row_key(_plan(key_def.parts), False, lambda fields, primary_key: extract(fields))
    suffix: Extractor | None = None if missing == primary else missing.extract
    if not is_unique:
        if suffix is None:
            return _with_tail(key_def.parts)
        return lambda fields, primary_key: extract(fields) + suffix(fields)
    if any(part.path is not None for part in key_def.parts):
        readers = [reader_of(part) for part in key_def.parts if part.is_nullable]

        def key_with_paths_of(fields: Sequence[Any], primary_key: bytes) -> bytes:
            key = extract(fields)
            if any(read(fields) is None for read in readers):
                return key + (primary_key if suffix is None else suffix(fields))
            return key

        return key_with_paths_of
    nullable = [part.field_no for part in key_def.parts if part.is_nullable]

    def key_of(fields: Sequence[Any], primary_key: bytes) -> bytes:
        key = extract(fields)
        count = len(fields)
        for number in nullable:
            if number >= count or fields[number] is None:
                return key + (primary_key if suffix is None else suffix(fields))
        return key

    return key_of


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


@lru_cache(SHARED_MAX)
def distinct_keys_of(
    key_def: KeyDef, is_unique: bool, primary: KeyDef | None
) -> Callable[[Sequence[Sequence[Any]], Sequence[bytes]], list[bytes]]:
    """The function of `distinct_key_of` for many tuples at once, which takes half the time.

    Returns:
        A function of the decoded fields of all tuples and their encoded primary keys (unused for the primary
        index). It raises the errors of the other function.
    """
    if primary is None:
        if key_def.part_count > 1 or key_def.parts[0].path is not None:
            return lambda rows, primary_keys: list(map(key_def.extract, rows))
        number, encode = key_def.parts[0].field_no, encoder_of(key_def.parts[0])
        return lambda rows, primary_keys: [encode(fields[number]) for fields in rows]
    head: Sequence[KeyPart] = ()
    if _ends_with(key_def, primary):
        head = key_def.parts[: -primary.part_count]
    elif not is_unique and primary.missing_from(key_def) == primary:
        head = key_def.parts
    is_simple = len(head) == 1 and not head[0].is_nullable and head[0].path is None
    if not is_simple or head[0].type is FieldType.SCALAR:
        key_of = distinct_key_of(key_def, is_unique, primary)
        return lambda rows, primary_keys: list(map(key_of, rows, primary_keys))
    number, encode = head[0].field_no, encoder_of(head[0])

    def keys_of(rows: Sequence[Sequence[Any]], primary_keys: Sequence[bytes]) -> list[bytes]:
        values = [fields[number] for fields in rows]
        # Many tuples tend to have few different values. Values that are equal have the same bytes.
        encoded = {value: encode(value) for value in set(values)}
        return [encoded[value] + key for value, key in zip(values, primary_keys, strict=True)]

    return keys_of


def _with_tail(parts: Sequence[KeyPart]) -> Callable[[Sequence[Any], bytes], bytes]:
    """Compose the function that encodes parts of a tuple and appends the encoded primary key."""
    extract = _extractor(parts)
    return quick_row_key(_plan(parts), True, lambda fields, primary_key: extract(fields) + primary_key)


@twin
def quick_row_key(plan: Plan | None, has_tail: bool, encode: _Function) -> _Function:
    """Compile a function that encodes the key of a row, if compiled code supports its parts.

    Parameters:
        plan: the parts of the key; None if they are not plain fields.
        has_tail: whether the second argument, the encoded primary key, is appended.
        encode: the function of the decoded fields.
    """
    return encode


@twin
def quick_client_key(plan: Plan | None, encode: _Function) -> _Function:
    """Compile a function that checks and encodes a client's key; parameters as for `quick_row_key`."""
    return encode


def _plan(parts: Sequence[KeyPart]) -> Plan | None:
    """The parts of a row's key, if all are plain fields."""
    return None if any(part.path is not None for part in parts) else _plan_of_values(parts)


def _plan_of_values(parts: Sequence[KeyPart]) -> Plan:
    """The parts of a key for given values."""
    return tuple(
        (
            part.field_no,
            part.type.value if part.collation is None else "collated",
            part.is_nullable,
            encoder_of(part),
        )
        for part in parts
    )


def _ends_with(key_def: KeyDef, primary: KeyDef) -> bool:
    """Tell whether the key consists of other parts followed by the primary key, which is encoded already."""
    tail = key_def.parts[-primary.part_count :]
    return key_def.part_count > primary.part_count and all(
        (part.place, part.type, part.is_nullable, part.collation)
        == (other.place, other.type, other.is_nullable, other.collation)
        for part, other in zip(tail, primary.parts, strict=True)
    )


def _extractor(parts: Sequence[KeyPart]) -> Extractor:
    """Compose the function that encodes the key of a tuple."""
    if any(part.path is not None for part in parts):
        return _path_extractor(parts)
    return quick_row_key(_plan(parts), False, _plain_extractor(parts))


def _plain_extractor(parts: Sequence[KeyPart]) -> Extractor:
    """The same if all parts are plain fields."""
    if any(part.is_nullable for part in parts):
        return _nullable_extractor(parts)
    numbers = [part.field_no for part in parts]
    encoders = [encoder_of(part) for part in parts]
    if len(parts) == 1:
        number, encode = numbers[0], encoders[0]
        return lambda fields: encode(fields[number])
    if len(parts) == 2:
        first, second = numbers
        encode_first, encode_second = encoders
        return lambda fields: encode_first(fields[first]) + encode_second(fields[second])
    if len(parts) == 3:
        first, second, third = numbers
        encode_first, encode_second, encode_third = encoders
        return lambda fields: (
            encode_first(fields[first]) + encode_second(fields[second]) + encode_third(fields[third])
        )
    pairs = list(zip(numbers, encoders, strict=True))
    return lambda fields: b"".join([encode(fields[number]) for number, encode in pairs])


def _nullable_extractor(parts: Sequence[KeyPart]) -> Extractor:
    """The same if some fields may be nil or missing."""
    triples = [(part.field_no, part.is_nullable, encoder_of(part)) for part in parts]

    def extract(fields: Sequence[Any]) -> bytes:
        count = len(fields)
        key = b""
        for number, is_nullable, encode in triples:
            if not is_nullable:
                key += encode(fields[number])
            elif number >= count or fields[number] is None:
                key += NIL
            else:
                key += NOT_NIL + encode(fields[number])
        return key

    return extract


def _path_extractor(parts: Sequence[KeyPart]) -> Extractor:
    """The same if some values are inside fields."""
    pairs = [(reader_of(part), nil_encoder_of(part)) for part in parts]
    return lambda fields: b"".join([encode(read(fields)) for read, encode in pairs])


def _key_encoder(parts: Sequence[KeyPart]) -> Extractor:
    """Compose the function that checks and encodes a client's key."""
    encoders = [_checking_encoder(number, part) for number, part in enumerate(parts)]
    part_count = len(parts)
    encode_first, encode_second = encoders[0], encoders[min(1, part_count - 1)]

    def encode_key(key: Sequence[Any]) -> bytes:
        count = len(key)
        if count == 1:
            return encode_first(key[0])
        if count == 2 <= part_count:
            return encode_first(key[0]) + encode_second(key[1])
        if count > part_count:
            raise BoxError(ErrorCode.KEY_PART_COUNT, part_count, count)
        encoded = b""
        for value, encode in zip(key, encoders, strict=False):
            encoded += encode(value)
        return encoded

    return quick_client_key(_plan_of_values(parts), encode_key)


def _checking_encoder(number: int, part: KeyPart) -> Encoder:
    """An encoder that checks the type of a client's value first."""
    field_type = part.type
    accepted = field_type.accepted or frozenset()
    is_unsigned = field_type is FieldType.UNSIGNED
    is_nullable = part.is_nullable
    encode_value = encoder_of(part)

    def encode(value: Any) -> bytes:
        if type(value) in accepted and not (is_unsigned and value < 0):
            try:
                return NOT_NIL + encode_value(value) if is_nullable else encode_value(value)
            except _OUT_OF_RANGE:
                pass
        elif value is None and is_nullable:
            return NIL
        raise BoxError(ErrorCode.KEY_PART_TYPE, number, field_type.value)

    return encode
