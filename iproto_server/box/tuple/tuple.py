"""Tuples, represented by their msgpack bytes.

Bytes from a client go to the log and to other clients without repacking. Fields are decoded on first access,
all at once, because one pass of the C decoder is cheaper than bookkeeping per field.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, Final, overload

from iproto_server.codec import msgpack as codec
from iproto_server.codec.scan import split_array
from iproto_server.native import twin

if TYPE_CHECKING:
    from iproto_server.box.tuple.format import Format


@twin
class Tuple(codec.Raw, Sequence[Any]):
    """An immutable row of a space, for procedures and triggers.

    Fields are read by 0-based number (`task[0]`), by name (`task["status"]`), or all together (`list(task)`,
    `task.tomap()`).

    Parameters:
        raw: the msgpack array as stored.
        format: the format with the names of fields; None for a tuple without space.
        fields: the decoded fields, if known.
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
        """Use the decoded fields of another tuple, which differs in one field only."""
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
        # A missing nullable field at the end reads as nil, as in Tarantool.
        return fields[number] if number < len(fields) else None

    def get(self, field: int | str, default: object = None) -> Any:
        """The field, or `default` if the tuple or its format has no such field."""
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

    def transform(self, start: int, count: int, *values: object) -> Tuple:
        """A copy with some fields replaced by others; it has no space.

        Parameters:
            start: the number of the first field to replace; the number of fields appends.
            count: how many fields to replace, from 0 to all from there on.
            values: the values in their place. If they are as many, all fields keep their names; otherwise the
                copy has no names.

        Raises:
            IndexError: the tuple does not have these fields.
            TypeError: a number is not an integer.
            BoxError: PROC_LUA, a value cannot be packed.

        Source: Tarantool reference, box.tuple, `tuple_object:transform()`, whose fields begin at 1.
        """
        fields = split_array(self.raw)
        if start < 0 or count < 0 or start + count > len(fields):
            raise IndexError(f"a tuple of {len(fields)} fields has no {count} fields from {start} on")
        fields[start : start + count] = map(codec.pack, values)
        raw = codec.array_header(len(fields)) + b"".join(fields)
        return Tuple(raw, self.format if len(values) == count else None)

    def tomap(self, *, names_only: bool = True) -> dict[str | int, Any]:
        """The named fields as a dict, in the format's order.

        Parameters:
            names_only: omit the 1-based numbers, under which Lua's `tuple:tomap()` repeats every field.

        Source: Tarantool reference, box.tuple, `tuple_object:tomap()`.
        """
        fields = self.fields
        result: dict[str | int, Any] = {}
        if not names_only:
            result.update(enumerate(fields, start=1))
        if self.format is not None:
            result.update(zip(self.format.names, fields, strict=False))
        return result

    def as_map(self, *, names_only: bool = True) -> TupleMap:
        """The named fields as a read-only mapping.

        A procedure that returns it need not decode the fields.

        Parameters:
            names_only: as for `tomap`.
        """
        return TupleMap(self, names_only)


Sequence.register(Tuple)  # the compiled class does not inherit from it


@twin
class TupleMap(codec.Raw, Mapping[str | int, Any]):
    """A tuple as a read-only mapping with the items of `Tuple.tomap`.

    It is packed from the tuple's bytes, so that each value keeps the form that it is stored in.

    Parameters:
        row: the tuple.
        names_only: as for `Tuple.tomap`.
    """

    __slots__ = ("_items", "_names_only", "_row")

    def __init__(self, row: Tuple, names_only: bool = True) -> None:
        self._row = row
        self._names_only = names_only
        self._items: dict[str | int, Any] | None = None

    @property
    def raw(self) -> bytes:  # type: ignore[override]
        """The packed map."""
        return pack_map(self._row, self._names_only)

    def _map(self) -> dict[str | int, Any]:
        items = self._items
        if items is None:
            items = self._items = self._row.tomap(names_only=self._names_only)
        return items

    def __getitem__(self, key: str | int) -> Any:
        return self._map()[key]

    def get(self, key: str | int, default: Any = None) -> Any:
        """The value of a key, or `default` if there is no such key."""
        return self._map().get(key, default)

    def keys(self) -> KeysView[str | int]:
        """The keys, in the order of `Tuple.tomap`."""
        return self._map().keys()

    def values(self) -> ValuesView[Any]:
        """The values, in the same order."""
        return self._map().values()

    def items(self) -> ItemsView[str | int, Any]:
        """The pairs of key and value, in the same order."""
        return self._map().items()

    def __contains__(self, key: object) -> bool:
        return key in self._map()

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._map())

    def __len__(self) -> int:
        return len(self._map())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self._map() == dict(other)

    def __repr__(self) -> str:
        return f"TupleMap({self._map()!r})"


Mapping.register(TupleMap)  # the compiled class does not inherit from it


@twin
def pack_map(row: Tuple, names_only: bool) -> bytes:
    """Pack the map of a tuple from its packed fields.

    Parameters:
        row: the tuple.
        names_only: as for `Tuple.tomap`.

    Raises:
        BoxError: INVALID_MSGPACK, the tuple is no array.
    """
    fields = split_array(row.raw)
    pairs: list[bytes] = []
    if not names_only:
        for number, field in enumerate(fields, start=1):
            pairs += (codec.pack(number), field)
    if row.format is not None:
        for name, field in zip(row.format.packed_names, fields, strict=False):
            pairs += (name, field)
    return codec.map_header(len(pairs) // 2) + b"".join(pairs)


class _Nil:
    """The type of `NIL`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NIL"


NIL: Final = _Nil()
"""Returned by a `before_replace` trigger to store nothing; None means to keep the change."""
