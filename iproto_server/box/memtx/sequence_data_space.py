"""`_sequence_data`, the system space with the values of sequences."""

from __future__ import annotations

from collections.abc import Iterable

from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.sequence import SequenceState
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.codec import msgpack as codec
from iproto_server.native._native import HeldRecord


class SequenceDataSpace(MemtxSpace):
    """`_sequence_data`; its rows may be older than values drawn for rows of other spaces.

    Parameters:
        space_id, name, owner, transactions: as for any space.
        sequences: the sequences.
    """

    __slots__ = ("_manager", "_replaced", "_sequences")

    def __init__(
        self,
        space_id: int,
        name: str,
        owner: int,
        transactions: TransactionManager,
        sequences: Iterable[SequenceState],
    ) -> None:
        super().__init__(space_id, name, owner, transactions)
        self._sequences = sequences
        self._manager = transactions
        self._replaced: list[HeldRecord] = []

    def catch_up(self) -> list[bytes]:
        """Update the rows to the present values, without logging, and return them for a snapshot.

        Later log entries then refer to the rows of the snapshot, as recovery needs it.
        """
        rows = []
        if not self._manager.unwritten and not self._manager.is_writing:
            self._replaced.clear()
        primary = self.primary_index()
        for state in sorted(self._sequences, key=lambda state: state.definition.id):
            if state.value is None:
                continue
            fields = [state.definition.id, state.value]
            key = primary.key_of(fields, b"")
            raw = codec.pack(fields)
            if primary.get(key) != raw:
                replaced = self.exchange(key, raw)
                if replaced is not None:
                    self._replaced.append(replaced)  # a statement that is not written yet may refer to it
            rows.append(raw)
        return rows
