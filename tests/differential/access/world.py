"""The objects on which rights are compared, and all requests about them.

There are two objects of each kind: admin's, and the subject's own. Definitions are rows of system spaces.
"""

from __future__ import annotations

from tests.differential.ddl.system_rows import (
    ADMIN,
    ALTER,
    COLLATION,
    CREATE,
    DROP,
    EXECUTE,
    FUNC,
    INDEX,
    PRIV,
    PUBLIC,
    READ,
    SEQUENCE,
    SEQUENCE_DATA,
    SESSION,
    SPACE,
    SPACE_SEQUENCE,
    TRUNCATE,
    USAGE,
    USER,
    VCOLLATION,
    VFUNC,
    VINDEX,
    VPRIV,
    VSEQUENCE,
    VSPACE,
    VSPACE_SEQUENCE,
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

SUBJECT, ROLE, OUTER_ROLE = 900, 940, 941
"""The user that has the right, a role through which it has it, and a role through which it has that role."""

RIGHTS = {
    "read": READ,
    "write": WRITE,
    "execute": EXECUTE,
    "session": SESSION,
    "usage": USAGE,
    "create": CREATE,
    "drop": DROP,
    "alter": ALTER,
}
ADMINS = {"space": 820, "function": 960, "sequence": 980, "role": 950, "user": 929}
OWNED = {"space": 821, "function": 962, "sequence": 981, "role": 951, "user": 952}
NOT_DEFINED = 961
NEW = {"space": 830, "index": 5, "function": 970, "sequence": 985, "role": 931, "user": 930}
TARGETS: dict[str, tuple[str, int | str]] = {
    **{f"one {kind}": (kind, object_id) for kind, object_id in ADMINS.items()},
    **{f"every {kind}": (kind, "") for kind in ADMINS},
    "everything": ("universe", 0),
}
WAYS = ("directly", "by a role", "by a role of a role", "without usage")
SYSTEM_SPACES = (SPACE, INDEX, USER, PRIV, FUNC, TRUNCATE, SEQUENCE, SEQUENCE_DATA, SPACE_SEQUENCE)
VIEWS = (VSPACE, VINDEX, VUSER, VPRIV, VFUNC, VSEQUENCE, VCOLLATION, VSPACE_SEQUENCE)


def a_sequence(sequence_id: int, owner: int, name: str) -> list[object]:
    return [sequence_id, owner, name, 1, 1, 2**63 - 1, 1, 0, False]


def things(owner: int, objects: dict[str, int], prefix: str) -> list[Request]:
    """One object of each kind."""
    space = objects["space"]
    return [
        insert(SPACE, a_space(space, owner, f"{prefix}_space")),
        insert(INDEX, an_index(space, 0, "primary")),
        insert(INDEX, an_index(space, 1, "second", options={"unique": False}, parts=[[1, "string"]])),
        insert(FUNC, a_function(objects["function"], owner, f"{prefix}.call")),
        insert(SEQUENCE, a_sequence(objects["sequence"], owner, f"{prefix}_sequence")),
        insert(USER, a_user(objects["role"], owner, f"{prefix}_role", "role")),
        insert(USER, a_user(objects["user"], owner, f"{prefix}_user")),
        replace(space, [1, "one"]),
        replace(space, [2, "two"]),
    ]


WORLD = [
    insert(USER, a_user(SUBJECT, name="subject", auth=SECRET)),
    insert(USER, a_user(ROLE, name="a_role", kind="role")),
    insert(USER, a_user(OUTER_ROLE, name="outer_role", kind="role")),
    insert(PRIV, a_privilege(SUBJECT, "role", PUBLIC, EXECUTE)),
    insert(PRIV, a_privilege(OUTER_ROLE, "role", ROLE, EXECUTE)),
    insert(FUNC, a_function(NOT_DEFINED, name="not.defined")),
    *things(ADMIN, ADMINS, "listed"),
    *things(SUBJECT, OWNED, "owned"),
]

DESTROY = [
    *(
        delete(PRIV, grantee, kind, object_id)
        for grantee in (*(objects["user"] for objects in (ADMINS, OWNED)), ROLE)
        for kind, object_id in (
            *((kind, objects[kind]) for objects in (ADMINS, OWNED) for kind in ADMINS),
            ("role", PUBLIC),
            ("universe", 0),
        )
    ),
    *(delete(SPACE_SEQUENCE, objects["space"]) for objects in (ADMINS, OWNED)),
    *(delete(TRUNCATE, objects["space"]) for objects in (ADMINS, OWNED)),
    *(
        delete(INDEX, objects["space"], index)
        for objects in (ADMINS, OWNED)
        for index in (NEW["index"], 1, 0)
    ),
    *(
        delete(space, objects[kind])
        for objects in (ADMINS, OWNED, NEW)
        for space, kind in ((SPACE, "space"), (FUNC, "function"), (USER, "role"), (USER, "user"))
    ),
    *(
        request
        for objects in (ADMINS, OWNED, NEW)
        for request in (
            delete(SEQUENCE_DATA, objects["sequence"]),
            delete(SEQUENCE, objects["sequence"]),
        )
    ),
]
REBUILD = [*DESTROY, *things(ADMIN, ADMINS, "listed"), *things(SUBJECT, OWNED, "owned")]
"""Undoes the subject's changes of definitions."""
REFILL = [
    request
    for objects in (ADMINS, OWNED)
    for request in (
        delete(SEQUENCE_DATA, objects["sequence"]),
        *(delete(objects["space"], key) for key in (3, 4, 9)),
        *(replace(objects["space"], row) for row in ([1, "one"], [2, "two"])),
    )
]
"""Undoes the subject's changes of rows."""


def rows_of(space: int) -> list[Request]:
    return [
        select(space),
        select(space, "one", index=1),
        insert(space, [3, "three"]),
        insert(space, [1, "one"]),
        insert(space, ["wrong"]),
        replace(space, [1, "eins"]),
        update(space, [1], ["=", 1, "uno"]),
        upsert(space, [1, "un"], ["=", 1, "un"]),
        upsert(space, [9, "un"], ["=", 1, "un"]),
        delete(space, 9),
        delete(space, 1),
        select(space, index=7),
    ]


USE = [
    *(request for view in VIEWS for request in (select(view), select(view, 999))),
    *(
        select(view, name, index=2)
        for view, names in (
            (VSPACE, ("listed_space", "owned_space", "_space", "_vspace")),
            (VUSER, ("subject", "listed_user", "owned_user", "listed_role", "owned_role", "admin", "public")),
            (VFUNC, ("listed.call", "owned.call", "not.defined")),
            (VSEQUENCE, ("listed_sequence", "owned_sequence")),
        )
        for name in names
    ),
    *(select(view, owner, index=1) for view in (VUSER, VPRIV, VSEQUENCE) for owner in (ADMIN, SUBJECT)),
    *(select(VPRIV, kind, object_id, index=2) for kind, object_id in TARGETS.values()),
    *(call(f"box.space.{view}:len") for view in ("_vspace", "_vindex", "_vuser", "_vpriv", "_vsequence")),
    select(COLLATION, 1),
    *(select(space, ADMINS["space"]) for space in (SPACE, INDEX, TRUNCATE, SPACE_SEQUENCE)),
    select(USER, SUBJECT),
    select(PRIV, SUBJECT),
    select(FUNC, ADMINS["function"]),
    select(SEQUENCE, ADMINS["sequence"]),
    select(SEQUENCE_DATA, ADMINS["sequence"]),
    insert(VSPACE, a_space(NEW["space"])),
    delete(VUSER, ADMINS["user"]),
    update(VFUNC, [ADMINS["function"]], ["=", 2, "x"]),
    upsert(VPRIV, a_privilege(ADMINS["user"]), ["=", 4, 1]),
    replace(VSEQUENCE, a_sequence(NEW["sequence"], SUBJECT, "new")),
    *(request for objects in (ADMINS, OWNED) for request in rows_of(objects["space"])),
    *(
        call(name)
        for name in (
            "listed.call",
            "owned.call",
            "unlisted.call",
            "not.defined",
            "neither",
            "box.session.euid",
        )
    ),
    *(
        call(f"box.space.{name}_space:{method}", *arguments)
        for name in ("listed", "owned")
        for method, *arguments in (("select", 1), ("insert", [4, "four"]), ("delete", 4), ("len",))
    ),
    *(
        call(f"box.sequence.{name}_sequence:{method}", *arguments)
        for name in ("listed", "owned")
        for method, *arguments in (("next",), ("set", 5), ("next",), ("reset",))
    ),
    *(insert(space, []) for space in SYSTEM_SPACES),
    *(delete(space, 9999) for space in (SPACE, USER, FUNC, TRUNCATE, SEQUENCE, SPACE_SEQUENCE)),
]
"""The subject's requests with a single right."""


def definitions(objects: dict[str, int], owner: int) -> list[Request]:
    space = objects["space"]
    grantee = objects["user"]
    return [
        insert(INDEX, an_index(space, NEW["index"])),
        set_field(INDEX, [space, 1], 2, "altered"),
        delete(INDEX, space, NEW["index"]),
        set_field(SPACE, [space], 2, f"renamed_{space}"),
        set_field(SPACE, [space], 6, [{"name": "id", "type": "unsigned"}]),
        replace(TRUNCATE, [space, 1]),
        delete(TRUNCATE, space),
        insert(SPACE_SEQUENCE, [space, objects["sequence"], False, 0, ""]),
        delete(SPACE_SEQUENCE, space),
        set_field(SEQUENCE, [objects["sequence"]], 3, 2),
        replace(SEQUENCE_DATA, [objects["sequence"], 5]),
        delete(SEQUENCE_DATA, objects["sequence"]),
        set_field(USER, [grantee], 4, SECRET),
        set_field(USER, [grantee], 2, f"renamed_{grantee}"),
        set_field(USER, [objects["role"]], 2, f"renamed_{objects['role']}"),
        *(
            request
            for kind, object_id in objects.items()
            for grantor in (SUBJECT, ADMIN)
            for request in (
                insert(PRIV, a_privilege(ROLE, kind, object_id, READ, grantor)),
                delete(PRIV, ROLE, kind, object_id),
            )
        ),
        delete(FUNC, objects["function"]),
        delete(SEQUENCE, objects["sequence"]),
        delete(USER, grantee),
        delete(USER, objects["role"]),
        delete(INDEX, space, 0),
        delete(SPACE, space),
        delete(INDEX, space, 1),
        delete(INDEX, space, 0),
        delete(SPACE, space),
    ]


DEFINE = [
    *(
        request
        for owner in (SUBJECT, ADMIN)
        for request in (
            insert(SPACE, a_space(NEW["space"], owner)),
            insert(INDEX, an_index(NEW["space"], 0)),
            delete(INDEX, NEW["space"], 0),
            delete(SPACE, NEW["space"]),
            insert(FUNC, a_function(NEW["function"], owner)),
            delete(FUNC, NEW["function"]),
            insert(SEQUENCE, a_sequence(NEW["sequence"], owner, "new")),
            delete(SEQUENCE, NEW["sequence"]),
            insert(USER, a_user(NEW["user"], owner)),
            delete(USER, NEW["user"]),
            insert(USER, a_user(NEW["role"], owner, kind="role")),
            delete(USER, NEW["role"]),
        )
    ),
    *(
        request
        for bits in (READ, EXECUTE)
        for grantor in (SUBJECT, ADMIN)
        for kind, object_id in (("universe", 0), ("role", PUBLIC))
        for request in (
            insert(PRIV, a_privilege(ROLE, kind, object_id, bits, grantor)),
            delete(PRIV, ROLE, kind, object_id),
        )
    ),
    set_field(USER, [SUBJECT], 4, SECRET),
    *definitions(ADMINS, ADMIN),
    *definitions(OWNED, SUBJECT),
]
"""The subject's requests with access to the system spaces, too.

Nobody but admin may give rights on everything of a kind, and asking for that is left out: 2.6 reads past the
end of a table of words for its answer, in which a space is a "vinyl", or dies of it.
"""
