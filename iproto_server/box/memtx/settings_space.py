"""`_session_settings`, in which a Tarantool shows what a session has set for itself.

This server has no such settings: the space is empty and stays so. Its rows would be in the log, where
Tarantool keeps none. Source of the words: Tarantool 2.6, asked.
"""

from __future__ import annotations

from typing import Any

from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.update import Operations
from iproto_server.errors import BoxError, ErrorCode


class SettingsSpace(MemtxSpace):
    """The space `_session_settings`: it refuses every change."""

    __slots__ = ()

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
