"""DDL of spaces and indexes, carried out as changes of the system spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.schema_arguments import field_number, index_parts, normalized_format
from iproto_server.box.api.ddl.sequence_option import attachment
from iproto_server.box.api.lua_arguments import illegal
from iproto_server.box.api.sequences import SequenceSchema
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.box.catalog.grants import revoke_all
from iproto_server.errors import BoxError, ErrorCode

_DEFAULT_TYPES = {"rtree": "array", "bitset": "unsigned"}


class SpaceSchema:
    """Alters and drops spaces; creates, alters and drops indexes.

    Parameters:
        box: the box.
    """

    def __init__(self, box: BoxCore) -> None:
        self._box = box
        self._sequences = SequenceSchema(box)

    # -- spaces --

    def drop_space(self, space_id: int) -> None:
        """Remove a space with its indexes, its rows and the grants on it."""
        catalog = self._box.catalog
        core = catalog.space(space_id)
        with self._box.in_transaction():
            self._sequences.detach(space_id)
            catalog.constraints.drop_of(space_id)
            for index_id in sorted(core.indexes, reverse=True):
                catalog.writable(system.INDEX).delete(0, [space_id, index_id])
            revoke_all(catalog, "space", space_id)
            catalog.writable(system.TRUNCATE).delete(0, [space_id])
            catalog.writable(system.SPACE).delete(0, [space_id])

    def rename_space(self, space_id: int, name: str) -> None:
        """Rename a space."""
        self._alter_space(space_id, "name", name)

    def set_format(self, space_id: int, new_format: Sequence[Any]) -> None:
        """Set the format of a space; every stored row must fit it."""
        self._alter_space(space_id, "format", normalized_format(new_format, self._box.catalog.collation_id))

    def truncate(self, space_id: int) -> None:
        """Remove every row of a space."""
        self._box.catalog.space(space_id)
        rows = self._box.catalog.writable(system.TRUNCATE)
        rows.upsert(rows.row([space_id, 1]), rows.parse_operations([("+", 1, 1)]))

    def _alter_space(self, space_id: int, field: str, value: object) -> None:
        self._box.catalog.space(space_id)
        rows = self._box.catalog.writable(system.SPACE)
        rows.update(0, [space_id], rows.parse_operations([("=", field, value)]))

    # -- indexes --

    def create_index(
        self,
        space_id: int,
        name: str,
        *,
        parts: Sequence[Any] | None = None,
        type: str = "tree",
        unique: bool | None = None,
        if_not_exists: bool = False,
        index_id: int | None = None,
        one_based: bool = False,
        sequence: object = None,
        options: Mapping[str, object] | None = None,
    ) -> int:
        """Add an index to a space, and build it from the existing rows.

        Parameters:
            space_id: the space.
            name: the index's name.
            parts: its parts, each a field (name or 0-based number), a (field, type) pair or a mapping with
                "field", "type", "is_nullable", "collation" (its name), "path"; by default the first field,
                unsigned. A name may continue as a path: "address.city", "tags[*]".
            type: "tree" or "hash", in any case.
            unique: whether keys are unique, as they are by default.
            if_not_exists: return an existing index of that name.
            index_id: its number; None: the next one.
            one_based: count fields from 1, as Lua does.
            sequence: a sequence whose values replace nil in the primary key: True for one created for the
                space, the name or number of an existing one, or a mapping with "id" and "field"; the field
                is by default the first of the key.
            options: further options of Tarantool, stored in `_index`.

        Returns: the index's number.

        Raises:
            BoxError: INDEX_EXISTS (85), MODIFY_INDEX (14), TUPLE_FOUND (3) and others.
        """
        core = self._box.catalog.space(space_id)
        if not isinstance(name, str):
            raise illegal("name should be a string")
        for index in core.indexes.values():
            if index.name == name:
                if if_not_exists:
                    return index.id
                raise BoxError(ErrorCode.INDEX_EXISTS, name)
        if index_id is None:
            index_id = max(core.indexes, default=-1) + 1
        base = 1 if one_based else 0
        first = 1 if type in ("rtree", "bitset") else 0
        if parts is None:
            kind = _DEFAULT_TYPES.get(type, "unsigned")
            if first < len(core.format_row) and core.format_row[first].get("type", "any") != "any":
                kind = core.format_row[first]["type"]
            parts = [[first + base, kind]]
        if unique is None:
            unique = type not in _DEFAULT_TYPES
        part_rows = index_parts(parts, core.format_row, one_based, self._box.catalog.collation_id)
        row = [space_id, index_id, name, type, {"unique": unique, **(options or {})}, part_rows]

        def resolve(field: Any) -> tuple[int, str | None]:
            return field_number(field, "sequence field", core.format_row, base)

        with self._box.in_transaction():
            attached = attachment(self._box, core, index_id, name, part_rows, sequence, resolve)
            rows = self._box.catalog.writable(system.INDEX)
            rows.insert(rows.row(row))
            if attached is not None:
                rows = self._box.catalog.writable(system.SPACE_SEQUENCE)
                rows.insert(rows.row(attached))
        return index_id

    def alter_index(
        self,
        space_id: int,
        index_id: int,
        *,
        new_id: int | None = None,
        name: str | None = None,
        type: str | None = None,
        parts: Sequence[Any] | None = None,
        sequence: object = None,
        one_based: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Alter an index; it is rebuilt if its keys change.

        Parameters:
            space_id, index_id: the index.
            new_id: refused; the number of an index cannot change.
            name, type, parts, sequence, one_based: as for `create_index`; None: unchanged. False for
                `sequence` detaches the present one.
            options: `unique` and further options of Tarantool; the others keep their values.

        Raises:
            BoxError: MODIFY_INDEX (14), TUPLE_FOUND (3) and others.
        """
        catalog = self._box.catalog
        core = catalog.space(space_id)
        core.index(index_id)
        rows = catalog.writable(system.INDEX)
        if new_id is not None:
            others = {"parts": parts, "sequence": sequence, **(options or {})}
            wrong = "".join(f" {each}" for each, value in others.items() if value is not None)
            if wrong:
                text = f"Don't know how to update both id and{wrong}"
                raise BoxError.with_message(ErrorCode.PROC_LUA, text, type="ClientError")
            rows.update(0, [space_id, index_id], rows.parse_operations([("=", 1, new_id)]))
            return
        row = catalog.rows(system.INDEX, 0, [space_id, index_id])[0]
        part_rows = row[5]
        if parts is not None:
            part_rows = index_parts(parts, core.format_row, one_based, catalog.collation_id)
        new_name = row[2] if name is None else name
        new_row = [space_id, index_id, new_name, type or row[3], {**row[4], **(options or {})}, part_rows]

        def resolve(field: Any) -> tuple[int, str | None]:
            return field_number(field, "sequence field", core.format_row, 1 if one_based else 0)

        with self._box.in_transaction():
            attached = None
            if sequence is not None:
                if index_id == 0:
                    self._sequences.detach(space_id)
                attached = attachment(self._box, core, index_id, new_name, part_rows, sequence, resolve)
            rows.replace(rows.row(new_row))
            if attached is not None:
                rows = catalog.writable(system.SPACE_SEQUENCE)
                rows.insert(rows.row(attached))

    def drop_index(self, space_id: int, index_id: int) -> None:
        """Remove an index."""
        core = self._box.catalog.space(space_id)
        core.index(index_id)
        with self._box.in_transaction():
            if index_id == 0:
                self._sequences.detach(space_id)
            self._box.catalog.writable(system.INDEX).delete(0, [space_id, index_id])

    def rename_index(self, space_id: int, index_id: int, name: str) -> None:
        """Rename an index."""
        core = self._box.catalog.space(space_id)
        core.index(index_id)
        rows = self._box.catalog.writable(system.INDEX)
        rows.update(0, [space_id, index_id], rows.parse_operations([("=", 2, name)]))
