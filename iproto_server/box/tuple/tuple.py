"""A tuple is its msgpack bytes.

What came from the wire goes to the log and to the next client without being packed again. Fields are decoded
on first touch, all at once, because one pass of the C decoder is cheaper than bookkeeping per field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from iproto_server.codec import msgpack as codec
from iproto_server.native import twin

if TYPE_CHECKING:
    from iproto_server.box.tuple.format import Format


@twin
class Tuple(codec.Raw, Sequence[Any]):
    """An immutable row of a space, as procedures and triggers see it.

    Fields are read by 0-based number (`task[0]`), by the name in the space's format (`task["status"]`), or
    all together (`list(task)`, `task.tomap()`).

    Parameters:
        raw: the msgpack array, byte for byte as it is stored.
        format: the format that gives fields their names; None for a tuple that belongs to no space.
        fields: the decoded fields when the caller already has them.
    """

    __slots__ = ("_fields", "format", "raw")

    raw: bytes
    format: Format | None
    _fields: list[Any] | None

    def __init__(self, raw: bytes, format: Format | None = None, fields: list[Any] | None = None) -> None:
        self.raw = raw
        self.format = format
        self._fields = fields

    @property
    def fields(self) -> list[Any]:
        """The decoded fields. The list is shared: do not change it."""
        fields = self._fields
        if fields is None:
            fields = self._fields = codec.unpack(self.raw)
        return fields

    def assume(self, other: Tuple, number: int, value: object) -> None:
        """Take over the decoded fields of another tuple from which this one differs in one field only."""
        fields = self._fields = other.fields.copy()
        fields[number] = value

    @overload
    def __getitem__(self, field: int | str) -> Any: ...
    @overload
    def __getitem__(self, field: slice) -> list[Any]: ...
    def __getitem__(self, field: int | str | slice) -> Any:
        fields = self._fields
        if fields is None:
            fields = self.fields
        if not isinstance(field, str):
            return fields[field]
        if self.format is None or field not in self.format.names:
            raise KeyError(field)
        number = self.format.names[field]
        # A nullable field may be missing at the tail: it reads as nil, as in Tarantool.
        return fields[number] if number < len(fields) else None

    def get(self, field: int | str, default: object = None) -> Any:
        """The field, or `default` where the tuple or its format has no such field."""
        try:
            return self[field]
        except LookupError:
            return default

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Tuple):
            return self.raw == other.raw
        if isinstance(other, list | tuple):
            return self.fields == list(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"Tuple({self.fields!r})"

    def tomap(self, *, names_only: bool = True) -> dict[str | int, Any]:
        """The named fields as a dict, in the format's order.

        Parameters:
            names_only: leave out the 1-based numbers under which Lua's `tuple:tomap()` repeats every field.

        Source: Tarantool reference, box.tuple, `tuple_object:tomap()`.
        """
        fields = self.fields
        result: dict[str | int, Any] = {}
        if not names_only:
            result.update(enumerate(fields, start=1))
        if self.format is not None:
            result.update(zip(self.format.names, fields, strict=False))
        return result


Sequence.register(Tuple)  # the compiled one is none by birth


class _Nil:
    """The type of `NIL`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NIL"


NIL: Final = _Nil()
"""What a `before_replace` trigger returns for "store nothing": Python's None there means "as it came"."""
