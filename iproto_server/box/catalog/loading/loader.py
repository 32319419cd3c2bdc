"""Loads the rows of a snapshot, then the changes of a log, into a catalog.

Rows were checked when they were stored, so they are loaded without triggers, formats or transactions. Until
the end a space has only its primary index; then each secondary index is built at once. System spaces always
have all indexes, because their rows define the other spaces.

In a snapshot the system spaces come first. Their rows are collected until the first other row and then take
effect together. Later changes of system spaces, DDL in a log, take effect as those of clients do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Final, Self

from iproto_server.box.access.access_control import ADMIN, Credentials, Privilege
from iproto_server.box.catalog.catalog import Catalog
from iproto_server.box.catalog.foreign.advice import advice_about
from iproto_server.box.catalog.foreign.definitions import served_index
from iproto_server.box.catalog.foreign.system_rows import reason_of
from iproto_server.box.catalog.foreign.versions import UNKNOWN, Version
from iproto_server.box.catalog.loading.space_load import (
    Report,
    SpaceLoad,
    duplicate_text,
    refuse,
    row_text,
    row_values,
)
from iproto_server.box.catalog.system_space_ids import (
    CLUSTER,
    COLLATION,
    FUNC,
    INDEX,
    PRIV,
    SCHEMA,
    SEQUENCE,
    SEQUENCE_DATA,
    SPACE,
    SPACE_SEQUENCE,
    SYSTEM_ID_MAX,
    USER,
)
from iproto_server.box.index.factory import parse_index
from iproto_server.box.index.index import Index
from iproto_server.box.memtx.index_build import build_from_primary
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.row_applier import UNFIT, NumberedChanges, SpaceChanges, SystemChanges
from iproto_server.box.memtx.space_format import format_with_indexes
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

_OBJECTS: Final = {"_func": "function", "_user": "user", "_sequence": "sequence"}
_CHUNK: Final = 1024
"""Rows decoded at once; more would cost more in memory than they save."""


class Loader:
    """Fills a catalog. Use as a context manager, and call `finish` at the end.

    Parameters:
        catalog: the catalog; it is cleared.
        report: called for rows that cannot be loaded.
    """

    def __init__(self, catalog: Catalog, report: Report = refuse) -> None:
        self._catalog = catalog
        self._report = report
        self._system_rows: dict[int, list[bytes]] | None = {}
        self._loads: dict[int, SpaceLoad | None] = {}
        self._current_user = catalog.current_user
        loading = Credentials(ADMIN, ADMIN, "admin", False, {})
        loading.universe = int(Privilege.ALL)
        catalog.clear()
        catalog.current_user = lambda: loading
        catalog.is_loading = True
        catalog.written_by = UNKNOWN

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._catalog.current_user = self._current_user
        self._catalog.is_loading = False

    def begin_file(self, version: Version) -> None:
        """Take note of the program that has written the next rows.

        Parameters:
            version: its version.
        """
        self._catalog.written_by = max(self._catalog.written_by, version)

    # -- a snapshot --

    def load(self, space_id: int, rows: Sequence[bytes]) -> None:
        """Add rows of a snapshot.

        Parameters:
            space_id: their space. System spaces must come first.
            rows: the rows; fastest in the order of the primary index.
        """
        if space_id > SYSTEM_ID_MAX:
            space_load = self._load_of(space_id)
            if space_load is not None:
                space_load.add(rows, self._report)
        elif self._system_rows is not None:
            self._system_rows.setdefault(space_id, []).extend(rows)
        else:
            self._load_late(space_id, rows)

    def tree_of(self, space_id: int) -> object:
        """Return the tree to which the next rows of a snapshot can be appended; see `BlockRows.append_to`.

        Parameters:
            space_id: their space. System spaces must come first.

        Returns: a `Tree` of rows; None if `load` must take the rows.
        """
        space_load = self._load_of(space_id) if space_id > SYSTEM_ID_MAX else None
        return None if space_load is None else space_load.tree

    def _load_of(self, space_id: int) -> SpaceLoad | None:
        """Where rows of a user's space go; None if it has no definition."""
        if space_id not in self._loads:
            self.define()
            self._loads[space_id] = self._begin(space_id)
        return self._loads[space_id]

    def _load_late(self, space_id: int, rows: Iterable[bytes]) -> None:
        """Load rows of a system space that come after rows of users' spaces."""
        for raw in rows:
            try:
                SystemChanges(self._catalog.space(space_id)).insert(raw)
            except UNFIT as error:
                self._report(row_text(str(space_id), raw, error))

    def _begin(self, space_id: int) -> SpaceLoad | None:
        space = self._catalog.spaces.get(space_id)
        if space is None or space.primary is None:
            self._report(f"there are rows of space {space_id}, which has no definition")
            return None
        return SpaceLoad(space)

    def define(self) -> None:
        """Apply the collected rows of the system spaces, unless that was done before."""
        rows, self._system_rows = self._system_rows, None
        if rows is None:
            return
        catalog = self._catalog
        replica_set = catalog.replica_set
        # The version of the schema decides how the other rows are read.
        rows[SCHEMA] = self._each("_schema", rows.get(SCHEMA, ()), replica_set.load_setting)
        rows[COLLATION] = self._each("_collation", rows.get(COLLATION, ()), catalog.collations.load)
        rows[SPACE] = self._each("_space", rows.get(SPACE, ()), catalog.definitions.define)
        rows[INDEX] = self._define_indexes(rows.get(INDEX, ()))
        users = catalog.users
        with catalog.access.loading():
            rows[USER] = self._each("_user", rows.get(USER, ()), users.load_user)
            rows[FUNC] = self._each("_func", rows.get(FUNC, ()), users.load_function)
            rows[PRIV] = self._each("_priv", rows.get(PRIV, ()), users.load_privilege)
        sequences = catalog.sequences
        rows[SEQUENCE] = self._each("_sequence", rows.get(SEQUENCE, ()), sequences.load)
        rows[SEQUENCE_DATA] = self._each("_sequence_data", rows.get(SEQUENCE_DATA, ()), sequences.load_value)
        attachments = rows.get(SPACE_SEQUENCE, ())
        rows[SPACE_SEQUENCE] = self._each("_space_sequence", attachments, sequences.load_attachment)
        rows[CLUSTER] = self._each("_cluster", rows.get(CLUSTER, ()), replica_set.load_member)
        for space_id, space_rows in rows.items():
            space_load = self._begin(space_id) if space_rows else None
            if space_load is not None:
                space_load.add(space_rows, self._report)
                space_load.finish(self._report)
                self._complete(space_load.space)
        catalog.set_hooks()

    def _each(self, name: str, rows: Iterable[bytes], take: Callable[[list[Any]], object]) -> list[bytes]:
        """Apply rows one by one, and return those that were accepted."""
        taken = []
        for raw in rows:
            try:
                take(codec.unpack(raw))
            except UNFIT as error:
                self._report(self._refusal(name, raw, error), self.advice(error))
            else:
                taken.append(raw)
        return taken

    def _refusal(self, name: str, raw: bytes, error: BaseException) -> str:
        """The reason why a row of a system space is refused, with the name of its object."""
        what = self._defined_by(name, raw)
        reason = reason_of(error, name, raw)
        return (
            f"a row of space '{name}': {reason}: {row_values(raw)}" if what is None else f"{what}: {reason}"
        )

    def _defined_by(self, name: str, raw: bytes) -> str | None:
        """The object that a row of a system space defines; None for rows that define none."""
        spaces = self._catalog.spaces
        try:
            match name, codec.unpack(raw):
                case "_space", [_, _, str(space_name), *_]:
                    return f"space '{space_name}'"
                case "_index", [int(space_id), _, str(index_name), *_] if space_id in spaces:
                    return f"index '{index_name}' of space '{spaces[space_id].name}'"
                case (("_func" | "_user" | "_sequence"), [_, _, str(own_name), *_]):
                    return f"{_OBJECTS[name]} '{own_name}'"
        except BoxError:
            pass
        return None

    def _define_indexes(self, rows: Iterable[bytes]) -> list[bytes]:
        """Create the indexes of rows of `_index`, and return the rows that were accepted."""
        indexes: dict[int, dict[int, Index]] = {}

        def define(fields: list[Any]) -> None:
            space = self._catalog.space(fields[0])
            of_space = indexes.setdefault(space.id, {})
            try:
                primary = of_space[0] if fields[1] else None
            except KeyError:
                raise BoxError(
                    ErrorCode.ALTER_SPACE, space.name, "can not add a secondary key before primary"
                ) from None
            of_space[fields[1]] = parse_index(
                served_index(fields, None, self._catalog.version_loaded),
                space.name,
                primary,
                self._catalog.collations,
                space.format.fields,
            )

        taken = self._each("_index", rows, define)
        for space_id, of_space in indexes.items():
            space = self._catalog.spaces[space_id]
            space.set_indexes(of_space)
            if space_id > SYSTEM_ID_MAX:
                space.set_format(format_with_indexes(space, of_space, self._catalog.collations))
        return taken

    def end_snapshot(self) -> None:
        """Build the primary indexes at the end of the snapshot."""
        self.define()
        loads, self._loads = self._loads, {}
        for space_load in loads.values():
            if space_load is not None:
                space_load.finish(self._report)

    # -- a log --

    def changes(self, space_id: int) -> SpaceChanges:
        """The applier for changes of a space from a log. It is valid until a system space changes.

        Raises:
            BoxError: NO_SUCH_SPACE (36), or NO_SUCH_INDEX_ID (35) if the space has no primary index.
        """
        space = self._catalog.space(space_id)
        space.primary_index()
        if space_id <= SYSTEM_ID_MAX:
            return SystemChanges(space)
        return SpaceChanges(space) if space.attached is None else NumberedChanges(space, space.attached)

    def about(self, space_id: int | None, raw: bytes | None) -> str:
        """Describe the object of a change, for messages.

        Parameters:
            space_id: the space of the row.
            raw: the new row, if known.

        Returns: the space or index that the row defines, otherwise the row's space.
        """
        if space_id is None:
            return "without a space"
        space = self._catalog.spaces.get(space_id)
        if space is None:
            return f"space {space_id}"
        return (None if raw is None else self._defined_by(space.name, raw)) or f"space '{space.name}'"

    def advice(self, error: BaseException) -> str | None:
        """What to do about a change that raised an error; None if its row may be damaged."""
        return advice_about(error, self._catalog.replica_set.version)

    # -- the end --

    def finish(self) -> None:
        """Build the secondary indexes, the last step of loading."""
        self.end_snapshot()
        for space in self._catalog:
            if space.id > SYSTEM_ID_MAX and space.primary is not None:
                self._complete(space)

    def _complete(self, space: MemtxSpace) -> None:
        """Build the empty secondary indexes of a space."""
        while self._build_secondaries(space):
            for index in space.secondaries:
                index.clear()

    def _build_secondaries(self, space: MemtxSpace) -> bool:
        """Try to build the empty secondary indexes of a space; skip rows that do not fit.

        Returns: True if rows were skipped, so the indexes must be built again.
        """
        primary = space.primary_index()
        others = build_from_primary(space.secondaries, primary)
        space.bsize = primary.values_size()
        if not others:
            return False
        multikeys = [(index, list[bytes](), list[bytes]()) for index in others if index.is_multikey]
        others = [index for index in others if not index.is_multikey]
        secondaries = [(index, list[bytes]()) for index in others]
        keys: list[bytes] = []
        left_out: set[bytes] = set()
        items = iter(primary.items())
        while chunk := list(islice(items, _CHUNK)):
            chunk_keys: Sequence[bytes]
            columns: Sequence[Sequence[bytes]]
            chunk_keys, rows = zip(*chunk, strict=True)
            try:
                decoded = list(map(codec.unpack, rows)) if secondaries or multikeys else []
                columns = [list(map(index.key_of, decoded, chunk_keys)) for index, _ in secondaries]
                for index, index_keys, index_values in multikeys:
                    for fields, key in zip(decoded, chunk_keys, strict=True):
                        made = index.all_keys_of(fields, key)
                        index_keys += made
                        index_values += [key] * len(made)
            except UNFIT:
                chunk_keys, columns = self._one_by_one(space, others, chunk)
                left_out.update({key for key, _ in chunk}.difference(chunk_keys))
            keys += chunk_keys
            for (_, index_keys), column in zip(secondaries, columns, strict=True):
                index_keys += column
        if not left_out:
            for index, index_keys in secondaries:
                for position in index.build(index_keys, keys):
                    self._report(duplicate_text(index, primary.get(keys[position]) or b""))
                    left_out.add(keys[position])
            for index, index_keys, index_values in multikeys:
                for position in index.build(index_keys, index_values):
                    key = index_values[position]
                    if key not in left_out:
                        self._report(duplicate_text(index, primary.get(key) or b""))
                    left_out.add(key)
        for key in left_out:
            primary.remove(key)
        return bool(left_out)

    def _one_by_one(
        self, space: MemtxSpace, secondaries: list[Index], rows: Iterable[tuple[bytes, bytes]]
    ) -> tuple[list[bytes], list[list[bytes]]]:
        """Compute the keys of rows of which at least one does not fit a secondary index.

        Returns: the primary keys of fitting rows, and for each index their keys in it.
        """
        keys: list[bytes] = []
        columns: list[list[bytes]] = [[] for _ in secondaries]
        for key, raw in rows:
            try:
                fields = codec.unpack(raw)
                made = [index.key_of(fields, key) for index in secondaries]
                for index in space.secondaries:
                    if index.is_multikey:
                        index.all_keys_of(fields, key)
            except UNFIT as error:
                self._report(row_text(space.name, raw, error))
                continue
            keys.append(key)
            for column, index_key in zip(columns, made, strict=True):
                column.append(index_key)
        return keys, columns
