"""Users of every kind, their rights, and all their requests."""

from __future__ import annotations

from tests.differential.ddl.system_rows import (
    ADMIN,
    ALTER,
    CREATE,
    DROP,
    EXECUTE,
    FUNC,
    INDEX,
    PRIV,
    PUBLIC,
    READ,
    SESSION,
    SPACE,
    SUPER,
    TRUNCATE,
    USAGE,
    USER,
    VFUNC,
    VPRIV,
    VSPACE,
    VUSER,
    WRITE,
    Request,
    a_function,
    a_privilege,
    a_space,
    a_user,
    an_index,
    call,
    delete,
    insert,
    replace,
    select,
    set_field,
    update,
    upsert,
)
from tests.differential.login import SECRET

SHARED, OWNED = 820, 821
"""A space of admin's, and one of the user "owner"."""
NEW_SPACE, NEW_INDEX, NEW_USER, NEW_FUNCTION = 830, 5, 930, 970
LISTED, NOT_DEFINED = 960, 961
"""A function that there is, and one that is in `_func` only."""
READERS, TEAM = 940, 941
OWNER, OTHER = 901, 929

Grant = tuple[str, int | str, int]
"""Object type, object id, rights."""

SYSTEM_TABLES: list[Grant] = [
    ("space", space, READ | WRITE) for space in (SPACE, INDEX, USER, PRIV, FUNC, TRUNCATE)
]

USERS: dict[str, tuple[int, list[Grant]]] = {
    "none": (900, []),
    "owner": (OWNER, []),
    "reader": (902, [("space", SHARED, READ)]),
    "writer": (903, [("space", SHARED, WRITE)]),
    "reader and writer": (904, [("space", SHARED, READ | WRITE)]),
    "of everything": (905, [("universe", 0, READ | WRITE)]),
    "of every space": (906, [("space", "", READ | WRITE)]),
    "caller": (907, [("function", LISTED, EXECUTE), ("function", NOT_DEFINED, EXECUTE)]),
    "caller of every function": (908, [("function", "", EXECUTE)]),
    "caller of everything": (909, [("universe", 0, EXECUTE)]),
    "by a role": (910, [("role", READERS, EXECUTE)]),
    "by a role of a role": (911, [("role", TEAM, EXECUTE)]),
    "reader of system spaces": (912, [(kind, space, READ) for kind, space, _ in SYSTEM_TABLES]),
    "writer of system spaces": (913, SYSTEM_TABLES),
    "alterer": (914, [*SYSTEM_TABLES, ("space", SHARED, ALTER)]),
    "dropper": (915, [*SYSTEM_TABLES, ("space", SHARED, DROP), ("user", OTHER, DROP)]),
    "creator": (916, [*SYSTEM_TABLES, ("space", "", CREATE), ("user", "", CREATE), ("function", "", CREATE)]),
    "creator of everything": (917, [("universe", 0, READ | WRITE | EXECUTE | CREATE)]),
    "superuser": (918, [("role", SUPER, EXECUTE)]),
    "without usage": (919, [("space", SHARED, READ | WRITE), ("function", LISTED, EXECUTE)]),
}
EVERYBODY = sorted(USERS)


def login_rights(name: str) -> int:
    return SESSION if name == "without usage" else SESSION | USAGE


def world() -> list[Request]:
    """The requests that create users, spaces, functions and grants."""
    requests = [
        insert(USER, a_user(OTHER, name="other")),
        insert(USER, a_user(READERS, name="readers", kind="role")),
        insert(USER, a_user(TEAM, name="team", kind="role")),
    ]
    for name, (user_id, _) in USERS.items():
        requests += [
            insert(USER, a_user(user_id, name=name, auth=SECRET)),
            insert(PRIV, a_privilege(user_id, "universe", 0, login_rights(name))),
            insert(PRIV, a_privilege(user_id, "user", user_id, ALTER)),
            insert(PRIV, a_privilege(user_id, "role", PUBLIC, EXECUTE)),
        ]
    for space, owner, name in ((SHARED, ADMIN, "shared"), (OWNED, OWNER, "owned")):
        requests += [
            insert(SPACE, a_space(space, owner, name)),
            insert(INDEX, an_index(space, 0, "primary")),
            insert(INDEX, an_index(space, 1, "second", options={"unique": False}, parts=[[1, "string"]])),
            insert(space, [1, "one"]),
            insert(space, [2, "two"]),
        ]
    requests += [
        insert(FUNC, a_function(LISTED, name="listed.call")),
        insert(FUNC, a_function(NOT_DEFINED, OWNER, name="not.defined")),
        insert(PRIV, a_privilege(READERS, "space", SHARED, READ)),
        insert(PRIV, a_privilege(READERS, "function", LISTED, EXECUTE)),
        insert(PRIV, a_privilege(TEAM, "role", READERS, EXECUTE)),
        insert(PRIV, a_privilege(TEAM, "space", SHARED, WRITE)),
    ]
    for name, (user_id, grants) in USERS.items():
        for object_type, object_id, rights in grants:
            if object_type == "universe":
                key = [user_id, "universe", 0]
                requests.append(set_field(PRIV, key, 4, rights | login_rights(name)))
            else:
                requests.append(insert(PRIV, a_privilege(user_id, object_type, object_id, rights)))
    return requests


RESTORE = [
    *(delete(PRIV, OTHER, "space", space) for space in (SHARED, OWNED)),
    *(delete(PRIV, OTHER, kind, object_id) for kind, object_id in (("role", READERS), ("universe", 0))),
    delete(PRIV, OTHER, "function", NOT_DEFINED),
    delete(PRIV, OTHER, "role", PUBLIC),
    delete(INDEX, SHARED, NEW_INDEX),
    delete(INDEX, OWNED, NEW_INDEX),
    delete(SPACE, NEW_SPACE),
    delete(USER, NEW_USER),
    delete(FUNC, NEW_FUNCTION),
    *(delete(space, 3) for space in (SHARED, OWNED)),
    *(replace(space, row) for space in (SHARED, OWNED) for row in ([1, "one"], [2, "two"])),
    *(delete(TRUNCATE, space) for space in (SHARED, OWNED)),
    replace(SPACE, a_space(SHARED, ADMIN, "shared")),
    replace(SPACE, a_space(OWNED, OWNER, "owned")),
    insert(PRIV, a_privilege(READERS, "space", SHARED, READ)),
    insert(USER, a_user(OTHER, name="other")),
]
"""Undoes the effects of all requests of these tests."""


def requests_of(user_id: int) -> list[Request]:
    """Return all requests of a user."""
    return [
        *(request for space in (SHARED, OWNED) for request in data_requests(space)),
        call("listed.call"),
        call("unlisted.call"),
        call("not.defined"),
        call("neither.listed.nor.defined"),
        *(
            call(f"box.space.{name}:{method}", *arguments)
            for name in ("shared", "owned", "_space")
            for method, *arguments in (("select", SHARED), ("get", SHARED), ("len",))
        ),
        *(
            call(f"box.space.{name}:{method}", *arguments)
            for name in ("shared", "owned")
            for method, *arguments in (
                ("insert", [3, "three"]),
                ("update", 1, [["=", 2, "x"]]),
                ("delete", 1),
                ("truncate",),
            )
        ),
        *(definition for space in (SHARED, OWNED) for definition in definitions(space, user_id)),
        insert(SPACE, a_space(NEW_SPACE, user_id)),
        insert(SPACE, a_space(NEW_SPACE, ADMIN)),
        insert(USER, a_user(NEW_USER, user_id)),
        insert(USER, a_user(NEW_USER, ADMIN, kind="role")),
        set_field(USER, [OTHER], 4, SECRET),
        set_field(USER, [OTHER], 4, {}),
        set_field(USER, [user_id], 4, SECRET),
        delete(USER, OTHER),
        insert(FUNC, a_function(NEW_FUNCTION, user_id)),
        delete(FUNC, NOT_DEFINED),
        insert(PRIV, a_privilege(OTHER, "universe", 0, READ, user_id)),
        insert(PRIV, a_privilege(OTHER, "function", NOT_DEFINED, EXECUTE, user_id)),
        insert(PRIV, a_privilege(OTHER, "role", READERS, EXECUTE, user_id)),
        insert(PRIV, a_privilege(OTHER, "role", PUBLIC, EXECUTE, user_id)),
        delete(PRIV, READERS, "space", SHARED),
        insert(VSPACE, a_space(NEW_SPACE, user_id)),
        delete(VUSER, OTHER),
        update(VFUNC, [LISTED], ["=", 2, "x"]),
        upsert(VPRIV, a_privilege(OTHER), ["=", 4, 1]),
    ]


def data_requests(space: int) -> list[Request]:
    return [
        select(space),
        select(space, 1),
        select(space, "one", index=1),
        select(space, index=7),
        insert(space, [3, "three"]),
        insert(space, [1, "one"]),
        insert(space, ["wrong"]),
        replace(space, [1, "eins"]),
        update(space, [1], ["=", 1, "uno"]),
        update(space, [1], ["?", 1, "uno"]),
        upsert(space, [1, "un"], ["=", 1, "un"]),
        delete(space, 1),
        delete(space, 9),
    ]


def definitions(space: int, user_id: int) -> list[Request]:
    return [
        insert(INDEX, an_index(space, NEW_INDEX)),
        set_field(INDEX, [space, 1], 2, "second"),
        set_field(SPACE, [space], 2, "renamed"),
        set_field(SPACE, [space], 2, "_space"),
        delete(SPACE, space),
        delete(INDEX, space, 0),
        replace(TRUNCATE, [space, 1]),
        insert(TRUNCATE, [space, 1]),
        insert(PRIV, a_privilege(OTHER, "space", space, READ, user_id)),
        insert(PRIV, a_privilege(OTHER, "space", space, READ, ADMIN)),
    ]
