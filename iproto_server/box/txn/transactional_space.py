"""The interface of spaces for transactions; the storage engine in `memtx/` implements it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from iproto_server.box.index.index import Index
from iproto_server.box.txn.trigger import TriggerList
from iproto_server.native._native import HeldRecord


class ReadableSpace(Protocol):
    """A space whose reads are tracked."""

    def index(self, index_id: int) -> Index:
        """The index of that number. Raises BoxError NO_SUCH_INDEX_ID (35)."""

    def keys_of(self, index: Index, row: bytes) -> Iterable[bytes]:
        """The encoded keys that a row has in one of the indexes."""


class TransactionalSpace(ReadableSpace, Protocol):
    """A space whose rows transactions change and restore."""

    @property
    def id(self) -> int:
        """Its number in `_space`."""

    @property
    def name(self) -> str:
        """Its name in `_space`."""

    @property
    def is_temporary(self) -> bool:
        """Whether its rows are neither logged nor kept."""

    @property
    def is_local(self) -> bool:
        """Whether its rows are not replicated."""

    @property
    def primary(self) -> Index | None:
        """The index with number 0, if there is one."""

    @property
    def indexes(self) -> Mapping[int, Index]:
        """All indexes, by number."""

    @property
    def secondaries(self) -> Sequence[Index]:
        """The other indexes, by number."""

    @property
    def on_replace(self) -> TriggerList:
        """The triggers that run after a change."""

    @property
    def before_replace(self) -> TriggerList:
        """The triggers that run before a change."""

    def exchange(self, key: bytes, row: bytes | HeldRecord | None) -> HeldRecord | None:
        """Put a row in the place of another without a statement; see `native.Space`."""
