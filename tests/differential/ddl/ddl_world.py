"""The initial contents for comparisons of definitions, and the rows to remove afterwards."""

from __future__ import annotations

from typing import Any

from tests.differential.both import Both
from tests.differential.ddl.system_rows import (
    EXECUTE,
    FUNC,
    INDEX,
    PRIV,
    SPACE,
    TRUNCATE,
    USER,
    Request,
    a_function,
    a_privilege,
    a_space,
    a_user,
    an_index,
    insert,
    select,
)
from tests.differential.login import SECRET
from tests.iproto_client import (
    DELETE,
    INDEX_ID,
    KEY,
    PING,
    SPACE_ID,
    IprotoClient,
)

ANN, OWNER, READER, WRITER = 900, 901, 902, 903
EMPTY, FILLED, TRUNCATED, OWNED, NEW = 800, 801, 802, 803, 810
FUNCTION, GRANTED, OWNED_FUNCTION = 950, 951, 952
LAST_ID = 2**31 - 1
LONG, LONGEST = "x" * 65001, "x" * 65000
"""Names: one that is too long, and one that is not."""

OWN_IDS = frozenset({*range(800, 1000), 32000, 32001, LAST_ID, LAST_ID + 1})
"""The spaces, users and functions of these tests, among those of the servers' other tests."""

FORMAT = [
    {"name": "id", "type": "unsigned"},
    {"name": "word", "type": "string"},
    {"name": "more", "type": "any", "is_nullable": True},
]


WORLD = [
    insert(USER, a_user(ANN, name="ann", auth=SECRET)),
    insert(USER, a_user(OWNER, name="owner")),
    insert(USER, a_user(READER, name="reader", kind="role")),
    insert(USER, a_user(WRITER, name="writer", kind="role")),
    insert(SPACE, a_space(EMPTY, name="empty")),
    insert(SPACE, a_space(FILLED, name="filled", fields=FORMAT)),
    insert(INDEX, an_index(FILLED, 0, "primary")),
    insert(INDEX, an_index(FILLED, 1, "word", options={"unique": False}, parts=[[1, "string"]])),
    insert(FILLED, [1, "same"]),
    insert(FILLED, [2, "same", 5]),
    insert(SPACE, a_space(TRUNCATED, name="truncated")),
    insert(INDEX, an_index(TRUNCATED, 0, "primary")),
    insert(TRUNCATED, [1]),
    insert(TRUNCATE, [TRUNCATED, 1]),
    insert(SPACE, a_space(OWNED, OWNER, name="owned")),
    insert(FUNC, a_function(FUNCTION, name="some.function")),
    insert(FUNC, a_function(GRANTED, name="granted.function")),
    insert(FUNC, a_function(OWNED_FUNCTION, OWNER, name="owned.function")),
    insert(PRIV, a_privilege(ANN, "space", EMPTY)),
    insert(PRIV, a_privilege(ANN, "function", GRANTED, EXECUTE)),
    insert(PRIV, a_privilege(READER, "role", WRITER, EXECUTE)),
]
"""The initial contents of a case."""


class World:
    """The same contents on both servers.

    Parameters:
        both: The servers.
    """

    def __init__(self, both: Both) -> None:
        self.both = both

    def ask(self, *requests: Request) -> None:
        """Send requests to both servers, one after the other."""
        for request in requests:
            before = self._versions()
            self.both.request(request.kind, request.body)
            after = self._versions()
            rises = [late - early for early, late in zip(before, after, strict=True)]
            assert rises[0] == rises[1], f"the schema's version rose by {rises[0]}, not {rises[1]}: {request}"

    def compare_rows(self) -> None:
        """Check that the system spaces have the same rows."""
        for space in (SPACE, INDEX, TRUNCATE, FUNC, USER, PRIV):
            ours, theirs = (own_rows(client, space) for client in (self.both.ours, self.both.theirs))
            assert ours == theirs

    def clear(self) -> None:
        """Remove all objects of these tests."""
        for client in (self.both.ours, self.both.theirs):
            for space in (PRIV, TRUNCATE, INDEX, SPACE, FUNC, USER):
                rows = own_rows(client, space)
                for row in sorted(rows, key=lambda row: row[1] if space == INDEX else 0, reverse=True):
                    key = row[1:4] if space == PRIV else row[:2] if space == INDEX else row[:1]
                    answer = client.request(DELETE, {SPACE_ID: space, INDEX_ID: 0, KEY: key})
                    assert answer.ok, (row, answer)

    def _versions(self) -> tuple[int, int]:
        clients = (self.both.ours, self.both.theirs)
        ours, theirs = (client.request(PING).schema_version for client in clients)
        return ours, theirs


def own_rows(client: IprotoClient, space: int) -> list[Any]:
    """The rows of a system space that belong to these tests."""
    request = select(space)
    rows = client.request(request.kind, request.body).data
    if space == PRIV:
        return [row for row in rows if row[1] in OWN_IDS or row[3] in OWN_IDS]
    return [row for row in rows if row[0] in OWN_IDS]
