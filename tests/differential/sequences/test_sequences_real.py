"""Sequences on a real Tarantool and on our server: definitions, values, numbered spaces, rights.

Excluded, as deliberately different:

- `set` with a number beyond 64 signed bits: Tarantool wraps it around, ours refuses it.
- In Tarantool, changes of a failed CALL persist; here a CALL is one transaction.
- `box.sequence.NAME.next` without a colon, and `box.sequence.NAME` alone: Lua's errors about a call.
- A path that is none, as `.a[`: Tarantool 2.6.0 attaches a sequence there, which then does nothing.
- `grant` on all sequences by somebody who may not: Tarantool 2.6.0 writes what is not its own into the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conftest import StartTarantool
from tests.differential.both import SUPER_GUEST, Both
from tests.differential.ddl.system_rows import (
    ALTER,
    CREATE,
    DROP,
    PRIV,
    READ,
    SEQUENCE,
    SEQUENCE_DATA,
    SESSION,
    SPACE,
    SPACE_SEQUENCE,
    USAGE,
    VSEQUENCE,
    WRITE,
    Request,
    a_privilege,
    a_sequence,
    call,
    delete,
    insert,
    replace,
    select,
    set_field,
    upsert,
)
from tests.differential.login import authenticate
from tests.differential.sequences.numbering_cases import ATTACHMENTS, INDEXES, PATHS, ROWS
from tests.differential.sequences.sequence_cases import CREATIONS, DEFINITIONS, GRANTS, VALUES
from tests.differential.sequences.sequence_world import (
    ANN,
    ANNS,
    CURRENT_UP,
    DOWN,
    NEW,
    NEXT_UP,
    PLAIN,
    ROUND,
    SECOND,
    UP,
    WORLD,
    World,
    ask,
    attach,
    clear,
)
from tests.iproto_client import (
    IprotoClient,
)
from tests.real_tarantool import GUEST_IS_SUPER
from tests.running_server import RunningServer


@pytest.fixture(scope="module")
def addresses(
    tmp_path_factory: pytest.TempPathFactory, real_tarantool: StartTarantool
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    theirs = real_tarantool(GUEST_IS_SUPER)
    with RunningServer(tmp_path_factory.mktemp("sequences"), [SUPER_GUEST]) as ours:
        yield (ours.host, ours.port), (theirs.host, theirs.port)


@pytest.fixture
def connect(
    addresses: tuple[tuple[str, int], tuple[str, int]],
) -> Iterator[Callable[[], Both]]:
    """Connect to both servers as guest."""
    opened: list[IprotoClient] = []

    def connection() -> Both:
        clients = [IprotoClient(*address) for address in addresses]
        opened.extend(clients)
        return Both(*clients)

    yield connection
    for client in opened:
        client.close()


@pytest.fixture
def world(connect: Callable[[], Both]) -> Iterator[World]:
    world = World(connect())
    for client in (world.admin.ours, world.admin.theirs):
        clear(client)
    for request in WORLD:
        assert ask(world.admin, request).ok, request
    yield world
    for client in (world.admin.ours, world.admin.theirs):
        clear(client)


def log_in(both: Both, name: str) -> Both:
    for client in (both.ours, both.theirs):
        assert authenticate(client, name).ok
    return both


CASES = [
    pytest.param(case, id=f"{name} {number}")
    for name, cases in (
        ("definition", DEFINITIONS),
        ("value", VALUES),
        ("creation", CREATIONS),
        ("attachment", ATTACHMENTS),
        ("row", ROWS),
        ("path", PATHS),
        ("index", INDEXES),
        ("grant", GRANTS),
    )
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize("case", CASES)
def test_requests(world: World, case: list[Request]) -> None:
    before = world.versions()
    world.ask(*case)
    ours, theirs = (late - early for early, late in zip(before, world.versions(), strict=True))
    assert ours == theirs, f"the schema's version rose by {ours}, not {theirs}"
    world.compare_rows()


RIGHTS: dict[str, list[Request]] = {
    "none": [],
    "write on the spaces": [],
    "write on the sequence": [insert(PRIV, a_privilege(ANN, "sequence", UP, WRITE))],
    "read on the sequence": [insert(PRIV, a_privilege(ANN, "sequence", UP, READ))],
    "usage on the sequence": [insert(PRIV, a_privilege(ANN, "sequence", UP, USAGE))],
    "read and write on the sequence": [insert(PRIV, a_privilege(ANN, "sequence", UP, READ | WRITE))],
    "write on all sequences": [insert(PRIV, a_privilege(ANN, "sequence", "", WRITE))],
    "everything on all sequences": [
        insert(PRIV, a_privilege(ANN, "sequence", "", READ | WRITE | CREATE | DROP | ALTER | USAGE))
    ],
    "alter and drop on the sequence": [insert(PRIV, a_privilege(ANN, "sequence", UP, ALTER | DROP))],
    "create on all sequences": [insert(PRIV, a_privilege(ANN, "sequence", "", CREATE))],
    "no usage": [set_field(PRIV, [ANN, "universe", 0], 4, SESSION)],
    "no usage but write on all sequences": [
        set_field(PRIV, [ANN, "universe", 0], 4, SESSION),
        insert(PRIV, a_privilege(ANN, "sequence", "", WRITE | USAGE)),
    ],
    "alter on the space": [insert(PRIV, a_privilege(ANN, "sequence", UP, READ | WRITE))],
    "the space's owner": [
        set_field(SPACE, [PLAIN], 1, ANN),
        insert(PRIV, a_privilege(ANN, "sequence", UP, READ | WRITE)),
    ],
    "execute everything": [set_field(PRIV, [ANN, "universe", 0], 4, SESSION | USAGE | 4)],
    "execute everything and write on the sequence": [
        set_field(PRIV, [ANN, "universe", 0], 4, SESSION | USAGE | 4),
        insert(PRIV, a_privilege(ANN, "sequence", UP, WRITE)),
    ],
    "execute everything, create": [
        set_field(PRIV, [ANN, "universe", 0], 4, SESSION | USAGE | 4 | CREATE),
    ],
    "execute, read, write and create everything": [
        set_field(PRIV, [ANN, "universe", 0], 4, SESSION | USAGE | 4 | CREATE | READ | WRITE),
    ],
}


@pytest.mark.parametrize("is_generated", [False, True])
@pytest.mark.parametrize("rights", RIGHTS)
def test_rights(world: World, connect: Callable[[], Both], rights: str, is_generated: bool) -> None:
    world.ask(*RIGHTS[rights])
    if rights != "none":
        spaces = [PLAIN, SECOND, SEQUENCE, SEQUENCE_DATA, SPACE_SEQUENCE]
        bits = [WRITE | (ALTER if space == PLAIN and "alter" in rights else 0) for space in spaces]
        for space, right in zip(spaces, bits, strict=True):
            world.ask(insert(PRIV, a_privilege(ANN, "space", space, right)))
    world.ask(attach(PLAIN, UP, is_generated))
    ann = log_in(connect(), "ann")
    for request in (
        select(VSEQUENCE),
        insert(PLAIN, [None, "a"]),
        replace(PLAIN, [2, "b"]),
        upsert(PLAIN, [9, "c"], ["=", 1, "d"]),
        NEXT_UP,
        CURRENT_UP,
        call("box.sequence.up:set", 3),
        call("box.sequence.up:reset"),
        call("box.sequence.ann's:next"),
        call("box.schema.sequence.create", "fresh"),
        call("box.schema.sequence.alter", "up", {"cache": 5}),
        call("box.schema.sequence.drop", "down"),
        call("box.schema.user.info"),
        insert(SEQUENCE, a_sequence(NEW, "new")),
        insert(SEQUENCE, a_sequence(NEW + 1, "newer", owner=ANN)),
        set_field(SEQUENCE, [UP], 7, 3),
        set_field(SEQUENCE, [ANNS], 7, 3),
        delete(SEQUENCE, DOWN),
        insert(SEQUENCE_DATA, [ROUND, 3]),
        delete(SEQUENCE_DATA, ROUND),
        attach(SECOND, UP, False, 2, ""),
        attach(SECOND, ANNS, True, 2, ""),
        attach(SECOND, ANNS, False, 2, ""),
        delete(SPACE_SEQUENCE, PLAIN),
    ):
        world.ask(request, both=ann)
    world.compare_rows()
