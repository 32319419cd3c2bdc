"""The initial contents for comparisons of sequences, and the rows to remove afterwards."""

from __future__ import annotations

from typing import Any

from tests.differential.both import Both
from tests.differential.ddl.system_rows import (
    INDEX,
    PRIV,
    PUBLIC,
    SEQUENCE,
    SEQUENCE_DATA,
    SESSION,
    SPACE,
    SPACE_SEQUENCE,
    TRUNCATE,
    USAGE,
    USER,
    Request,
    a_privilege,
    a_sequence,
    a_space,
    a_user,
    an_index,
    call,
    insert,
    select,
)
from tests.differential.login import SECRET
from tests.iproto_client import (
    CALL,
    DELETE,
    FUNCTION_NAME,
    INDEX_ID,
    KEY,
    PING,
    SPACE_ID,
    TUPLE,
    Answer,
    IprotoClient,
)

PLAIN, SECOND, BARE = 851, 852, 853
"""Spaces: numbered in the first field of one part; in the second part of two; without an index."""
UP, DOWN, ROUND, SMALL, ANNS = 871, 872, 873, 874, 875
NEW = 880
ANN, SUE = 921, 922
OWN_IDS = {PLAIN, SECOND, BARE, UP, DOWN, ROUND, SMALL, ANNS, NEW, ANN, SUE}
MAX, MIN = 2**63 - 1, -(2**63)

WORLD = [
    insert(USER, a_user(ANN, name="ann", auth=SECRET)),
    insert(USER, a_user(SUE, name="sue", auth=SECRET)),
    *(insert(PRIV, a_privilege(user, "universe", 0, SESSION | USAGE)) for user in (ANN, SUE)),
    *(insert(PRIV, a_privilege(user, "role", PUBLIC, 4)) for user in (ANN, SUE)),
    insert(SPACE, a_space(PLAIN, name="plain")),
    insert(INDEX, an_index(PLAIN, 0, "pk")),
    insert(INDEX, an_index(PLAIN, 1, "by_word", parts=[[1, "string"]])),
    insert(SPACE, a_space(SECOND, name="second")),
    insert(INDEX, an_index(SECOND, 0, "pk", parts=[[1, "string"], [2, "integer"]])),
    insert(SPACE, a_space(BARE, name="bare")),
    insert(SEQUENCE, a_sequence(UP, "up", greatest=5)),
    insert(SEQUENCE, a_sequence(DOWN, "down", step=-2, least=-9, greatest=3, start=3)),
    insert(SEQUENCE, a_sequence(ROUND, "round", least=2, greatest=4, start=3, cycle=True)),
    insert(SEQUENCE, a_sequence(SMALL, "small", least=MIN, greatest=MAX, start=MAX - 2, step=2)),
    insert(SEQUENCE, a_sequence(ANNS, "ann's", owner=ANN)),
]
"""The initial contents of a case."""

SYSTEM_SPACES = (SPACE_SEQUENCE, PRIV, TRUNCATE, INDEX, SPACE, SEQUENCE_DATA, SEQUENCE, USER)
"""In the order in which their rows can be removed."""


def attach(
    space: int, sequence: int, is_generated: Any = False, field: Any = 0, path: Any = "", *more: Any
) -> Request:
    return insert(SPACE_SEQUENCE, [space, sequence, is_generated, field, path, *more])


NEXT_UP, CURRENT_UP = call("box.sequence.up:next"), call("box.sequence.up:current")


def own_rows(client: IprotoClient, space: int) -> list[list[Any]]:
    """The rows of a system space that belong to these tests."""
    request = select(space)
    rows = client.request(request.kind, request.body).data
    if space == PRIV:
        return [row for row in rows if row[1] in OWN_IDS or row[3] in OWN_IDS]
    if space in (SEQUENCE, SEQUENCE_DATA):
        return list(rows)
    return [row for row in rows if row[0] in OWN_IDS or row[0] >= 512]


def clear(client: IprotoClient) -> None:
    for space in SYSTEM_SPACES:
        rows = own_rows(client, space)
        for row in sorted(rows, key=lambda row: row[1] if space == INDEX else 0, reverse=True):
            key = row[1:4] if space == PRIV else row[:2] if space == INDEX else row[:1]
            answer = client.request(DELETE, {SPACE_ID: space, INDEX_ID: 0, KEY: key})
            assert answer.ok, (space, row, answer)


class World:
    """The same contents on both servers.

    Parameters:
        admin: Connections as guest, who may do everything.
    """

    def __init__(self, admin: Both) -> None:
        self.admin = admin

    def ask(self, *requests: Request, both: Both | None = None) -> list[Answer]:
        """Send requests to both servers, one after the other."""
        return [ask(both or self.admin, request) for request in requests]

    def versions(self) -> list[int]:
        return [client.request(PING).schema_version for client in (self.admin.ours, self.admin.theirs)]

    def compare_rows(self) -> None:
        """Check that the system spaces have the same rows."""
        for space in SYSTEM_SPACES:
            ours, theirs = (
                sorted(own_rows(client, space), key=lambda row: row[:2] if space == INDEX else row[0])
                for client in (self.admin.ours, self.admin.theirs)
            )
            assert ours == theirs, space


def ask(both: Both, request: Request) -> Answer:
    """Send a request to both, and check that the answers are equal."""
    if request.kind == CALL:
        return both.call(request.body[FUNCTION_NAME], *request.body[TUPLE])
    return both.request(request.kind, request.body)
