"""The second space of a tube with `storage_mode = "ready_buffer"`: a row for the head of each sub-queue.

Takes use `ReadyHeads` in both modes. These rows exist for the module only: if it takes over the directory, it
finds them as it would have written them.

Source: README of github.com/tarantool/queue, "utube", and the spaces that its release 1.5.0 creates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from iproto_server import Box, BoxError, Space, Tuple
from queue_lua_compat.tubes.driver import TASK_ID, Options, validate_space
from queue_lua_compat.tubes.drivers.ready_heads import ReadyHeads

STORAGE_MODE_DEFAULT: Final = "default"
STORAGE_MODE_READY_BUFFER: Final = "ready_buffer"

_UTUBE: Final = 1
_PRIMARY, _BY_UTUBE = 0, 1


class ReadyBuffer:
    """The rows in the second space: id and sub-queue of each head, and its priority if tasks have priorities.

    Parameters:
        box: the box.
        tube_space: the tube's space.
        options: the tube's options.
        pri: the number of the priority field, if there is one.

    Attributes:
        is_wanted: whether the options request the space.

    Raises:
        BoxError: the options request it together with the engine vinyl.
    """

    def __init__(self, box: Box, tube_space: Space, options: Options, pri: Sequence[int] = ()) -> None:
        self._box = box
        self._name = f"{tube_space.name}_ready_buffer"
        self._is_temporary = bool(options.get("temporary"))
        self._pri = pri
        self.is_wanted = options.get("storage_mode") == STORAGE_MODE_READY_BUFFER
        if self.is_wanted and options.get("engine") == "vinyl":
            raise BoxError.procedure(
                f'"{STORAGE_MODE_READY_BUFFER}" storage mode cannot be used with vinyl engine'
            )

    @property
    def space(self) -> Space:
        """The space."""
        return self._box.space[self._name]

    def open(self) -> None:
        """Create the space, or check an existing one."""
        if not self.is_wanted:
            return
        fields = [("task_id", "unsigned"), ("utube", "string"), ("pri", "unsigned")][: 2 + len(self._pri)]
        indexes = {"task_id": [(0, "unsigned")], "utube": [(1, "string")]}
        if self._pri:
            indexes["pri"] = [(2, "unsigned"), (0, "unsigned")]
        if self._name in self._box.space:
            validate_space(self.space, *indexes)
            return
        space = self._box.schema.create_space(self._name, format=fields, temporary=self._is_temporary)
        for name, parts in indexes.items():
            space.create_index(name, parts=parts)

    def prune(self, heads: ReadyHeads) -> None:
        """Remove the rows of sub-queues without a head, such as others have left."""
        if self.is_wanted:
            for row in self.space.select():
                if row[_UTUBE] not in heads:
                    self.space.delete(row[TASK_ID])

    def keep(self, utube: str, head: Tuple | None) -> None:
        """Update the row of a sub-queue's head (None: no head), whatever rights the current user has."""
        core = self.space.core()
        wanted: list[Any] | None = None
        if head is not None:
            wanted = [head[TASK_ID], utube, *(head[field] for field in self._pri)]
        found = core.find(_BY_UTUBE, [utube])
        if found is not None:
            row = Tuple(found)
            if row == wanted:
                return
            core.delete(_PRIMARY, [row[TASK_ID]])
        if wanted is not None:
            with self._box.beyond_memory_limit():
                core.replace(core.row(wanted))

    def truncate(self) -> None:
        """Remove all rows together with all tasks."""
        if self.is_wanted:
            self.space.truncate()

    def drop(self) -> None:
        """Remove the space."""
        if self.is_wanted:
            self.space.drop()

    def grant(self, grantor: Any, grantee: str, *, if_not_exists: bool) -> None:
        """Grant read and write access to the rows.

        Parameters:
            grantor: `box.schema.user` or `box.schema.role`.
            grantee: the user or the role.
            if_not_exists: do nothing if it has been granted already.
        """
        if self._name in self._box.space:
            grantor.grant(grantee, "read,write", "space", self._name, if_not_exists=if_not_exists)
