"""`box.schema.func`: registered procedures, on which privileges can be granted.

Source: Tarantool reference, "box.schema.func".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.lua_arguments import lua_text
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.box.catalog.foreign.system_rows import with_later_fields
from iproto_server.box.catalog.grants import revoke_all
from iproto_server.errors import BoxError, ErrorCode

_BY_NAME = 2


class Functions:
    """`box.schema.func`.

    Parameters:
        box: the box.
    """

    def __init__(self, box: BoxCore) -> None:
        self._box = box

    def exists(self, name: str | int) -> bool:
        """Whether `_func` has the name and the caller may see it."""
        return self._id(name) is not None

    def create(
        self,
        name: str,
        *,
        setuid: bool = False,
        if_not_exists: bool = False,
        language: str = "LUA",
        body: str = "",
        is_deterministic: bool = False,
        is_sandboxed: bool = False,
        is_multikey: bool = False,
        param_list: Sequence[str] = (),
        returns: str = "any",
        aggregate: str = "none",
        exports: Sequence[str] = ("LUA",),
        comment: str = "",
    ) -> None:
        """Register a procedure's name, so that privileges on it can be granted.

        Parameters:
            name: the name that clients call.
            setuid: run it with the rights of its owner, the present caller.
            if_not_exists: do nothing if the function exists.
            language: "LUA", for functions of Python, too, or "C".
            body: the text of a function of Lua; without Lua it is stored only.
            is_deterministic, is_multikey: stored for functional indexes.
            is_sandboxed: whether the body sees a part of Lua's globals only.
            param_list, returns, aggregate, exports, comment: stored for SQL.

        Raises:
            BoxError: FUNCTION_EXISTS (52), ACCESS_DENIED (42).
        """
        if self._box.catalog.rows(system.VFUNC, _BY_NAME, [name]):
            if if_not_exists:
                return
            raise BoxError(ErrorCode.FUNCTION_EXISTS, name)
        box = self._box
        # The new id is one above the greatest, which the caller must be allowed to see.
        box.access.check_space(
            box.session.current.credentials, Privilege.READ, box.catalog.space(system.FUNC)
        )
        rows = box.catalog.writable(system.FUNC)
        function_id = box.catalog.next_id(system.FUNC)
        row: list[Any] = [function_id, self._box.session.euid(), name, int(setuid), language.upper(), body]
        row += ["function", list(param_list), returns, aggregate, "none", is_deterministic, is_sandboxed]
        row += [True, list(exports), {"is_multikey": True} if is_multikey else {}, comment]
        now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        rows.insert(rows.row(with_later_fields([*row, now, now], rows.format)))

    def drop(self, name: str | int, *, if_exists: bool = False) -> None:
        """Remove a function and the grants on it. Raises BoxError NO_SUCH_FUNCTION (51)."""
        function_id = self._id(name)
        if function_id is None:
            if if_exists:
                return
            raise BoxError(ErrorCode.NO_SUCH_FUNCTION, lua_text(name))
        with self._box.in_transaction():
            revoke_all(self._box.catalog, "function", function_id)
            self._box.catalog.writable(system.FUNC).delete(0, [function_id])

    def _id(self, name: object) -> int | None:
        if name is None:
            return None
        rows = self._box.catalog.rows(system.VFUNC, _BY_NAME if isinstance(name, str) else 0, [name])
        return rows[0][0] if rows else None
