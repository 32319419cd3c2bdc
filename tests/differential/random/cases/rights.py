"""Access control: requests of users with and without rights, while rights, roles and owners change."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tests.differential.access.subjects import (
    EVERYBODY,
    LISTED,
    NOT_DEFINED,
    OTHER,
    OWNED,
    READERS,
    SHARED,
    TEAM,
    USERS,
    requests_of,
    world,
)
from tests.differential.ddl import system_rows
from tests.differential.ddl.system_rows import (
    ADMIN,
    FUNC,
    PRIV,
    SESSION,
    SPACE,
    USAGE,
    VFUNC,
    VINDEX,
    VPRIV,
    VSPACE,
    VUSER,
    a_privilege,
    delete,
    insert,
    replace,
    select,
    set_field,
    update,
)
from tests.differential.random.cases.definitions import definitions_from
from tests.differential.random.request import Request
from tests.differential.random.values.draws import Draws, sequence
from tests.iproto_client import PING

WORLD: Final = tuple(map(Request.of, world()))
"""The requests that create users with different rights, and the objects of these rights."""

_ROWS: Final = [
    *(replace(space, row) for space in (SHARED, OWNED) for row in ([1, "one"], [2, "two"])),
    *(delete(space, 3) for space in (SHARED, OWNED)),
]
_GRANTED: Final[list[tuple[str, list[Any]]]] = [
    ("space", [SHARED, OWNED, "", SPACE, PRIV, VSPACE]),
    ("function", [LISTED, NOT_DEFINED, ""]),
    ("role", [READERS, TEAM]),
    ("universe", [0]),
    ("user", [OTHER, ""]),
]
_RIGHTS: Final = [1, 2, 3, 4, 7, 32, 64, 128, 255, 2**32 - 1, 16, 8, 24]


def case(draws: Draws) -> list[Request]:
    """Draw requests of a few users, and changes of their rights in between."""
    names = draws.sample(EVERYBODY, 1 + draws.below(3))

    def step(each: Draws) -> Request:
        if each.rarely(3):
            return Request.of(_change(each, USERS[each.pick(names)][0]))
        name = each.pick(names)
        return Request.of(each.pick(_requests(name)), name)

    # without the right to a session a user cannot log in, so all do so at the beginning
    return [
        *(Request(PING, user=name) for name in names),
        *map(Request.of, _ROWS),
        *sequence(draws, step),
        *definitions_from(800),
    ]


@cache
def _requests(name: str) -> list[system_rows.Request]:
    views = [
        *(select(view) for view in (VSPACE, VINDEX, VUSER, VPRIV)),
        *(select(VFUNC, function) for function in (LISTED, NOT_DEFINED)),
        *(select(space) for space in (SPACE, PRIV)),
    ]
    return [*requests_of(USERS[name][0]), *views]


def _change(draws: Draws, user_id: int) -> system_rows.Request:
    """Draw a change of the rights of a user or role, or of the owner of an object."""
    grantee = draws.pick([user_id, user_id, READERS, TEAM])
    object_type, objects = draws.pick(_GRANTED)
    object_id = draws.pick(objects)
    rights = draws.pick(_RIGHTS)
    if object_type == "universe":
        rights |= draws.pick([SESSION | USAGE, SESSION | USAGE, SESSION, 0])
    if object_type == "role":
        row = a_privilege(grantee, object_type, object_id, draws.pick([4, 4, 4, 1]))
        return insert(PRIV, row) if draws.below(3) else delete(PRIV, grantee, object_type, object_id)
    match draws.below(8):
        case 0 | 1:
            return insert(PRIV, a_privilege(grantee, object_type, object_id, rights))
        case 2:
            return replace(PRIV, a_privilege(grantee, object_type, object_id, rights))
        case 3:
            return update(PRIV, [grantee, object_type, object_id], [draws.pick("=|&^"), 4, rights])
        case 4 | 5:
            return delete(PRIV, grantee, object_type, object_id)
        case 6:
            return set_field(SPACE, [draws.pick([SHARED, OWNED])], 1, draws.pick([user_id, ADMIN, OTHER]))
        case _:
            return set_field(FUNC, [draws.pick([LISTED, NOT_DEFINED])], 1, draws.pick([user_id, ADMIN]))
