"""The interface through which spaces report reads and changes to an interactive transaction."""

from __future__ import annotations

from typing import Any, Protocol

from iproto_server.box.index.index import Index
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.txn.transactional_space import ReadableSpace, TransactionalSpace


class SideState(Protocol):
    """A transaction's changes of state that is kept outside the spaces."""

    def put_in(self) -> None:
        """Apply the changes."""

    def take_out(self) -> None:
        """Revert to the committed state, and remember the changes."""


class ReadTracker(Protocol):
    """Records reads and changes; implemented by `InteractiveTransaction`.

    Attributes:
        side_state: the transaction's changes of state outside the spaces, by owner.
    """

    side_state: dict[object, SideState]

    def read_key(self, space: ReadableSpace, index_id: int, key: bytes) -> None:
        """Record a look-up by a whole encoded key, whether or not it found a row."""

    def read_interval(
        self,
        space: ReadableSpace,
        index: Index,
        iterator: int,
        key: list[Any],
        last: bytes | None = None,
    ) -> None:
        """Record a walk through an index.

        Parameters:
            space, index: the index and its space.
            iterator, key: the arguments of the walk.
            last: the row at which it stopped; None if it reached the end.
        """

    def read_all(self, space: ReadableSpace) -> None:
        """Record a read or a count of all rows."""

    def change(self, space: TransactionalSpace, key: bytes, new: Tuple | None, operation: str) -> None:
        """Record that a row is about to change.

        Parameters:
            space, key: the space and the encoded primary key.
            new: the new row; None for a deletion.
            operation: the request's name.

        Raises:
            BoxError: TRANSACTION_CONFLICT, the transaction sees outdated rows.
        """

    def rolled_back_to(self, position: int) -> None:
        """Record that the statements after the first `position` ones are undone."""
