"""`box.sequence` and `box.schema.sequence`: sequences for procedures.

Source: Tarantool reference, "box.schema.sequence.create()" and "Submodule box.sequence" (the methods
`next`, `current`, `set`, `reset`, `alter`, `drop`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.lua_arguments import illegal, lua_text
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.box.catalog.grants import revoke_all
from iproto_server.box.memtx.sequence import INT64_MAX, INT64_MIN, SequenceDef, SequenceState
from iproto_server.errors import BoxError, ErrorCode

_BY_NAME = 2
_NAME = 2
_STEP = 3
_OPTIONS = ("step", "min", "max", "start", "cache", "cycle")


class Sequence:
    """`box.sequence.NAME`. The object stays valid when the sequence is renamed.

    Parameters:
        box: the box it is in.
        sequence_id: its number in `_sequence`.
    """

    def __init__(self, box: BoxCore, sequence_id: int) -> None:
        self._box = box
        self.id = sequence_id

    @property
    def definition(self) -> SequenceDef:
        """Its row of `_sequence`. Raises BoxError NO_SUCH_SEQUENCE (145) if it was dropped."""
        return self._state().definition

    @property
    def name(self) -> str:
        """The name in `_sequence`."""
        return self.definition.name

    def next(self) -> int:
        """Advance to the next value and return it. A rollback does not revert that.

        Raises:
            BoxError: SEQUENCE_OVERFLOW (147), ACCESS_DENIED (42).
        """
        value = self._usable().next()
        self._keep(value)
        return value

    def current(self) -> int:
        """The last value.

        Raises:
            BoxError: SEQUENCE_NOT_STARTED (212) before the first one, ACCESS_DENIED (42).
        """
        return self._usable().current()

    def set(self, value: int) -> None:
        """Set the last value; it may be out of bounds.

        Parameters:
            value: an integer of 64 bits.

        Raises:
            BoxError: PROC_LUA (32) for any other value, ACCESS_DENIED (42).
        """
        if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
            raise BoxError.procedure("expected int64_t as 2 argument")
        self._usable().value = value
        self._keep(value)

    def reset(self) -> None:
        """Restart the sequence. Raises BoxError ACCESS_DENIED (42)."""
        self._usable().value = None
        self._box.catalog.space(system.SEQUENCE_DATA).delete(0, [self.id])

    def alter(self, **options: Any) -> None:
        """Alter it; see `SequenceSchema.alter`."""
        SequenceSchema(self._box).alter(self.id, **options)

    def drop(self) -> None:
        """Remove it; see `SequenceSchema.drop`."""
        SequenceSchema(self._box).drop(self.id)

    def _state(self) -> SequenceState:
        return self._box.catalog.sequences.by_id(self.id)

    def _usable(self) -> SequenceState:
        transactions = self._box.transactions
        if transactions.take_out is not None:
            transactions.take_out()  # as for `Space.core`
        state = self._state()
        state.check_use(self._box.session.current.credentials)
        return state

    def _keep(self, value: int) -> None:
        # The right to use the sequence suffices; rights on this space are not needed.
        rows = self._box.catalog.space(system.SEQUENCE_DATA)
        rows.replace(rows.row([self.id, value]))

    def __repr__(self) -> str:
        return f"<sequence {self.id}>"


class Sequences:
    """`box.sequence`: the sequences by name (`box.sequence.orders`, `box.sequence["orders"]`) or number.

    Parameters:
        box: the box.
    """

    def __init__(self, box: BoxCore) -> None:
        self._box = box

    def __getitem__(self, which: str | int) -> Sequence:
        sequences = self._box.catalog.sequences
        state = sequences.by_name(which) if isinstance(which, str) else sequences.by_id(which)
        if state is None:
            raise BoxError(ErrorCode.NO_SUCH_SEQUENCE, which)
        return Sequence(self._box, state.definition.id)

    def __getattr__(self, name: str) -> Sequence:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._box.catalog.sequences.by_name(name) is not None

    def __iter__(self) -> Iterator[Sequence]:
        return (Sequence(self._box, state.definition.id) for state in self._box.catalog.sequences)


class SequenceSchema:
    """`box.schema.sequence`.

    Parameters:
        box: the box.
    """

    def __init__(self, box: BoxCore) -> None:
        self._box = box

    def create(
        self,
        name: str,
        *,
        step: int = 1,
        min: int | None = None,
        max: int | None = None,
        start: int | None = None,
        cache: int = 0,
        cycle: bool = False,
        if_not_exists: bool = False,
    ) -> Sequence:
        """Create a sequence.

        Parameters:
            name: its name.
            step: the increment; below 0 the sequence descends.
            min: the least value; by default 1, or -2^63 if it descends.
            max: the greatest value; by default 2^63 - 1, or -1 if it descends.
            start: the first value; by default `min`, or `max` if it descends.
            cache: stored, without effect.
            cycle: continue at the other end instead of overflowing.
            if_not_exists: return an existing sequence of that name, whatever its definition.

        Raises:
            BoxError: SEQUENCE_EXISTS (146), CREATE_SEQUENCE (142), IDENTIFIER (70), ACCESS_DENIED (42).
        """
        if not isinstance(name, str):
            raise illegal("name should be a string")
        if self.row(name) is not None:
            if if_not_exists:
                return Sequences(self._box)[name]
            raise BoxError(ErrorCode.SEQUENCE_EXISTS, name)
        ascending = step > 0
        if start is None:
            start = (1 if min is None else min) if ascending else (-1 if max is None else max)
        if min is None:
            min = 1 if ascending else INT64_MIN
        if max is None:
            max = INT64_MAX if ascending else -1
        box = self._box
        owner = box.session.euid()
        # The new id is one above the greatest, which the caller must be allowed to see.
        box.access.check_space(
            box.session.current.credentials, Privilege.READ, box.catalog.space(system.SEQUENCE)
        )
        rows = box.catalog.writable(system.SEQUENCE)
        number = box.catalog.next_id(system.SEQUENCE)
        rows.insert(rows.row([number, owner, name, step, min, max, start, cache, cycle]))
        return Sequences(box)[name]

    def alter(self, which: str | int, /, **options: Any) -> None:
        """Alter a sequence; its value stays.

        Parameters:
            which: its name or number.
            options: a new `name`, and those of `create`; the others keep their values.

        Raises:
            BoxError: NO_SUCH_SEQUENCE (145), ALTER_SEQUENCE (143), ILLEGAL_PARAMS (1) for an unknown
                option, ACCESS_DENIED (42).
        """
        for option in options:
            if option != "name" and option not in _OPTIONS:
                raise illegal(f"unexpected option '{option}'")
        row = self._row(which)
        if not options:
            return
        row[_NAME] = options.get("name", row[_NAME])
        for number, option in enumerate(_OPTIONS, start=_STEP):
            row[number] = options.get(option, row[number])
        rows = self._box.catalog.writable(system.SEQUENCE)
        rows.replace(rows.row(row[: _STEP + len(_OPTIONS)]))

    def drop(self, name: str | int, *, if_exists: bool = False) -> None:
        """Remove a sequence with its value and the grants on it.

        Parameters:
            name: its name or number.
            if_exists: do nothing if it does not exist.

        Raises:
            BoxError: NO_SUCH_SEQUENCE (145), DROP_SEQUENCE (144) if a space uses it, ACCESS_DENIED (42).
        """
        if if_exists and self.row(name) is None:
            return
        sequence_id = self._row(name)[0]
        catalog = self._box.catalog
        with self._box.in_transaction():
            revoke_all(catalog, "sequence", sequence_id)
            catalog.writable(system.SEQUENCE_DATA).delete(0, [sequence_id])
            catalog.writable(system.SEQUENCE).delete(0, [sequence_id])

    def detach(self, space_id: int) -> None:
        """Detach the sequence of a space, and drop it if it was created for the space."""
        row = self._box.catalog.writable(system.SPACE_SEQUENCE).delete(0, [space_id])
        if row is not None and row[2]:
            self.drop(row[1])

    def row(self, name: object) -> list[Any] | None:
        """The row of `_sequence` of that name or number; None if the caller does not see one."""
        if name is None:
            return None
        rows = self._box.catalog.rows(system.VSEQUENCE, _BY_NAME if isinstance(name, str) else 0, [name])
        return rows[0] if rows else None

    def _row(self, name: object) -> list[Any]:
        row = self.row(name)
        if row is None:
            raise BoxError(ErrorCode.NO_SUCH_SEQUENCE, lua_text(name))
        return row
