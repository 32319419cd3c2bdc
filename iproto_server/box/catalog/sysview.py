"""The read-only views of the system spaces, through which clients load the schema.

A view shows the rows of its system space that the caller may see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from iproto_server.box.access.access_control import PUBLIC, Credentials, Privilege
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.index.index import Index
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.box.update import Operations
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType

_ANY_USE = Privilege.READ | Privilege.WRITE | Privilege.DROP | Privilege.ALTER
_ANY_CALL = _ANY_USE | Privilege.EXECUTE

Visible = Callable[[SpaceRegistry, Credentials, list[Any]], bool]
"""Whether a user may see a row of a system space, by its privileges on the object of the row."""


def _sees_space(registry: SpaceRegistry, user: Credentials, row: list[Any]) -> bool:
    space = registry.spaces.get(row[0])
    return space is not None and (
        space.owner == user.user_id or bool(user.granted("space", space.id) & _ANY_USE)
    )


def _sees_user(registry: SpaceRegistry, user: Credentials, row: list[Any]) -> bool:
    return bool(user.universe & _ANY_USE) or user.user_id in row[:2] or row[0] == PUBLIC


def _sees_privilege(registry: SpaceRegistry, user: Credentials, row: list[Any]) -> bool:
    return bool(user.universe & _ANY_USE) or user.user_id in row[:2]


def _sees_function(registry: SpaceRegistry, user: Credentials, row: list[Any]) -> bool:
    return row[1] == user.user_id or bool(user.granted("function", row[0]) & _ANY_CALL)


def _sees_sequence(registry: SpaceRegistry, user: Credentials, row: list[Any]) -> bool:
    return row[1] == user.user_id or bool(user.granted("sequence", row[0]) & _ANY_CALL)


def _sees_all(registry: SpaceRegistry, user: Credentials, row: list[Any]) -> bool:
    return True


SYSVIEWS: dict[int, tuple[int, Visible]] = {
    277: (276, _sees_all),
    281: (280, _sees_space),
    286: (284, _sees_sequence),
    289: (288, _sees_space),
    297: (296, _sees_function),
    305: (304, _sees_user),
    313: (312, _sees_privilege),
    341: (340, _sees_space),
}
"""View id -> (id of the system space, visibility of rows)."""


class SysviewSpace(MemtxSpace):
    """A view of a system space, without own rows; refuses every change.

    Parameters:
        space_id, name, owner, transactions: as for any space.
        registry: all spaces.

    Raises:
        BoxError: NO_SUCH_ENGINE if the id is not that of a view.
    """

    __slots__ = ("_registry", "_source_id", "_visible")

    def __init__(
        self, space_id: int, name: str, owner: int, transactions: TransactionManager, registry: SpaceRegistry
    ) -> None:
        super().__init__(space_id, name, owner, transactions)
        self._is_custom = True
        self._registry = registry
        if space_id not in SYSVIEWS:
            raise BoxError(ErrorCode.NO_SUCH_ENGINE, "sysview")
        self._source_id, self._visible = SYSVIEWS[space_id]

    @property
    def source(self) -> MemtxSpace:
        """The system space of the view."""
        return self._registry.spaces[self._source_id]

    def _visible_rows(self, rows: Iterator[bytes]) -> Iterator[bytes]:
        user = self._registry.current_user()
        # READ on all spaces does not suffice: it would reveal grants.
        of_source = user.universe | user.objects.get(("space", self._source_id), 0)
        if of_source & Privilege.READ:
            return rows
        return (row for row in rows if self._visible(self._registry, user, codec.unpack(row)))

    def __len__(self) -> int:
        """The number of rows that the caller sees."""
        return sum(1 for _ in self.rows())

    def rows(self) -> Iterator[bytes]:
        """Every row the caller sees."""
        return self._visible_rows(self.source.rows())

    def iterate(
        self, index: Index, iterator: int, key: list[Any], after: bytes | None = None
    ) -> Iterator[bytes]:
        """The rows the caller sees among those an iterator finds."""
        # The view's own index refuses a key, also where its source has lost that index.
        index.interval(iterator, key)
        source = self.source
        return self._visible_rows(source.iterate(source.index(index.id), iterator, key, after))

    def count_found(self, index: Index, iterator: int, key: list[Any]) -> int:
        return sum(1 for _ in self.iterate(index, iterator, key))

    def select(
        self,
        index_id: int,
        iterator: int,
        offset: int,
        limit: int,
        key: list[Any],
        after: bytes | None = None,
    ) -> list[bytes]:
        """The rows the caller sees among those an iterator finds."""
        rows = self.iterate(self.index(index_id), iterator, key)
        return list(islice(rows, offset, offset + limit))

    def first(self, index_id: int, key: list[Any]) -> bytes | None:
        """The first row the caller sees among those whose key begins with `key`, or None."""
        return next(self.iterate(self.index(index_id), IteratorType.EQ, key), None)

    def find(self, index_id: int, key: list[Any]) -> bytes | None:
        """The row with a full key, if the caller sees it."""
        self.index(index_id).encode_unique_key(key)
        row = self.source.find(index_id, key)
        return next(self._visible_rows(iter([] if row is None else [row])), None)

    def _read_only(self) -> BoxError:
        if self._transactions.is_read_only:
            return BoxError(ErrorCode.READONLY)
        return BoxError(ErrorCode.VIEW_IS_RO, self.name)

    def insert(self, row: Tuple) -> Tuple:
        """Refused."""
        raise self._read_only()

    def replace(self, row: Tuple) -> Tuple:
        """Refused."""
        raise self._read_only()

    def delete(self, index_id: int, key: list[Any]) -> Tuple | None:
        """Refused."""
        raise self._read_only()

    def update(self, index_id: int, key: list[Any], operations: Operations) -> Tuple | None:
        """Refused."""
        raise self._read_only()

    def upsert(self, row: Tuple, operations: Operations) -> None:
        """Refused."""
        raise self._read_only()
