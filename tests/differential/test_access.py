"""Who may do what: every kind of user makes every kind of request, at a real Tarantool and at ours.

Compared are the answers, errors with their texts included, and of the views the rows that concern these tests
or are there from the beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import StartTarantool
from tests.differential.access_application import LUA
from tests.differential.both import SUPER_GUEST, Both, outcome
from tests.differential.system_rows import (
    ADMIN,
    ALL,
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
    VINDEX,
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
    delete,
    insert,
    replace,
    select,
    set_field,
    update,
    upsert,
)
from tests.iproto_client import AUTH, CALL, FUNCTION_NAME, TUPLE, USER_NAME, Answer, IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool
from tests.running_server import RunningServer

APPLICATION = "tests.differential.access_application:app"
PASSWORD = "secret"
SECRET = {"chap-sha1": "FOZVZ6vbUTXQz9mnCzAywXmknuc="}

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
    """The requests that make users, spaces, functions and grants."""
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
"""What takes back whatever a request of these tests may have done."""


def call(name: str, *arguments: Any) -> Request:
    return Request(CALL, {FUNCTION_NAME: name, TUPLE: list(arguments)})


def requests_of(user_id: int) -> list[Request]:
    """Everything that a user tries."""
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


@dataclass(frozen=True, slots=True)
class Servers:
    """Both servers with the users in them.

    Args:
        ours: Our server.
        theirs: The real Tarantool.
        admin: Connections as guest, who may do everything.
    """

    ours: RunningServer
    theirs: RealTarantool
    admin: Both

    def restore(self) -> None:
        for request in RESTORE:
            for client in (self.admin.ours, self.admin.theirs):
                client.request(request.kind, request.body)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, real_tarantool: StartTarantool) -> Iterator[Servers]:
    theirs = real_tarantool(GUEST_IS_SUPER + LUA)
    with (
        RunningServer(tmp_path_factory.mktemp("access"), [APPLICATION, SUPER_GUEST]) as ours,
        IprotoClient(ours.host, ours.port) as our_client,
        IprotoClient(theirs.host, theirs.port) as their_client,
    ):
        admin = Both(our_client, their_client)
        for request in world():
            assert admin.request(request.kind, request.body).ok, request
        yield Servers(ours, theirs, admin)


@pytest.fixture
def log_in(servers: Servers) -> Iterator[Callable[[str], Both]]:
    """Opens connections of a user to both servers."""
    opened: list[IprotoClient] = []

    def connect(name: str) -> Both:
        clients = [IprotoClient(server.host, server.port) for server in (servers.ours, servers.theirs)]
        opened.extend(clients)
        for client in clients:
            assert authenticate(client, name).ok
        return Both(*clients)

    yield connect
    for client in opened:
        client.close()


def authenticate(client: IprotoClient, name: str) -> Answer:
    once = hashlib.sha1(PASSWORD.encode()).digest()
    salted = hashlib.sha1(client.salt[:20] + hashlib.sha1(once).digest()).digest()
    scramble = bytes(left ^ right for left, right in zip(once, salted, strict=True))
    return client.request(AUTH, {USER_NAME: name, TUPLE: ["chap-sha1", scramble]})


@pytest.mark.parametrize("name", EVERYBODY)
def test_requests(servers: Servers, log_in: Callable[[str], Both], name: str) -> None:
    both = log_in(name)
    for request in requests_of(USERS[name][0]):
        if ask(both, request).ok:
            servers.restore()


@pytest.mark.parametrize("name", EVERYBODY)
def test_views(servers: Servers, log_in: Callable[[str], Both], name: str) -> None:
    both = log_in(name)
    for view in (VSPACE, VINDEX, VUSER, VPRIV, VFUNC, SPACE, INDEX, USER, PRIV, FUNC):
        everything = select(view)
        ours, theirs = (
            client.request(everything.kind, everything.body) for client in (both.ours, both.theirs)
        )
        if theirs.ok:
            assert ours.ok, ours
            assert compared(view, ours.data) == compared(view, theirs.data)
        else:
            assert outcome(ours) == outcome(theirs)
    for request in (
        select(VSPACE, SHARED),
        select(VSPACE, "owned", index=2),
        select(VSPACE, ADMIN, index=5),
        select(VINDEX, SHARED),
        select(VINDEX, OWNED, "primary", index=2),
        select(VUSER, name, index=2),
        select(VUSER, "other", index=2),
        select(VPRIV, USERS[name][0], index=1),
    ):
        ask(both, request)


def ask(both: Both, request: Request) -> Answer:
    """Ask both, and find the same answer."""
    if request.kind == CALL:
        return both.call(request.body[FUNCTION_NAME], *request.body[TUPLE])
    return both.request(request.kind, request.body)


def compared(view: int, rows: Sequence[list[Any]]) -> list[list[Any]]:
    """The rows of a view that must be the same: all, but of `_func` for those that Tarantool brings along."""
    if view in (VFUNC, FUNC):
        return [row for row in rows if row[0] >= LISTED]
    return list(rows)


def test_rights_follow_grants_at_once(servers: Servers, log_in: Callable[[str], Both]) -> None:
    both, admin = log_in("none"), servers.admin
    for request in (
        insert(PRIV, a_privilege(900, "space", SHARED, READ)),
        update(PRIV, [900, "space", SHARED], ["=", 4, READ | WRITE]),
        delete(PRIV, 900, "space", SHARED),
        insert(PRIV, a_privilege(900, "role", TEAM, EXECUTE)),
        delete(PRIV, TEAM, "role", READERS),
        insert(PRIV, a_privilege(TEAM, "role", READERS, EXECUTE)),
        delete(PRIV, 900, "role", TEAM),
        set_field(SPACE, [SHARED], 1, 900),
        set_field(SPACE, [SHARED], 1, ADMIN),
        update(PRIV, [900, "universe", 0], ["=", 4, SESSION]),
        update(PRIV, [900, "universe", 0], ["=", 4, ALL]),
        update(PRIV, [900, "universe", 0], ["=", 4, SESSION | USAGE]),
    ):
        admin.request(request.kind, request.body)
        for attempt in (select(SHARED), replace(SHARED, [1, "one"]), call("listed.call")):
            ask(both, attempt)
