"""`_session_settings`, in which Tarantool shows the settings of a session.

This server has no such settings, so the space stays empty. Rows would be logged, unlike in Tarantool. Source
of the messages: the behaviour of Tarantool 2.6.
"""

from __future__ import annotations

from typing import Any

from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.box.update import Operations
from iproto_server.errors import BoxError, ErrorCode


class SettingsSpace(MemtxSpace):
    """The space `_session_settings`, which refuses every change."""

    __slots__ = ()

    def __init__(self, space_id: int, name: str, owner: int, transactions: TransactionManager) -> None:
        super().__init__(space_id, name, owner, transactions)
        self._is_custom = True

    @staticmethod
    def _refusal(method: str) -> BoxError:
        return BoxError(ErrorCode.UNSUPPORTED, "Session_settings space", method)

    def insert(self, row: Tuple) -> Tuple:
        """Refused."""
        raise self._refusal("replace()")

    def replace(self, row: Tuple) -> Tuple:
        """Refused."""
        raise self._refusal("replace()")

    def delete(self, index_id: int, key: list[Any]) -> Tuple | None:
        """Refused."""
        raise self._refusal("delete()")

    def update(self, index_id: int, key: list[Any], operations: Operations) -> Tuple | None:
        """Refused."""
        raise BoxError(ErrorCode.UNSUPPORTED, "This server", "session settings")

    def upsert(self, row: Tuple, operations: Operations) -> None:
        """Refused."""
        raise self._refusal("upsert()")
