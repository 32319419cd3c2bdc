"""The rows of the system spaces: the effects of a case are compared, and removed."""

from __future__ import annotations

from typing import Any, Final

import msgpack

from tests.differential.ddl.system_rows import (
    ALL,
    CK_CONSTRAINT,
    CLUSTER,
    COLLATION,
    FK_CONSTRAINT,
    FUNC,
    FUNC_INDEX,
    INDEX,
    PRIV,
    SCHEMA,
    SEQUENCE,
    SEQUENCE_DATA,
    SPACE,
    SPACE_SEQUENCE,
    TRIGGER,
    TRUNCATE,
    USER,
)
from tests.differential.random.answer import Answer
from tests.differential.random.request import Request
from tests.differential.random.sessions import Sessions
from tests.iproto_client import (
    DATA,
    DELETE,
    INDEX_ID,
    ITERATOR,
    KEY,
    LIMIT,
    REPLACE,
    SELECT,
    SPACE_ID,
    TUPLE,
    UPDATE,
)

_KEYS: Final = {
    FUNC_INDEX: (0, 1),
    FK_CONSTRAINT: (0, 1),
    CK_CONSTRAINT: (0, 1),
    TRIGGER: (0,),
    PRIV: (1, 2, 3),
    SPACE_SEQUENCE: (0,),
    TRUNCATE: (0,),
    INDEX: (0, 1),
    SPACE: (0,),
    SEQUENCE_DATA: (0,),
    SEQUENCE: (0,),
    FUNC: (0,),
    USER: (0,),
    COLLATION: (0,),
    CLUSTER: (0,),
    SCHEMA: (0,),
}
"""The fields of the primary key, by space; in the order of removal."""

_RESTORED: Final = (
    *(SCHEMA, CLUSTER, COLLATION, USER, FUNC, SEQUENCE, SPACE, INDEX, SPACE_SEQUENCE, TRUNCATE, PRIV),
)
"""The order in which removed rows are restored."""

_USER_KIND: Final = 3
_ATTEMPTS: Final = 4
"""The number of passes: rows that depend on each other may need more than one."""

READ_ALL: Final = [
    Request(
        SELECT,
        {SPACE_ID: space, INDEX_ID: 0, ITERATOR: 2, LIMIT: ALL, KEY: []},
        user="admin",
        unordered=space == SEQUENCE_DATA,
    )
    for space in _KEYS
]
"""The requests that read all of them."""

Rows = dict[int, dict[tuple[Any, ...], Any]]
"""Rows by key, by space."""


class Catalog:
    """The contents of one server's system spaces between two cases.

    Parameters:
        sessions: The connections to the server.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._bodies = self._read()
        self._rows = _parsed(self._bodies)

    def restore(self) -> bool:
        """Remove added rows, and restore changed ones.

        Returns:
            Whether everything is restored.
        """
        for _ in range(_ATTEMPTS):
            bodies = self._read()
            if bodies == self._bodies:
                return True
            rows = _parsed(bodies)
            self._sessions.ask(self._repairs(rows), "admin")
        return False

    def _repairs(self, rows: Rows) -> list[Request]:
        # A user who replaced a granted role cannot be revoked from anybody.
        repairs = [
            Request(
                UPDATE,
                {SPACE_ID: USER, INDEX_ID: 0, KEY: [role], TUPLE: [["=", _USER_KIND, "role"]]},
                user="admin",
            )
            for _, kind, role in rows[PRIV].keys() - self._rows[PRIV].keys()
            if kind == "role"
        ]
        for space in _KEYS:
            added = sorted(rows[space].keys() - self._rows[space].keys(), key=repr, reverse=True)
            repairs += [
                Request(DELETE, {SPACE_ID: space, INDEX_ID: 0, KEY: list(key)}, user="admin") for key in added
            ]
        for space in _RESTORED:
            repairs += [
                Request(REPLACE, {SPACE_ID: space, TUPLE: row}, user="admin")
                for key, row in self._rows[space].items()
                if rows[space].get(key) != row
            ]
        return repairs

    def _read(self) -> list[bytes]:
        answers = self._sessions.ask(READ_ALL, "admin")
        assert all(isinstance(answer, Answer) and not answer.status for answer in answers), answers
        return [answer.body for answer in answers[:-1] if isinstance(answer, Answer)]


def _parsed(bodies: list[bytes]) -> Rows:
    rows: Rows = {}
    for (space, key_fields), body in zip(_KEYS.items(), bodies, strict=True):
        unpacked = msgpack.unpackb(body, strict_map_key=False, unicode_errors="surrogateescape")[DATA]
        rows[space] = {tuple(row[number] for number in key_fields): row for row in unpacked}
    return rows
