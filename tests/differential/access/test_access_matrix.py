"""Every right on every kind of object, granted in every way: the permitted requests on both servers.

One user is granted one right at a time and sends all requests to both servers: rows, calls, and definitions,
which are rows of system spaces. It owns one object of each kind; another belongs to admin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import StartTarantool
from tests.differential.access.application import BOSS_LUA, LUA
from tests.differential.access.test_access import APPLICATION
from tests.differential.access.world import (
    ADMINS,
    DEFINE,
    OUTER_ROLE,
    REBUILD,
    REFILL,
    RIGHTS,
    ROLE,
    SUBJECT,
    SYSTEM_SPACES,
    TARGETS,
    USE,
    WAYS,
    WORLD,
)
from tests.differential.both import SUPER_GUEST, Both, outcome
from tests.differential.ddl.system_rows import (
    EXECUTE,
    FUNC,
    GUEST,
    PRIV,
    READ,
    SESSION,
    USAGE,
    VFUNC,
    WRITE,
    Request,
    a_privilege,
    delete,
    insert,
    replace,
    set_field,
)
from tests.differential.login import authenticate
from tests.iproto_client import CALL, SELECT, SPACE_ID, Answer, IprotoClient
from tests.real_tarantool import GUEST_IS_SUPER, RealTarantool
from tests.running_server import RunningServer

BOSS = "tests.differential.access.application:boss"


@dataclass(frozen=True, slots=True)
class Pair:
    """Both servers.

    Parameters:
        admin: Connections as guest, who may do everything.
        subject: Connections as the subject.
        addresses: Where they listen.
    """

    admin: Both
    subject: Both
    addresses: tuple[str, str]

    def grant(self, requests: Sequence[Request]) -> None:
        """Let admin change rights on both servers."""
        for request, ours, theirs in asked(self.admin, requests):
            assert (ours.ok, theirs.ok) == (True, True), (request, ours, theirs)

    def ask(self, requests: Sequence[Request], restore: Sequence[Request]) -> None:
        """Let the subject send requests, check that the answers are equal, and undo the changes."""
        differences = []
        has_changed = False
        for request, ours, theirs in asked(self.subject, requests):
            has_changed |= theirs.ok and request.kind != SELECT
            if compared(request, ours) != compared(request, theirs):
                differences.append((request, compared(request, ours), compared(request, theirs)))
        if has_changed or differences:
            list(asked(self.admin, restore))
        lines = "\n".join(
            f"{request}\n  ours   {ours}\n  theirs {theirs}" for request, ours, theirs in differences
        )
        assert not differences, lines


def asked(both: Both, requests: Sequence[Request]) -> Iterator[tuple[Request, Answer, Answer]]:
    """Send all requests at once to both, and match the answers."""
    answers = []
    for client in (both.ours, both.theirs):
        syncs = [client.send(request.kind, request.body) for request in requests]
        by_sync = {answer.sync: answer for answer in (client.receive() for _ in syncs)}
        answers.append([by_sync[sync] for sync in syncs])
    return zip(requests, *answers, strict=True)


def compared(request: Request, answer: Answer) -> tuple[object, ...]:
    """What must be the same: of `_vfunc`, without what Tarantool brings along."""
    if answer.ok and request.body.get(SPACE_ID) in (VFUNC, FUNC):
        return (0, [row for row in answer.data if row[0] > 900])
    return outcome(answer, bytewise=request.kind != CALL)


@contextmanager
def connected(
    ours: RunningServer, theirs: RealTarantool, *, admin: str = "", subject: str = ""
) -> Iterator[Pair]:
    """Connect to both servers, as guest or as a user, and create the objects."""
    with ExitStack() as opened:

        def connect(user: str) -> Both:
            clients = [
                opened.enter_context(IprotoClient(server.host, server.port)) for server in (ours, theirs)
            ]
            for client in clients:
                assert not user or authenticate(client, user).ok
            return Both(*clients)

        boss = connect(admin)
        own_rights = insert(PRIV, a_privilege(SUBJECT, "universe", 0, SESSION | USAGE))
        for request, *answers in asked(boss, [*WORLD, own_rights]):
            assert all(answer.ok for answer in answers), (request, answers)
        yield Pair(boss, connect(subject), (ours.address, theirs.address))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, real_tarantool: StartTarantool) -> Iterator[Pair]:
    theirs = real_tarantool(GUEST_IS_SUPER + LUA)
    with (
        RunningServer(tmp_path_factory.mktemp("matrix"), [APPLICATION, SUPER_GUEST]) as ours,
        connected(ours, theirs, subject="subject") as pair,
    ):
        yield pair


class Grants:
    """The rights of the subject: its own on everything, and one more.

    Parameters:
        kind, object_id: What the one is on.
        bits: The right.
        way: How the right is granted.
    """

    def __init__(self, kind: str, object_id: int | str, bits: int, way: str) -> None:
        own = SESSION if way == "without usage" else SESSION | USAGE
        is_direct = way in ("directly", "without usage")
        grantee = SUBJECT if is_direct else ROLE
        if is_direct and kind == "universe":
            own |= bits
        self.given = [set_field(PRIV, [SUBJECT, "universe", 0], 4, own)]
        self.taken = [set_field(PRIV, [SUBJECT, "universe", 0], 4, SESSION | USAGE)]
        if not (is_direct and kind == "universe"):
            self.given.append(insert(PRIV, a_privilege(grantee, kind, object_id, bits)))
            self.taken.append(delete(PRIV, grantee, kind, object_id))
        if not is_direct:
            role = ROLE if way == "by a role" else OUTER_ROLE
            self.given.append(insert(PRIV, a_privilege(SUBJECT, "role", role, EXECUTE)))
            self.taken.append(delete(PRIV, SUBJECT, "role", role))


SYSTEM = [insert(PRIV, a_privilege(SUBJECT, "space", space, READ | WRITE)) for space in SYSTEM_SPACES]
NO_SYSTEM = [delete(PRIV, SUBJECT, "space", space) for space in SYSTEM_SPACES]


@contextmanager
def having(pair: Pair, target: str, bits: int, way: str) -> Iterator[None]:
    """Grant the subject a right within a context."""
    grants = Grants(*TARGETS[target], bits, way)
    pair.grant(grants.given)
    try:
        yield
    finally:
        pair.grant(grants.taken)
        if target == "one role":
            # In 2.6 rights on a role outlive the grant, though not the role.
            list(asked(pair.admin, REBUILD))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_right_to_use(pair: Pair, target: str, way: str) -> None:
    for bits in RIGHTS.values():
        with having(pair, target, bits, way):
            pair.ask(USE, REFILL)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_right_to_define(pair: Pair, target: str, way: str) -> None:
    pair.grant(SYSTEM)
    try:
        for bits in RIGHTS.values():
            with having(pair, target, bits, way):
                pair.ask(DEFINE, REBUILD)
    finally:
        pair.grant(NO_SYSTEM)


def test_no_right(pair: Pair) -> None:
    pair.ask(USE, REFILL)
    pair.ask(DEFINE, REBUILD)
    pair.grant(SYSTEM)
    pair.ask(DEFINE, REBUILD)
    pair.grant(NO_SYSTEM)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", TARGETS)
def test_who_may_have_a_session(pair: Pair, target: str, way: str) -> None:
    grants = Grants(*TARGETS[target], SESSION, way)
    pair.grant(grants.given)
    kept = [set_field(PRIV, [SUBJECT, "universe", 0], 4, USAGE)]
    if not (target == "everything" and way in ("directly", "without usage")):
        pair.grant(kept)
    logins = []
    for address in pair.addresses:
        with IprotoClient.at(address) as client:
            logins.append(outcome(authenticate(client, "subject")))
    pair.grant(grants.taken)
    assert logins[0] == logins[1]


LOOPBACK = "127.0.0.01"
"""For the system 127.0.0.1; for ours, which looks nothing up, a name that others may reach, too."""


@pytest.fixture
def guests(tmp_path: Path, real_tarantool: StartTarantool) -> Iterator[Pair]:
    """Servers on which guest has no rights but its own; there, too, a user who may do everything is admin."""
    theirs = real_tarantool(LUA + BOSS_LUA)
    with (
        RunningServer(tmp_path, [APPLICATION, BOSS], listen=f"{LOOPBACK}:0") as ours,
        connected(ours, theirs, admin="boss") as pair,
    ):
        yield pair


def test_guest(guests: Pair) -> None:
    guests.ask(USE, REFILL)
    guests.ask(DEFINE, REBUILD)
    space, function = ADMINS["space"], ADMINS["function"]
    for kind, object_id, bits in (
        ("space", space, READ | WRITE),
        ("function", function, EXECUTE),
        ("role", ROLE, EXECUTE),
        ("universe", 0, READ),
    ):
        key = [GUEST, kind, object_id]
        rights = SESSION | USAGE | bits if kind == "universe" else bits
        guests.grant([replace(PRIV, a_privilege(GUEST, kind, object_id, rights))])
        guests.ask(USE, REFILL)
        guests.ask(DEFINE, REBUILD)
        guests.grant([delete(PRIV, *key)])
