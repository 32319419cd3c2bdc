"""The definition of a space: its row of `_space`, its format and its indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from iproto_server.box.index.index import Index
from iproto_server.box.tuple.format import Format
from iproto_server.box.update import Operations, operations_from_python
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.memtx.auto_increment import AttachedSequence

_PARSED_OPERATIONS_MAX = 64
_WITHOUT_FIELDS = Format(())
_CONSTANT_TYPES = frozenset({int, str, float, bool, bytes, type(None)})


class SpaceDefinition:
    """A space's definition. The catalog changes it as the system spaces change.

    Parameters:
        space_id: the number in `_space`.
        name: the name in `_space`.
        owner: user id of the owner.

    Attributes:
        engine, field_count, flags, format_row: as in `_space`.
        format: the format of rows, including the requirements of indexes.
        doubles: the places of fields of type `double`.
        indexes: the indexes by number.
        primary: the index with number 0, or None.
        secondaries: the other indexes, except multikey ones.
        multikeys: the multikey indexes, in which a row may have any number of keys.
        secondaries_by_field: the secondaries with a part in a field, by the field's number.
        primary_fields: the numbers of the fields of the primary key.
        is_temporary: whether rows are neither logged nor stored in snapshots.
        is_local: whether rows are not replicated.
        is_dropped: whether the space was dropped.
        attached: the sequence that provides values of a field of the primary key, or None.
    """

    __slots__ = (
        "_parsed_operations",
        "attached",
        "doubles",
        "engine",
        "field_count",
        "flags",
        "format",
        "format_row",
        "id",
        "indexes",
        "is_dropped",
        "is_local",
        "is_temporary",
        "multikeys",
        "name",
        "owner",
        "primary",
        "primary_fields",
        "secondaries",
        "secondaries_by_field",
    )

    indexes: dict[int, Index]
    primary: Index | None
    secondaries: tuple[Index, ...]
    multikeys: tuple[Index, ...]
    secondaries_by_field: dict[int, tuple[Index, ...]]
    primary_fields: frozenset[int]

    def __init__(self, space_id: int, name: str, owner: int) -> None:
        self.id = space_id
        self.name = name
        self.owner = owner
        self.engine = "memtx"
        self.field_count = 0
        self.flags: dict[str, Any] = {}
        self.format_row: list[Any] = []
        self.is_temporary = False
        self.is_local = False
        self.is_dropped = False
        self.attached: AttachedSequence | None = None
        self.set_format(_WITHOUT_FIELDS)
        self.set_indexes({})

    def set_indexes(self, indexes: dict[int, Index]) -> None:
        """Replace all indexes, by id; the new ones must already hold the rows."""
        self.indexes = dict(sorted(indexes.items()))
        self.primary = self.indexes.get(0)
        others = [index for number, index in self.indexes.items() if number]
        self.secondaries = tuple(index for index in others if not index.is_multikey)
        self.multikeys = tuple(index for index in others if index.is_multikey)
        self.primary_fields = frozenset(_fields_of(self.primary))
        # A part of the primary key is behind the key of each entry.
        self.secondaries_by_field = {
            number: tuple(index for index in self.secondaries if number in _fields_of(index))
            for index in self.secondaries
            for number in _fields_of(index)
        } | dict.fromkeys(self.primary_fields, self.secondaries)

    def set_format(self, new_format: Format) -> None:
        """Replace the format, which all rows must already fit."""
        self.format = new_format
        self._parsed_operations: dict[int, tuple[Sequence[Sequence[Any]], Operations]] = {}
        self.doubles = new_format.doubles

    def index(self, index_id: int) -> Index:
        """The index of that number. Raises BoxError NO_SUCH_INDEX_ID."""
        index = self.indexes.get(index_id)
        if index is None:
            raise BoxError(ErrorCode.NO_SUCH_INDEX_ID, index_id, self.name)
        return index

    def index_by_name(self, name: str) -> Index:
        """The index of that name. Raises BoxError NO_SUCH_INDEX_NAME."""
        for index in self.indexes.values():
            if index.name == name:
                return index
        raise BoxError(ErrorCode.NO_SUCH_INDEX_NAME, name, self.name)

    def primary_index(self) -> Index:
        """The primary index. Raises BoxError NO_SUCH_INDEX_ID if there is none."""
        if self.primary is None:
            raise BoxError(ErrorCode.NO_SUCH_INDEX_ID, 0, self.name)
        return self.primary

    def parse_operations(self, operations: Sequence[Sequence[Any]]) -> Operations:
        """Update operations given in Python (0-based field numbers, or names).

        A constant tuple of the application is parsed only once.
        """
        known = self._parsed_operations.get(id(operations))
        if known is not None and known[0] is operations:
            return known[1]
        parsed = operations_from_python(operations, self.format.names)
        if _is_constant(operations):
            if len(self._parsed_operations) >= _PARSED_OPERATIONS_MAX:
                self._parsed_operations.clear()
            self._parsed_operations[id(operations)] = (operations, parsed)
        return parsed


def _fields_of(index: Index | None) -> set[int]:
    """The numbers of the fields in an index's own parts."""
    return set() if index is None else {part.field_no for part in index.key_def.parts}


def _is_constant(operations: Sequence[Sequence[Any]]) -> bool:
    """Whether operations are tuples of immutable values."""
    return type(operations) is tuple and all(
        type(operation) is tuple and _CONSTANT_TYPES.issuperset(map(type, operation))
        for operation in operations
    )
