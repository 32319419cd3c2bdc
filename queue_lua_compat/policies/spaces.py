"""The spaces of policies, created on first use: a database that uses no policies has none of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from iproto_server import Box, BoxError, Space


class _Layout(NamedTuple):
    """The fields of a space, and its indexes with their parts and uniqueness."""

    fields: tuple[tuple[str, str], ...]
    indexes: tuple[tuple[str, tuple[str, ...], bool], ...]


SETTINGS: Final = "_queue_settings"
ATTEMPTS: Final = "_queue_attempts"
UNIQUE_KEYS: Final = "_queue_unique_keys"

_LAYOUTS: Final = {
    SETTINGS: _Layout(
        (("queue", "string"), ("state", "string"), ("dead_letters_of", "string"), ("options", "map")),
        (("queue", ("queue",), True),),
    ),
    ATTEMPTS: _Layout(
        (
            ("queue", "string"),
            ("task_id", "scalar"),
            ("releases", "unsigned"),
            ("timeouts", "unsigned"),
            ("disconnects", "unsigned"),
            ("options", "map"),
        ),
        (("task", ("queue", "task_id"), True),),
    ),
    UNIQUE_KEYS: _Layout(
        (
            ("queue", "string"),
            ("key", "string"),
            ("task_id", "scalar"),
            ("unique_for", "unsigned"),  # microseconds
            ("expires", "unsigned"),  # microseconds since 1970; 0 while the task exists
        ),
        (
            ("key", ("queue", "key"), True),
            ("task", ("queue", "task_id"), False),
            ("expires", ("expires",), False),
        ),
    ),
}


class PolicySpace:
    """One of these spaces, which may not exist yet.

    Its rows come with tasks, whose puts are refused when memory is full, and with settings; so they are not
    refused themselves.

    Parameters:
        box: the box.
        name: its name.
    """

    __slots__ = ("_box", "_catalog", "_name", "_space", "_version")

    def __init__(self, box: Box, name: str) -> None:
        self._box = box
        self._catalog = box.catalog
        self._name = name
        self._space: Space | None = None
        self._version = -1

    def find(self) -> Space | None:
        """Return the space, or None. Its name is looked up when the schema has changed."""
        version = self._catalog.schema_version
        if version != self._version:
            exists = self._name in self._box.space
            self._space = self._box.space[self._name].beyond_memory_limit(new_rows=True) if exists else None
            self._version = version
        return self._space

    def open(self) -> Space:
        """Return the space; create it unless it exists.

        Raises:
            BoxError: it does not exist, and a stream's transaction is running, which could not go on.
        """
        space = self.find()
        if space is not None:
            return space
        if self._box.transactions.interactive is not None:
            raise BoxError.procedure(
                f'a stream cannot create the space "{self._name}": use these options without a stream first'
            )
        layout = _LAYOUTS[self._name]
        with self._box.beyond_memory_limit():
            created = self._box.schema.create_space(self._name, format=layout.fields)
            for index, parts, unique in layout.indexes:
                created.create_index(index, parts=list(parts), unique=unique)
        space = self.find()
        assert space is not None
        return space


def move_rows(policy_space: PolicySpace, before: str, after: str) -> None:
    """Give the rows of a queue, which begin with its name and their key, another name."""
    space = policy_space.find()
    if space is not None:
        for row in list(space.index[0].pairs([before])):
            space.delete(row[:2])
            space.replace([after, *row[1:]])


def remove_first(policy_space: PolicySpace, queue: str) -> bool:
    """Remove one of the rows of a queue, which begin with its name and their key.

    Returns: whether there was one.
    """
    space = policy_space.find()
    row = None if space is None else space.index[0].first([queue])
    if space is None or row is None:
        return False
    space.delete(row[:2])
    return True
