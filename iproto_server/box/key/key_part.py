"""One part of a key: where in a row its value is, and how the value becomes bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iproto_server.box.key.key_encoding import ENCODERS, NIL, NOT_NIL, Encoder, scalar_encoder
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.types.json_path import TokenKind, parse_json_path
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.key.collation import Collation

Step = int | str | None
"""A step into a value: to an array's element, by number from 0; to a map's key; None for every element."""

Reader = Callable[[Sequence[Any]], Any]
"""Finds a value in the decoded fields of a row; None for nil, and where there is none."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of a key.

    Attributes:
        field_no: the field's number, from 0.
        type: what the field must hold.
        is_nullable: whether it may be nil, or missing at the end of the tuple.
        collation_id: the row of `_collation` that was asked for, None for none.
        collation: that collation; None for none, and for the two that compare bytes.
        path: where in the field the value is; None for the field itself.
        nullable_action: what `_index` says happens to a nil that is not allowed; it is always refused.
        sort_order: `asc` or `desc`; as in Tarantool 2.6 it is kept and changes nothing.
    """

    field_no: int
    type: FieldType
    is_nullable: bool = False
    collation_id: int | None = None
    path: str | None = None
    nullable_action: str = "default"
    sort_order: str = "asc"
    collation: Collation | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The path as steps from the field."""
        tokens = () if self.path is None else parse_json_path(self.path)
        return tuple(token.target for token in tokens if token.kind is not TokenKind.END)

    @property
    def place(self) -> tuple[int, tuple[Step, ...]]:
        """Where the value is: two parts with the same place have the same value, however it is written."""
        return self.field_no, self.steps

    @property
    def multikey_place(self) -> tuple[int, tuple[Step, ...]] | None:
        """Where the array is of whose elements each has a key; None when there is no `[*]` in the path."""
        steps = self.steps
        return (self.field_no, steps[: steps.index(None)]) if None in steps else None

    def tells_apart_less_than(self, other: KeyPart) -> bool:
        """Tell whether values of one place may be equal here, and differ by the collation of `other`."""
        if self.collation is None:
            return False
        return other.collation is None or not self.collation.compares_like(other.collation)


def encoder_of(part: KeyPart) -> Encoder:
    """The encoding of the values of a part that are not nil."""
    if part.collation is None:
        return ENCODERS[part.type]
    encode = part.collation.encode
    return encode if part.type is FieldType.STRING else scalar_encoder(encode)


def nil_encoder_of(part: KeyPart) -> Encoder:
    """The encoding of the values of a part, nil among them. Where nil may not be, it raises BoxError 39."""
    encode = encoder_of(part)
    if part.is_nullable:
        return lambda value: NIL if value is None else NOT_NIL + encode(value)
    where = str(part.field_no + 1) if part.path is None else path_text(*part.place)

    def encode_required(value: Any) -> bytes:
        if value is None:
            raise BoxError(ErrorCode.FIELD_MISSING, where)
        return encode(value)

    return encode_required


def reader_of(part: KeyPart) -> Reader:
    """The function that finds a part's value in a row. In the path is no `[*]`."""
    number, steps = part.place
    if not steps:
        return lambda fields: fields[number] if number < len(fields) else None

    def read(fields: Sequence[Any]) -> Any:
        return follow(fields[number], steps) if number < len(fields) else None

    return read


def follow(value: Any, steps: Sequence[Step]) -> Any:
    """Go into a value; None where there is nothing."""
    for step in steps:
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is list and type(step) is int and step < len(value):
            value = value[step]
        else:
            return None
    return value


def path_text(field_no: int, steps: Sequence[Step]) -> str:
    """A place as messages tell it: `2` for a field, `[2]["name"][1][*]` for what is inside."""
    if not steps:
        return str(field_no + 1)
    texts = [f"[{field_no + 1}]"]
    for step in steps:
        if step is None:
            texts.append("[*]")
        else:
            texts.append(f"[{step + 1}]" if isinstance(step, int) else f'["{step}"]')
    return "".join(texts)
