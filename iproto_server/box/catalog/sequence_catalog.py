"""Sequences, as defined by the rows of `_sequence`, `_sequence_data` and `_space_sequence`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.catalog.grants import has_grants
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import SEQUENCE_DATA, SPACE_SEQUENCE
from iproto_server.box.memtx.auto_increment import AttachedSequence
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.sequence import SequenceDef, SequenceState, check_int64
from iproto_server.errors import BoxError, ErrorCode

_UINT32_MASK = 0xFFFFFFFF
_PLACE = 3
"""The first of the fields that were added to `_space_sequence` later: field number and path."""

Row = list[Any]
Undo = Callable[[], None]


class SequenceCatalog:
    """The effects of rows of `_sequence`, `_sequence_data` and `_space_sequence`.

    Parameters:
        registry: all spaces.
    """

    def __init__(self, registry: SpaceRegistry) -> None:
        self._registry = registry
        self._by_id: dict[int, SequenceState] = {}

    def clear(self) -> None:
        """Remove all sequences."""
        self._by_id.clear()

    def __iter__(self) -> Iterator[SequenceState]:
        return iter(list(self._by_id.values()))

    def find(self, sequence_id: int) -> SequenceState | None:
        """The sequence of that number, or None."""
        return self._by_id.get(sequence_id)

    def by_id(self, sequence_id: int) -> SequenceState:
        """The sequence of that number. Raises BoxError NO_SUCH_SEQUENCE (145)."""
        sequence = self._by_id.get(sequence_id & _UINT32_MASK)
        if sequence is None:
            raise BoxError(ErrorCode.NO_SUCH_SEQUENCE, str(sequence_id & _UINT32_MASK))
        return sequence

    def by_name(self, name: str) -> SequenceState | None:
        """The sequence of that name, or None."""
        return next((each for each in self._by_id.values() if each.definition.name == name), None)

    # -- loading --

    def load(self, row: Row) -> None:
        """Load a row of `_sequence`, which was checked when it was stored."""
        definition = SequenceDef.parse(row, ErrorCode.CREATE_SEQUENCE)
        self._by_id[definition.id] = SequenceState(definition)

    def load_value(self, row: Row) -> None:
        """Load a row of `_sequence_data`, which was checked when it was stored."""
        self.by_id(row[0]).value = row[1]

    def load_attachment(self, row: Row) -> None:
        """Load a row of `_space_sequence`, which was checked when it was stored."""
        space = self._registry.space(row[0])
        self._attach(space, self._attached(space, row), row)

    # -- _sequence --

    def sequence_changed(self, old: Row | None, new: Row | None, operation: str) -> Undo:
        """Apply a change of a row of `_sequence`."""
        if old is None:
            assert new is not None
            return self._create(SequenceDef.parse(new, ErrorCode.CREATE_SEQUENCE))
        if new is None:
            return self._drop(self.by_id(old[0]))
        definition = SequenceDef.parse(new, ErrorCode.ALTER_SEQUENCE)
        sequence = self.by_id(new[0])
        before = sequence.definition
        self._check_access(Privilege.ALTER, sequence)
        sequence.definition = definition

        def undo() -> None:
            sequence.definition = before

        return undo

    def _create(self, definition: SequenceDef) -> Undo:
        sequence = SequenceState(definition)
        self._check_access(Privilege.CREATE, sequence)
        self._by_id[definition.id] = sequence

        def undo() -> None:
            del self._by_id[definition.id]

        return undo

    def _drop(self, sequence: SequenceState) -> Undo:
        self._check_access(Privilege.DROP, sequence)
        definition = sequence.definition
        registry = self._registry
        held: list[tuple[str, Callable[[], bool]]] = [
            ("the sequence has data", lambda: bool(registry.rows(SEQUENCE_DATA, 0, [definition.id]))),
            ("the sequence is in use", lambda: bool(registry.rows(SPACE_SEQUENCE, 1, [definition.id]))),
            (
                "the sequence has grants",
                lambda: has_grants(registry, "sequence", definition.id),
            ),
        ]
        for reason, is_held in held:
            if is_held():
                raise BoxError(ErrorCode.DROP_SEQUENCE, definition.name, reason)
        del self._by_id[definition.id]

        def undo() -> None:
            self._by_id[definition.id] = sequence

        return undo

    def _check_access(self, privilege: Privilege, sequence: SequenceState) -> None:
        """Raise BoxError ACCESS_DENIED unless the caller has the privilege on the sequence's definition."""
        definition = sequence.definition
        self._registry.access.check_definition(
            self._registry.current_user(),
            privilege,
            "sequence",
            definition.id,
            definition.name,
            definition.owner,
        )

    # -- _sequence_data --

    def data_changed(self, old: Row | None, new: Row | None, operation: str) -> Undo | None:
        """Apply a change of a row of `_sequence_data`.

        A rollback does not revert values that were drawn or set; it restores only that of a dropped sequence.
        """
        if new is not None:
            sequence = self.by_id(new[0] if old is None else old[0])
            check_int64(new[1], 1)
            sequence.value = new[1]
            return None
        assert old is not None
        sequence = self.by_id(old[0])
        stored: int = old[1]

        def undo() -> None:
            sequence.value = stored

        sequence.value = None
        return undo

    # -- _space_sequence --

    def attachment_changed(self, old: Row | None, new: Row | None, operation: str) -> Undo:
        """Apply a new or deleted row of `_space_sequence`."""
        row = old if new is None else new
        assert row is not None
        space = self._registry.space(row[0] & _UINT32_MASK)
        sequence = self.by_id(row[1])
        if old is not None and new is not None:
            raise BoxError(ErrorCode.UNSUPPORTED, 'space "_space_sequence"', "update")
        if new is None:
            privileges: tuple[Privilege, ...] = (Privilege.DROP,)
        else:
            privileges = (Privilege.CREATE,) if new[2] else (Privilege.READ, Privilege.WRITE)
        for privilege in privileges:
            self._check_access(privilege, sequence)
        self._registry.access.check_definition(
            self._registry.current_user(), Privilege.ALTER, "space", space.id, space.name, space.owner
        )
        if new is None:
            before = space.attached
            assert before is not None
            self._detach(space, sequence)
            return lambda: self._attach(space, before, row)
        attached = self._attached(space, new)
        if sequence.is_generated:
            raise BoxError(ErrorCode.ALTER_SPACE, space.name, "can not attach generated sequence")
        self._check_generated(new)
        self._attach(space, attached, new)
        return lambda: self._detach(space, sequence)

    def _check_generated(self, row: Row) -> None:
        """Raise BoxError UNSUPPORTED (5) if a space is to own a sequence that a space with a larger id uses.

        Tarantool 2.6 allows that, but does not start from the snapshot: it refuses the later space there.
        """
        if row[2] and not self._registry.is_loading:
            attachments = self._registry.rows(SPACE_SEQUENCE, 0, [])
            if any(other[1] == row[1] and other[0] > row[0] for other in attachments):
                raise BoxError(
                    ErrorCode.UNSUPPORTED, "This server", "a sequence of one space that another has"
                )

    def _attached(self, space: MemtxSpace, row: Row) -> AttachedSequence:
        primary = space.primary_index()
        part = primary.key_def.parts[0]
        field_no, path = part.field_no, part.path or ""
        if len(row) > _PLACE:
            field_no = row[_PLACE] & _UINT32_MASK
            if len(row) == _PLACE + 1:
                raise BoxError(ErrorCode.FIELD_TYPE, _PLACE + 2, "string")
            path = row[_PLACE + 1]
        attached = AttachedSequence(self.by_id(row[1]), field_no, path, lambda: self._registry.current_user())
        attached.check_index(primary)
        return attached

    @staticmethod
    def _attach(space: MemtxSpace, attached: AttachedSequence, row: Row) -> None:
        attached.sequence.is_generated = row[2]
        space.attached = attached

    @staticmethod
    def _detach(space: MemtxSpace, sequence: SequenceState) -> None:
        sequence.is_generated = False
        space.attached = None
