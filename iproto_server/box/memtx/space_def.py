"""The definition of a space: its row of `_space`, its format and its indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from iproto_server.box.index.index import Index
from iproto_server.box.tuple.format import Format
from iproto_server.box.update import Operations, operations_from_python, parse_update
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import Space

if TYPE_CHECKING:
    from iproto_server.box.txn.transaction import TransactionManager

_PARSED_OPERATIONS_MAX = 64
_WITHOUT_FIELDS = Format(())
_CONSTANT_TYPES = frozenset({int, str, float, bool, bytes, type(None)})


class SpaceDefinition(Space):
    """A space's definition. The catalog changes it as the system spaces change.

    Parameters:
        space_id: the number in `_space`.
        name: the name in `_space`.
        owner: user id of the owner.
        transactions: the transaction manager.

    Attributes:
        engine, field_count, flags, format_row: as in `_space`.
        format: the format of rows, including the requirements of indexes.
        doubles: the places of fields of type `double`.
        indexes: the indexes by number.
        primary: the index with number 0, or None.
        secondaries: the other indexes, by number.
        is_temporary: whether rows are neither logged nor stored in snapshots.
        is_local: whether rows are not replicated.
        is_dropped: whether the space was dropped.
        attached: the sequence that provides values of a field of the primary key, or None.
    """

    __slots__ = (
        "_parsed_operations",
        "doubles",
        "engine",
        "field_count",
        "flags",
        "format_row",
        "name",
        "owner",
    )

    indexes: dict[int, Index]
    secondaries: tuple[Index, ...]

    def __init__(self, space_id: int, name: str, owner: int, transactions: TransactionManager) -> None:
        super().__init__(transactions)
        self.id = space_id
        self.name = name
        self.owner = owner
        self.engine = "memtx"
        self.field_count = 0
        self.flags: dict[str, Any] = {}
        self.format_row: list[Any] = []
        self.set_format(_WITHOUT_FIELDS)
        self.set_indexes({})

    def set_indexes(self, indexes: dict[int, Index]) -> None:
        """Replace all indexes, by id; the new ones must already hold the rows."""
        by_number = dict(sorted(indexes.items()))
        secondaries = tuple(index for number, index in by_number.items() if number)
        primary = by_number.get(0)
        fields = tuple(_fields_of(index) for index in (primary, *secondaries))
        self._use_indexes(by_number, primary, secondaries, fields)

    def set_format(self, new_format: Format) -> None:
        """Replace the format, which all rows must already fit."""
        self.format = new_format
        self._parsed_operations: dict[int, tuple[Sequence[Sequence[Any]], Operations]] = {}
        self.doubles = new_format.doubles
        self._use_doubles({place[0] for place in self.doubles if len(place) == 1})

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

    def _refuse(self, code: int, *args: object) -> NoReturn:
        """Raise an error of the engine."""
        raise BoxError(code, *args)

    def _refuse_by_index(self, code: int, index: Index) -> NoReturn:
        """Raise an error of the engine about an index of the space."""
        raise BoxError(code, index.name, self.name)

    def primary_index(self) -> Index:
        """The primary index. Raises BoxError NO_SUCH_INDEX_ID if there is none."""
        if self.primary is None:
            raise BoxError(ErrorCode.NO_SUCH_INDEX_ID, 0, self.name)
        return self.primary

    def parse_packed(self, operations: bytes, index_base: int) -> Operations:
        """Update operations of a request; their faults are raised when they are applied."""
        return parse_update(operations, self.format.names, index_base, deferred=True)

    def parse_operations(self, operations: Sequence[Sequence[Any]]) -> Operations:
        """Update operations given in Python (0-based field numbers, or names).

        A constant tuple of the application is parsed only once.
        """
        cached = self._parsed_operations.get(id(operations))
        if cached is not None and cached[0] is operations:
            return cached[1]
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
