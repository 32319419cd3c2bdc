"""`box.schema`: DDL, carried out as changes of the system spaces.

Source: Tarantool reference, "Submodule box.schema".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.functions import Functions
from iproto_server.box.api.ddl.schema_arguments import normalized_format
from iproto_server.box.api.ddl.space_schema import SpaceSchema
from iproto_server.box.api.ddl.users import Roles, Users
from iproto_server.box.api.lua_arguments import illegal
from iproto_server.box.api.sequences import SequenceSchema
from iproto_server.box.api.space import Space, Spaces
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.errors import BoxError, ErrorCode


class Schema(SpaceSchema):
    """Creates, alters and drops spaces, indexes, sequences, users, roles and functions.

    Parameters:
        box: the box.
        spaces: its spaces.
    """

    def __init__(self, box: BoxCore, spaces: Spaces) -> None:
        super().__init__(box)
        self._spaces = spaces
        self.user = Users(box)
        self.role = Roles(box)
        self.func = Functions(box)
        self.sequence = SequenceSchema(box)

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
        temporary: bool | None = None,
        type: str | None = None,
        is_local: bool = False,
        is_sync: bool | None = None,
    ) -> Space:
        """Create a space.

        Parameters:
            name: the name.
            format: the fields, each a name, a (name, type) pair or a mapping with "name", "type" and
                "is_nullable"; see `Space.format`.
            if_not_exists: return an existing space of that name, whatever its definition.
            id: the number; None: the next free one.
            engine: "memtx" is the only one supported.
            field_count: the number of fields of every row; 0: any number.
            user: the owner; None: the caller.
            temporary: do not log rows; they are lost at a restart.
            type: the same as an option of Tarantool 3: "data-temporary" or "normal". It is stored as
                `temporary`, which older versions know as well. "temporary" is not supported.
            is_local: do not replicate rows.
            is_sync: whether changes wait for replicas; not supported.

        Raises:
            BoxError: SPACE_EXISTS (10), CREATE_SPACE (9), NO_SUCH_ENGINE (57) and others.
        """
        if not isinstance(name, str):
            raise illegal("name should be a string")
        if type is not None:
            if temporary is not None:
                raise illegal("only one of 'type' or 'temporary' may be specified")
            if type == "temporary":
                raise BoxError(ErrorCode.UNSUPPORTED, "This server", "temporary definitions of spaces")
            if type not in ("normal", "data-temporary"):
                raise illegal("unknown space type, must be one of: 'data-temporary', 'temporary', 'normal'.")
            temporary = type == "data-temporary"
        box = self._box
        present = box.catalog.find(name)
        if present is not None:
            if if_not_exists:
                return self._spaces[name]
            raise BoxError(ErrorCode.SPACE_EXISTS, name)
        number = self._next_space_id() if id is None else id
        owner = self._owner(user)
        flags: dict[str, Any] = {}
        if temporary is not None and not isinstance(temporary, bool):
            raise illegal("options parameter 'temporary' should be of type boolean")
        if temporary:
            flags["temporary"] = True
        if is_local:
            flags["group_id"] = 1
        if is_sync is not None:
            flags["is_sync"] = is_sync
        row = [
            number,
            owner,
            name,
            engine,
            field_count,
            flags,
            normalized_format(format or [], box.catalog.collation_id),
        ]
        rows = self._box.catalog.writable(system.SPACE)
        rows.insert(rows.row(row))
        return self._spaces[name]

    def _next_space_id(self) -> int:
        rows = self._box.catalog.writable(system.SCHEMA)
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
            return self._box.session.euid()
        rows = self._box.catalog.rows(system.VUSER, 2 if isinstance(user, str) else 0, [user])
        if not rows:
            raise BoxError(ErrorCode.NO_SUCH_USER, user)
        user_id: int = rows[0][0]
        return user_id
