"""What an interactive transaction is told while one of its requests runs."""

from __future__ import annotations

from typing import Any, Protocol

from iproto_server.box.index.index import Index
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.txn.transactional_space import ReadableSpace, TransactionalSpace


class Beside(Protocol):
    """What a transaction has changed of something that is kept beside the spaces."""

    def put_in(self) -> None:
        """Let it be what the transaction sees."""

    def take_out(self) -> None:
        """Let it be what everybody sees."""


class ReadTracker(Protocol):
    """Notes reads and changes; `InteractiveTransaction` does.

    Attributes:
        beside: what the transaction has changed beside the spaces, by what that belongs to.
    """

    beside: dict[object, Beside]

    def read_key(self, space: ReadableSpace, index_id: int, key: bytes) -> None:
        """Note a look-up of a row by a whole encoded key, whether the row was there or not."""

    def read_interval(
        self,
        space: ReadableSpace,
        index: Index,
        iterator: int,
        key: list[Any],
        last: bytes | None = None,
    ) -> None:
        """Note a walk through an index.

        Parameters:
            space, index: where.
            iterator, key: as the walk was asked for.
            last: the row at which it stopped; None when it went to the end.
        """

    def read_all(self, space: ReadableSpace) -> None:
        """Note a look at all rows, or a count of them."""

    def change(self, space: TransactionalSpace, key: bytes, new: Tuple | None, operation: str) -> None:
        """Note that a row is about to be changed.

        Parameters:
            space, key: where, by the encoded primary key.
            new: the row that is to be there, None for none.
            operation: the request's name.

        Raises:
            BoxError: TRANSACTION_CONFLICT, the change would rest on outdated rows.
        """

    def rolled_back_to(self, position: int) -> None:
        """Note that the statements after the first `position` ones are undone."""
