"""Access control: every kind of user sends every kind of request, to a real Tarantool and to our server.

The answers must be equal, including the texts of errors; of the views, the rows that concern these tests or
exist from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import StartTarantool
from tests.differential.access.application import LUA
from tests.differential.access.subjects import (
    EVERYBODY,
    LISTED,
    OWNED,
    READERS,
    RESTORE,
    SHARED,
    TEAM,
    USERS,
    requests_of,
    world,
)
from tests.differential.both import SUPER_GUEST, Both, outcome
from tests.differential.ddl.system_rows import (
    ADMIN,
    ALL,
    EXECUTE,
    FUNC,
    INDEX,
    PRIV,
    READ,
    SESSION,
    SPACE,
    USAGE,
    USER,
    VFUNC,
    VINDEX,
    VPRIV,
    VSPACE,
    VUSER,
    WRITE,
    Request,
    a_privilege,
    call,
    delete,
    insert,
    replace,
    select,
    set_field,
    update,
)
from tests.differential.login import authenticate
from tests.iproto_client import CALL, FUNCTION_NAME, TUPLE, Answer, IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool
from tests.running_server import RunningServer

APPLICATION = "tests.differential.access.application:app"


@dataclass(frozen=True, slots=True)
class Servers:
    """Both servers with the users in them.

    Parameters:
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
    """Send a request to both servers, and check that the answers are equal."""
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
