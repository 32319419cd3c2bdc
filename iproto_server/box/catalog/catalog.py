"""The catalog: all spaces, as defined by the rows of the system spaces.

DDL is DML on the system spaces: inserting a row into `_space` creates a space. Hooks check each row, apply
its effect, and return a function that reverts it, so DDL rolls back like any other change. A new catalog has
the rows of a freshly bootstrapped Tarantool 2.6 (`bootstrap.json`), so the directories are interchangeable.
"""

from __future__ import annotations

from iproto_server.box.access.access_control import AccessControl
from iproto_server.box.catalog.collation_catalog import CollationCatalog
from iproto_server.box.catalog.constraint_catalog import ConstraintCatalog
from iproto_server.box.catalog.index_catalog import IndexCatalog
from iproto_server.box.catalog.replica_set import ReplicaSet
from iproto_server.box.catalog.sequence_catalog import SequenceCatalog
from iproto_server.box.catalog.space_catalog import SpaceCatalog
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import (
    COLLATION,
    FUNC,
    INDEX,
    PRIV,
    SEQUENCE,
    SEQUENCE_DATA,
    SPACE,
    SPACE_SEQUENCE,
    TRUNCATE,
    USER,
)
from iproto_server.box.catalog.user_catalog import UserCatalog
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.codec import msgpack as codec


class Catalog(SpaceRegistry):
    """All spaces, and the effects of the rows of each system space.

    A new catalog is empty until a `Loader` fills it.

    Parameters:
        transactions: the transaction manager that every space reports to.
        access: users and privileges, kept in step with `_user` and `_priv`.

    Attributes:
        definitions, indexes, users, collations, sequences, constraints, replica_set: the effects of the rows
            of one or more system spaces each.
    """

    __slots__ = (
        "collations",
        "constraints",
        "definitions",
        "indexes",
        "replica_set",
        "sequences",
        "users",
    )

    def __init__(self, transactions: TransactionManager, access: AccessControl) -> None:
        super().__init__(access)
        self.collations = CollationCatalog(self)
        self.sequences = SequenceCatalog(self)
        self.constraints = ConstraintCatalog(self)
        self.users = UserCatalog(self, self.sequences)
        self.definitions = SpaceCatalog(self, transactions, self.collations, self.sequences, self.constraints)
        self.indexes = IndexCatalog(self, self.collations, self.constraints)
        self.replica_set = ReplicaSet(self)

    def clear(self) -> None:
        """Remove all spaces, functions and other effects of system rows."""
        for space in self:
            self.forget(space)
            space.is_dropped = True
        self.users.functions.clear()
        self.collations.clear()
        self.sequences.clear()
        self.users.setuid.clear()

    def set_hooks(self) -> None:
        """Apply the effects of changes of the system spaces from now on."""
        for space_id, hook in (
            (SPACE, self.definitions.space_changed),
            (INDEX, self.indexes.changed),
            (TRUNCATE, self.definitions.truncate_changed),
            (COLLATION, self.collations.changed),
            (USER, self.users.user_changed),
            (PRIV, self.users.privilege_changed),
            (FUNC, self.users.function_changed),
            (SEQUENCE, self.sequences.sequence_changed),
            (SEQUENCE_DATA, self.sequences.data_changed),
            (SPACE_SEQUENCE, self.sequences.attachment_changed),
            *self.constraints.hooks().items(),
            *self.replica_set.hooks().items(),
        ):
            if space_id in self.spaces:
                self.spaces[space_id].system_hook = hook

    @staticmethod
    def load(space: MemtxSpace, raw: bytes) -> None:
        """Store a valid row without hooks, triggers or log."""
        fields = codec.unpack(raw)
        assert space.primary is not None
        space.exchange(space.primary.key_of(fields, b""), raw)
