"""The spaces that all tubes share: tubes, waiting consumers, taken tasks, and sessions.

Source: README of github.com/tarantool/queue, "The underlying spaces".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from iproto_server import Box, Space


class _Layout(NamedTuple):
    """The fields of a space, and its indexes with their parts and uniqueness."""

    format: tuple[tuple[str, str], ...]
    indexes: tuple[tuple[str, tuple[tuple[int, str], ...], bool], ...]


QUEUE: Final = "_queue"
CONSUMERS: Final = "_queue_consumers"
TAKEN: Final = "_queue_taken_2"
SESSION_IDS: Final = "_queue_session_ids"
SHARED_SESSIONS: Final = "_queue_shared_sessions"
_TAKEN_BEFORE: Final = "_queue_taken"

_LAYOUTS: Final = {
    QUEUE: _Layout(
        (
            ("tube_name", "string"),
            ("tube_id", "unsigned"),
            ("space_name", "string"),
            ("tube_type", "string"),
            ("opts", "*"),
        ),
        (("tube", ((0, "string"),), True), ("tube_id", ((1, "unsigned"),), True)),
    ),
    CONSUMERS: _Layout(
        (
            ("connection_id", "unsigned"),
            ("fiber_id", "unsigned"),
            ("tube_id", "unsigned"),
            ("event_time", "unsigned"),
            ("fiber_time", "unsigned"),
        ),
        (
            ("pk", ((0, "unsigned"), (1, "unsigned")), True),
            ("consumer", ((2, "unsigned"), (3, "unsigned")), False),
        ),
    ),
    TAKEN: _Layout(
        (
            ("tube_id", "unsigned"),
            ("task_id", "unsigned"),
            ("connection_id", "unsigned"),
            ("session_uuid", "string"),
            ("taken_time", "unsigned"),
        ),
        (("task", ((0, "unsigned"), (1, "unsigned")), True), ("uuid", ((3, "string"),), False)),
    ),
    SESSION_IDS: _Layout(
        (("connection_id", "unsigned"), ("session_uuid", "string")),
        (("conn_id", ((0, "unsigned"),), True), ("uuid", ((1, "string"),), False)),
    ),
    SHARED_SESSIONS: _Layout(
        (("uuid", "string"), ("exp_time", "unsigned"), ("active", "boolean")),
        (("uuid", ((0, "string"),), True), ("active", ((2, "boolean"), (0, "string")), True)),
    ),
}


def create_all(box: Box, *, in_replicaset: bool) -> None:
    """Create missing spaces, in the module's order.

    Parameters:
        box: the box.
        in_replicaset: whether to store the state that survives a change of the master.
    """
    for name in (QUEUE, CONSUMERS):
        if name not in box.space:
            _create(box, name, name, temporary=name != QUEUE)
    if _TAKEN_BEFORE in box.space:
        box.space[_TAKEN_BEFORE].drop()
    _ensure(box, TAKEN, temporary=not in_replicaset)
    if SESSION_IDS not in box.space:
        _create(box, SESSION_IDS, SESSION_IDS, temporary=True)
    _ensure(box, SHARED_SESSIONS, temporary=not in_replicaset)


def switch(box: Box, *, in_replicaset: bool) -> None:
    """Start or stop storing the state that survives a change of the master."""
    for name in (TAKEN, SHARED_SESSIONS):
        if name in box.space:
            _ensure(box, name, temporary=not in_replicaset)


def _ensure(box: Box, name: str, *, temporary: bool) -> None:
    """Make a space temporary or persistent, keeping its rows; create it if it does not exist."""
    if name not in box.space:
        _create(box, name, name, temporary=temporary)
        return
    before = box.space[name]
    if before.temporary == temporary:
        return
    after = _create(box, name, f"{name}_mgr", temporary=temporary)
    for row in before.pairs():
        after.insert(row)
    before.drop()
    after.rename(name)


def _create(box: Box, layout: str, name: str, *, temporary: bool) -> Space:
    fields, indexes = _LAYOUTS[layout]
    space = box.schema.create_space(name, format=fields, temporary=temporary)
    for index, parts, unique in indexes:
        space.create_index(index, parts=parts, unique=unique)
    return space


class CurrentSpace:
    """A system space, which becomes another one when it is made temporary or persistent.

    Its rows are as few as taken tasks, sessions and waiting calls. They are not refused when memory is full:
    no task could be taken and acknowledged without them.

    Parameters:
        box: the box.
        name: its name.
    """

    __slots__ = ("_catalog", "_name", "_space", "_spaces", "_version")

    def __init__(self, box: Box, name: str) -> None:
        self._spaces = box.space
        self._catalog = box.catalog
        self._name = name
        self._version = -1

    def current(self) -> Space:
        """Find the space, where the schema has changed since the last time."""
        version = self._catalog.schema_version
        if version != self._version:
            self._space: Space = self._spaces[self._name].beyond_memory_limit(new_rows=True)
            self._version = version
        return self._space
