"""Keys of a multikey index: a path with `[*]` leads through an array, and each element has a key.

All parts with `[*]` lead through the same array, so there are as many keys as elements; other parts are the
same in each key. If the array is nil or missing, the tuple has no key.

Source: Tarantool reference, "Multikey indexes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from iproto_server.box.key.key_encoding import Encoder
from iproto_server.box.key.key_part import KeyPart, Reader, Step, follow, nil_encoder_of, reader_of

Entries = Callable[[Sequence[Any]], list[tuple[bytes, bool]]]
"""Maps the decoded fields of a tuple to its keys, one for each element, and whether each contains nil."""

_Member = tuple[Reader | None, tuple[Step, ...], Encoder, bool]
"""A part: its reader in the tuple or steps in the element, its encoder, and whether it may be nil."""


def no_single_key(*arguments: object) -> NoReturn:
    """Replace the functions for a tuple's single key in a multikey index."""
    raise TypeError("a tuple has several keys in a multikey index")


def entries_of(parts: Sequence[KeyPart]) -> Entries:
    """Compose the function that encodes the keys of a tuple.

    Parameters:
        parts: the parts; those with `[*]` lead through the same array.
    """
    field_no, steps = next(part.multikey_place for part in parts if part.multikey_place is not None)
    members = [_member(part) for part in parts]

    def entries(fields: Sequence[Any]) -> list[tuple[bytes, bool]]:
        elements = follow(fields[field_no], steps) if field_no < len(fields) else None
        return [_entry(fields, element, members) for element in elements or ()]

    return entries


def _member(part: KeyPart) -> _Member:
    if part.multikey_place is None:
        return reader_of(part), (), nil_encoder_of(part), part.is_nullable
    steps = part.steps
    return None, steps[steps.index(None) + 1 :], nil_encoder_of(part), part.is_nullable


def _entry(fields: Sequence[Any], element: Any, members: Sequence[_Member]) -> tuple[bytes, bool]:
    key, has_nil = b"", False
    for read, steps, encode, is_nullable in members:
        value = follow(element, steps) if read is None else read(fields)
        key += encode(value)
        has_nil = has_nil or (is_nullable and value is None)
    return key, has_nil
