"""One part of a key: the place of its value in a row, and its encoding."""

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
"""A step into a value: the number of an array's element, from 0; a map's key; None for every element."""

Reader = Callable[[Sequence[Any]], Any]
"""Finds a value in the decoded fields of a row; None if it is nil or missing."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of a key.

    Attributes:
        field_no: the field's number, from 0.
        type: the type of the value.
        is_nullable: whether the value may be nil or missing.
        collation_id: the declared row of `_collation`, or None.
        collation: the collation; None without one, and for those that compare bytes.
        path: the path to the value within the field; None for the field itself.
        nullable_action: the action of `_index` for a disallowed nil; it is always refused.
        sort_order: `asc` or `desc`; as in Tarantool 2.6, it is stored without effect.
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
        """The place of the value, equal for all spellings of a path."""
        return self.field_no, self.steps

    @property
    def multikey_place(self) -> tuple[int, tuple[Step, ...]] | None:
        """The place of the array before `[*]`; None without `[*]` in the path."""
        steps = self.steps
        return (self.field_no, steps[: steps.index(None)]) if None in steps else None

    def tells_apart_less_than(self, other: KeyPart) -> bool:
        """Tell whether different values under the collation of `other` may be equal under this one."""
        if self.collation is None:
            return False
        return other.collation is None or not self.collation.compares_like(other.collation)


def encoder_of(part: KeyPart) -> Encoder:
    """The encoder of a part's values other than nil."""
    if part.collation is None:
        return ENCODERS[part.type]
    encode = part.collation.encode
    return encode if part.type is FieldType.STRING else scalar_encoder(encode)


def nil_encoder_of(part: KeyPart) -> Encoder:
    """The encoder of a part's values, including nil; it raises BoxError 39 if nil is not allowed."""
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
    """The function that finds a part's value in a row; the path must not contain `[*]`."""
    number, steps = part.place
    if not steps:
        return lambda fields: fields[number] if number < len(fields) else None

    def read(fields: Sequence[Any]) -> Any:
        return follow(fields[number], steps) if number < len(fields) else None

    return read


def follow(value: Any, steps: Sequence[Step]) -> Any:
    """Follow steps into a value; None if it is missing."""
    for step in steps:
        if type(value) is dict:
            value = value.get(step)
        elif type(value) is list and type(step) is int and step < len(value):
            value = value[step]
        else:
            return None
    return value


def path_text(field_no: int, steps: Sequence[Step]) -> str:
    """A place for messages: `2` for a field, `[2]["name"][1][*]` for a value inside."""
    if not steps:
        return str(field_no + 1)
    texts = [f"[{field_no + 1}]"]
    for step in steps:
        if step is None:
            texts.append("[*]")
        else:
            texts.append(f"[{step + 1}]" if isinstance(step, int) else f'["{step}"]')
    return "".join(texts)
