"""Statements and savepoints of transactions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from iproto_server.box.index.index import Index
from iproto_server.box.txn.transactional_space import TransactionalSpace

Undo = Callable[[], None] | None
"""Reverts the effect of a system row."""


class Savepoint(NamedTuple):
    """A point of a transaction to roll back to: the numbers of statements and callbacks so far.

    `nesting` is the number of statements whose triggers were running.
    """

    statements: list[Statement]
    position: int
    on_commit: int
    on_rollback: int
    nesting: int


new_savepoint: Final[Callable[[tuple[list[Statement], int, int, int, int]], Savepoint]] = partial(
    tuple.__new__, Savepoint
)


class Statement(NamedTuple):
    """One change of one row.

    `old` None is an insertion, `new` None a deletion. `primary` is the space's primary index at that moment.
    `undo` reverts the effect of a system row (a created space, a built index).
    """

    space: TransactionalSpace
    key: bytes
    old: bytes | None
    new: bytes | None
    primary: Index
    undo: Callable[[], None] | None


_StatementParts = tuple[TransactionalSpace, bytes, bytes | None, bytes | None, Index, Undo]

new_statement: Final[Callable[[_StatementParts], Statement]] = partial(tuple.__new__, Statement)
"""Makes a statement from a tuple of its parts; `Statement(...)` takes three times as long."""


class Committed(NamedTuple):
    """A committed transaction that the journal has not written yet."""

    statements: list[Statement]
    on_rollback: list[Callable[[], object]]


new_committed: Final[Callable[[tuple[list[Statement], list[Callable[[], object]]]], Committed]] = partial(
    tuple.__new__, Committed
)
