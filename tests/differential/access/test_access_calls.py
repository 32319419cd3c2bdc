"""DDL by CALL, as users with different rights: a real Tarantool and our server answer alike.

Dropping an index is excluded: 2.6 requires the right to read `_func_index` for it, even of the owner of the
space.
"""

from __future__ import annotations

import pytest

from tests.differential.access.test_access_matrix import Pair, asked, pair
from tests.differential.access.world import REBUILD, SUBJECT, SYSTEM_SPACES
from tests.differential.ddl.system_rows import (
    ALTER,
    CREATE,
    DROP,
    EXECUTE,
    PRIV,
    READ,
    SESSION,
    USAGE,
    WRITE,
    a_privilege,
    call,
    delete,
    insert,
    set_field,
)

__all__ = ["pair"]

UNIVERSE = [SUBJECT, "universe", 0]

CALLS = [
    call("box.schema.user.info"),
    call("box.schema.user.info", "listed_user"),
    call("box.schema.user.info", "owned_user"),
    call("box.schema.role.info", "listed_role"),
    call("box.schema.role.info", "owned_role"),
    *(
        call(f"box.schema.{kind}.exists", name)
        for kind, names in (
            ("user", ("subject", "listed_user", "owned_user", "nobody")),
            ("role", ("listed_role", "owned_role", "public")),
            ("func", ("listed.call", "owned.call")),
        )
        for name in names
    ),
    *(
        call(f"box.space.{name}_space:{method}", *arguments)
        for name in ("listed", "owned")
        for method, *arguments in (
            ("count",),
            ("truncate",),
            ("rename", f"{name}_renamed"),
            ("format", [{"name": "id", "type": "unsigned"}]),
        )
    ),
    call("box.space.listed_renamed:rename", "listed_space"),
    call("box.space.owned_renamed:rename", "owned_space"),
    *(
        call(f"box.space.{name}_space.index.{index}:{method}", *arguments)
        for name in ("listed", "owned")
        for index, method, *arguments in (
            ("second", "rename", "third"),
            ("primary", "len"),
            ("third", "count"),
        )
    ),
    call("box.schema.user.passwd", "secret"),
    call("box.schema.user.passwd", "listed_user", "new"),
    call("box.schema.user.passwd", "owned_user", "new"),
    call("box.schema.user.create", "new_user", {"password": "x"}),
    call("box.schema.user.create", "new_user", {"if_not_exists": True}),
    call("box.schema.role.create", "new_role"),
    call("box.schema.func.create", "new.function"),
    *(
        call(f"box.schema.user.{verb}", user, *what)
        for user in ("new_user", "listed_user", "owned_user")
        for what in (
            ("read", "space", "listed_space"),
            ("read", "space", "owned_space"),
            ("execute", "function", "listed.call"),
            ("execute", "function", "owned.call"),
            ("execute", "role", "listed_role"),
            ("execute", "role", "owned_role"),
            ("owned_role",),
            ("read", "universe"),
            ("usage", "sequence", "owned_sequence"),
        )
        for verb in ("grant", "revoke")
    ),
    call("box.schema.user.disable", "owned_user"),
    call("box.schema.user.enable", "owned_user"),
    call("box.schema.func.drop", "new.function"),
    call("box.schema.func.drop", "listed.call"),
    call("box.schema.func.drop", "owned.call"),
    *(
        call(f"box.schema.{kind}.drop", f"{name}_{kind}")
        for kind in ("role", "user")
        for name in ("new", "listed", "owned")
    ),
    call("box.schema.user.drop", "subject"),
    call("box.space.listed_space:drop"),
    call("box.space.owned_space:drop"),
]


CLEAR = [
    *(delete(PRIV, SUBJECT, "space", space) for space in SYSTEM_SPACES),
    call("box.schema.user.drop", "new_user"),
    call("box.schema.role.drop", "new_role"),
    call("box.schema.func.drop", "new.function"),
    *REBUILD,
]
"""Undoes the effects of the calls."""


@pytest.mark.parametrize("has_system", [False, True])
@pytest.mark.parametrize("rights", [0, READ, WRITE, CREATE, DROP, ALTER, READ | WRITE, CREATE | ALTER | DROP])
def test_definitions_by_call(pair: Pair, rights: int, has_system: bool) -> None:
    system = [insert(PRIV, a_privilege(SUBJECT, "space", space, READ | WRITE)) for space in SYSTEM_SPACES]
    own = [set_field(PRIV, UNIVERSE, 4, SESSION | USAGE | EXECUTE | rights)]
    pair.grant([*own, *(system if has_system else [])])
    try:
        pair.ask(CALLS, CLEAR)
    finally:
        pair.grant([set_field(PRIV, UNIVERSE, 4, SESSION | USAGE)])
        list(asked(pair.admin, CLEAR))
