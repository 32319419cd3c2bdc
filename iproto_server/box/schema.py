"""`box.schema`: DDL in words, carried out as rows of the system spaces.

Source: Tarantool reference, "Submodule box.schema".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iproto_server import codec
from iproto_server.box import catalog as system
from iproto_server.box.access import Privilege
from iproto_server.box.principals import Functions, Roles, Users
from iproto_server.box.space import Space
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.box import Box
    from iproto_server.box.memtx import MemtxSpace

CollationIds = Callable[[str], "int | None"]


def illegal(text: str) -> BoxError:
    """The error 1 for an argument that cannot be used."""
    return BoxError(ErrorCode.ILLEGAL_PARAMS, text)


class Schema:
    """Creating, changing and dropping spaces, indexes, users, roles and functions.

    Parameters:
        box: the box whose schema it is.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        self.user = Users(box)
        self.role = Roles(box)
        self.func = Functions(box)

    # -- spaces --

    def create_space(
        self,
        name: str,
        *,
        format: Sequence[Any] | None = None,
        if_not_exists: bool = False,
        id: int | None = None,
        engine: str = "memtx",
        field_count: int = 0,
        user: str | int | None = None,
        temporary: bool = False,
        is_local: bool = False,
        is_sync: bool = False,
    ) -> Space:
        """Create a space.

        Parameters:
            name: its name.
            format: its fields, each a name, a (name, type) pair or a mapping with "name", "type" and
                "is_nullable"; see `Space.format`.
            if_not_exists: answer the space of that name if there is one, whatever it looks like.
            id: its number; the next free one unless given.
            engine: "memtx" is the only one served.
            field_count: how many fields every row must have; 0: any number.
            user: the owner; the caller unless given.
            temporary: do not log the rows, lose them at a restart.
            is_local: do not replicate the rows.
            is_sync: kept for Tarantool; there are no replicas to wait for.

        Raises:
            BoxError: SPACE_EXISTS (10), CREATE_SPACE (9), NO_SUCH_ENGINE (57) and others.
        """
        if not isinstance(name, str):
            raise illegal("name should be a string")
        box = self._box
        present = box.catalog.find(name)
        if present is not None:
            if if_not_exists:
                return box.space[name]
            raise BoxError(ErrorCode.SPACE_EXISTS, name)
        owner = self._owner(user)
        box.check_universe(Privilege.CREATE, "space", name)
        flags: dict[str, Any] = {}
        if temporary:
            flags["temporary"] = True
        if is_local:
            flags["group_id"] = 1
        if is_sync:
            flags["is_sync"] = True
        row = [
            self._next_space_id() if id is None else id,
            owner,
            name,
            engine,
            field_count,
            flags,
            normalized_format(format or []),
        ]
        rows = self._system(system.SPACE)
        rows.insert(rows.row(row))
        return box.space[name]

    space_create = create_space

    def drop_space(self, space_id: int) -> None:
        """Remove a space with everything that hangs on it."""
        core = self._box.catalog.space(space_id)
        self._check_alter(core, Privilege.DROP)
        with self._box.in_transaction():
            for space, index in (("_priv", 2), ("_truncate", 0), ("_space_sequence", 0)):
                key = ["space", space_id] if space == "_priv" else [space_id]
                rows = self._box.catalog.space_by_name(space)
                for raw in rows.select(index, 0, 0, 2**32 - 1, key):
                    fields = codec.unpack(raw)
                    rows.delete(0, fields[1:4] if space == "_priv" else fields[:1])
                if space == "_priv":
                    for index_id in sorted(core.indexes, reverse=True):
                        self._system(system.INDEX).delete(0, [space_id, index_id])
            self._system(system.SPACE).delete(0, [space_id])

    def rename_space(self, space_id: int, name: str) -> None:
        """Give a space another name."""
        self._alter_space(space_id, "name", name)

    def set_format(self, space_id: int, new_format: Sequence[Any]) -> None:
        """Give a space another format; every stored row must fit it."""
        self._alter_space(space_id, "format", normalized_format(new_format))

    def truncate(self, space_id: int) -> None:
        """Remove every row of a space."""
        core = self._box.catalog.space(space_id)
        self._box.access.check_space(self._box.session.current.credentials, Privilege.WRITE, core)
        rows = self._system(system.TRUNCATE)
        rows.upsert(rows.row([space_id, 1]), rows.parse_operations([("+", 1, 1)]))

    def _alter_space(self, space_id: int, field: str, value: object) -> None:
        core = self._box.catalog.space(space_id)
        self._check_alter(core, Privilege.ALTER)
        rows = self._system(system.SPACE)
        rows.update(0, [space_id], rows.parse_operations([("=", field, value)]))

    def _next_space_id(self) -> int:
        rows = self._system(system.SCHEMA)
        while True:
            row = rows.update(0, ["max_id"], rows.parse_operations([("+", 1, 1)]))
            if row is None:
                top = max(self._box.catalog.spaces)
                row = rows.insert(rows.row(["max_id", max(top, system.SYSTEM_ID_MAX) + 1]))
            space_id: int = row[1]
            if space_id not in self._box.catalog.spaces:
                return space_id

    def _owner(self, user: str | int | None) -> int:
        if user is None:
            return self._box.session.current.credentials.user_id
        if isinstance(user, int):
            return self._box.access.by_id(user).user_id
        return self._box.access.by_name(user).user_id

    # -- indexes --

    def create_index(
        self,
        space_id: int,
        name: str,
        *,
        parts: Sequence[Any] | None = None,
        type: str = "TREE",
        unique: bool = True,
        if_not_exists: bool = False,
        index_id: int | None = None,
        one_based: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> int:
        """Add an index to a space, building it from the rows that are there.

        Parameters:
            space_id: the space.
            name: the index's name.
            parts: its parts, each a field (name or 0-based number), a (field, type) pair or a mapping with
                "field", "type", "is_nullable", "collation"; the first field, unsigned, unless given.
            type: "TREE" or "HASH".
            unique: whether no two rows may have the same key.
            if_not_exists: answer the index of that name if there is one.
            index_id: its number; the next one unless given.
            one_based: count fields from 1, as Lua does.
            options: more of Tarantool's options, kept in `_index`.

        Returns: the index's number.

        Raises:
            BoxError: INDEX_EXISTS (85), MODIFY_INDEX (14), TUPLE_FOUND (3) and others.
        """
        core = self._box.catalog.space(space_id)
        if not isinstance(name, str):
            raise illegal("name should be a string")
        if "." in name:
            raise BoxError(ErrorCode.IDENTIFIER, name)
        for index in core.indexes.values():
            if index.name == name:
                if if_not_exists:
                    return index.id
                raise BoxError(ErrorCode.INDEX_EXISTS, name)
        self._check_alter(core, Privilege.ALTER)
        if index_id is None:
            index_id = max(core.indexes, default=-1) + 1
        if parts is None:
            parts = [[1 if one_based else 0, "unsigned"]]
        part_rows = index_parts(parts, core, one_based, self._box.catalog.collation_id)
        # Tarantool writes the type as it was given, "tree" where none was.
        kind = "tree" if type == "TREE" else type
        row = [space_id, index_id, name, kind, {"unique": unique, **(options or {})}, part_rows]
        rows = self._system(system.INDEX)
        rows.insert(rows.row(row))
        return index_id

    def drop_index(self, space_id: int, index_id: int) -> None:
        """Remove an index."""
        core = self._box.catalog.space(space_id)
        self._check_alter(core, Privilege.ALTER)
        core.index(index_id)
        self._system(system.INDEX).delete(0, [space_id, index_id])

    def rename_index(self, space_id: int, index_id: int, name: str) -> None:
        """Give an index another name."""
        core = self._box.catalog.space(space_id)
        self._check_alter(core, Privilege.ALTER)
        core.index(index_id)
        rows = self._system(system.INDEX)
        rows.update(0, [space_id, index_id], rows.parse_operations([("=", 2, name)]))

    # -- parts of the above --

    def _system(self, space_id: int) -> MemtxSpace:
        return self._box.catalog.spaces[space_id]

    def _check_alter(self, core: MemtxSpace, privilege: Privilege) -> None:
        self._box.access.check_object(
            self._box.session.current.credentials, privilege, "space", core.id, core.name, core.owner
        )


def normalized_format(fields: Sequence[Any]) -> list[dict[str, Any]]:
    """A format the way `_space` holds it: a mapping for every field, with its name and type.

    Raises:
        BoxError: ILLEGAL_PARAMS when a field has no name or is of no known form.
    """
    result = []
    for number, field in enumerate(fields, start=1):
        definition: dict[str, Any] = {}
        if isinstance(field, str):
            definition["name"] = field
        elif isinstance(field, Mapping):
            definition.update(_by_name(field, ("name", "type")))
        elif isinstance(field, list | tuple):
            definition.update(zip(("name", "type"), field, strict=False))
        else:
            raise illegal(f"format[{number}]: name (string) is expected")
        if not isinstance(definition.get("name"), str):
            raise illegal(f"format[{number}]: name (string) is expected")
        definition.setdefault("type", "any")
        if isinstance(definition["type"], str):
            definition["type"] = definition["type"].lower()
        result.append(definition)
    return result


def _by_name(table: Mapping[Any, Any], positional: Sequence[str]) -> dict[str, Any]:
    """A Lua table's items by name: those at 1, 2, … are given the positional names."""
    return {
        positional[key - 1] if isinstance(key, int) and 0 < key <= len(positional) else str(key): value
        for key, value in table.items()
    }


def index_parts(
    parts: Sequence[Any], core: MemtxSpace, one_based: bool, collation_ids: CollationIds
) -> list[Any]:
    """Index parts the way `_index` holds them: `[number, type]` pairs, or maps where a part says more.

    Raises:
        BoxError: ILLEGAL_PARAMS for a part of no known form or a field there is not.
    """
    if not isinstance(parts, list | tuple):
        raise illegal("options.parts should be a table")
    if not parts:
        raise illegal("options.parts must have at least one part")
    flat = all(not isinstance(part, list | tuple | Mapping) for part in parts)
    pairs = list(parts)
    if flat and one_based and len(parts) > 1 and len(parts) % 2 == 0 and isinstance(parts[1], str):
        # Lua's oldest form: {1, 'unsigned', 2, 'string'}.
        pairs = [list(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    definitions = [
        _index_part(part, number, core, one_based, collation_ids)
        for number, part in enumerate(pairs, start=1)
    ]
    if all(set(definition) == {"field", "type"} for definition in definitions):
        return [[definition["field"], definition["type"]] for definition in definitions]
    return definitions


def _index_part(
    part: Any, number: int, core: MemtxSpace, one_based: bool, collation_ids: CollationIds
) -> dict[str, Any]:
    definition: dict[str, Any] = {}
    if isinstance(part, Mapping):
        definition.update(_by_name(part, ("field", "type")))
        field = definition.get("field")
    elif isinstance(part, list | tuple):
        if not part:
            raise illegal(f"options.parts[{number}]: field (name or number) is expected")
        field = part[0]
        if len(part) > 1:
            definition["type"] = part[1]
    else:
        field = part
    format_fields = core.format.fields
    if isinstance(field, str):
        if field not in core.format.names:
            raise illegal(f"options.parts[{number}]: field was not found by name '{field}'")
        field_number = core.format.names[field]
    elif isinstance(field, int) and not isinstance(field, bool):
        field_number = field - 1 if one_based else field
        if field_number < 0:
            raise illegal(f"options.parts[{number}]: field (number) must be one-based")
    else:
        raise illegal(f"options.parts[{number}]: field (name or number) is expected")
    definition["field"] = field_number
    in_format = format_fields[field_number] if field_number < len(format_fields) else None
    if definition.get("type") is None:
        definition["type"] = "scalar" if in_format is None or in_format.type == "any" else str(in_format.type)
    if in_format is not None and in_format.is_nullable and "is_nullable" not in definition:
        definition["is_nullable"] = True
    if isinstance(definition.get("collation"), str):
        collation_id = collation_ids(definition["collation"])
        if collation_id is None:
            raise illegal(
                f"options.parts[{number}]: collation was not found by name '{definition['collation']}'"
            )
        definition["collation"] = collation_id
    return definition
