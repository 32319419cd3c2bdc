"""The legacy queue's spaces, by the names and numbers that clients use."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from iproto_server import Box, BoxError, Space, Tuple
from queue_lua_compat.legacy.arguments import text
from queue_lua_compat.legacy.queue_space import QueueSpace
from queue_lua_compat.legacy.space_rows import create_space, fits
from queue_lua_compat.legacy.statistics import Statistics
from queue_lua_compat.lua_numbers import key_of
from queue_lua_compat.policies.stored_policies import forget_policies

_NAME: Final = 2
"""The field of `_space` with the name."""
_RESERVED: Final = range(256, 512)
"""The ids of system spaces."""
_SPACE_OF_ZERO: Final = "queue_0"
_TUBES: Final = "_queue"
"""The space with the tubes of the queue module."""
_KNOWN_MAX: Final = 1000
"""The maximum size of the cache of names: a number can be written in infinitely many ways."""


class Registry:
    """Finds a queue's space, and creates it on first use.

    A space is given by its number, also as a string, or by its name. The space 0, which clients of Tarantool
    1.5 use by default, is the one named `queue_0`: 0 is no valid id. A space created for a number n is named
    `queue_n`.

    Parameters:
        box: the box.
        statistics: the counters.
        kept: state that survives reloads: a dict for each space, by number.

    Attributes:
        spaces: the spaces found at the start or used since, by number.
    """

    def __init__(self, box: Box, statistics: Statistics, kept: dict[int, dict[str, Any]]) -> None:
        self._box = box
        self._statistics = statistics
        self._kept = kept
        self.spaces: dict[int, QueueSpace] = {}
        self._by_given: dict[int | str, QueueSpace] = {}
        for space in list(box.space):
            if fits(space):
                self._adopt(space)
        if not box.is_read_only:
            forget_policies(box, self._is_leftover)
        box.space["_space"].on_replace(self._definition_changed, undo=self._undone)
        box.space["_truncate"].on_replace(self._truncated)

    def _is_leftover(self, policy: str) -> bool:
        """Whether a policy's name is `SPACE/TUBE`, of no existing space, and no tube of the queue module."""
        parts = policy.split("/")
        spaces = self._box.space
        if len(parts) == 1 or (_TUBES in spaces and spaces[_TUBES].get([policy]) is not None):
            return False
        return not any("/".join(parts[:count]) in spaces for count in range(1, len(parts)))

    def find(self, given: object) -> QueueSpace:
        """Find the space that a client means. It is created as admin, but used with the client's rights.

        Raises:
            BoxError: the value is neither a name nor a number, or the space is not a queue's.
        """
        if isinstance(given, (str, int)) and not isinstance(given, bool):
            known = self._by_given.get(given)
            if known is not None:
                return known
        number, name = _number_or_name(given)
        catalog = self._box.catalog
        present = catalog.find(name) if number is None else catalog.spaces.get(number)
        with self._box.session.su("admin"):
            if present is not None:
                space = self._box.space[present.id]
                if not fits(space):
                    raise BoxError.procedure(f"space {name} is no queue's")
            elif number in _RESERVED:
                raise BoxError.procedure(
                    f"space {name} is no queue's: the numbers 256 to 511 are the server's own"
                )
            else:
                space = create_space(self._box, name if number is None else f"queue_{number}", number)
                prefix = f"{space.name}/"
                forget_policies(self._box, lambda policy: policy.startswith(prefix))
            queue_space = self.spaces.get(space.id)
            if queue_space is None or not self._exists(queue_space):
                queue_space = self._adopt(space)
        if isinstance(given, (str, int)):
            self._box.on_commit(partial(self._remember, given, queue_space))
        return queue_space

    def with_label(self, given: object) -> str:
        """Return the space's name in statistics, whether the space exists or not."""
        number, name = _number_or_name(given)
        present = None if number is not None else self._box.catalog.find(name)
        return _label(name, number if present is None else present.id)

    def _adopt(self, space: Space) -> QueueSpace:
        is_new = space.id not in self._kept
        kept = self._kept.setdefault(space.id, {})
        queue_space = QueueSpace(self._box, space, _label(space.name, space.id), self._statistics, kept)
        self.spaces[space.id] = queue_space
        if is_new:
            self._box.on_rollback(partial(self._not_adopted, queue_space))
        queue_space.start()
        return queue_space

    def _remember(self, given: int | str, queue_space: QueueSpace) -> None:
        if self.spaces.get(queue_space.space.id) is queue_space and len(self._by_given) < _KNOWN_MAX:
            self._by_given[given] = queue_space

    def _not_adopted(self, queue_space: QueueSpace) -> None:
        """Handle a rollback of the transaction that found or created the space."""
        self._forget(queue_space)
        if self._exists(queue_space):
            queue_space.detach()

    def _definition_changed(self, old: Tuple | None, new: Tuple | None) -> None:
        """Handle creating, renaming or dropping of a space, and its rollback."""
        self._by_given.clear()
        queue_space = None if old is None else self.spaces.get(old[0])
        if queue_space is None or old is None:
            return
        if new is not None:
            if new[_NAME] != old[_NAME]:
                queue_space.renamed(old[_NAME])
        else:
            self._box.on_commit(partial(self._dropped, queue_space))
            self._box.on_rollback(partial(self._not_dropped, queue_space))

    def _undone(self, old: Tuple | None, new: Tuple | None) -> None:
        self._by_given.clear()

    def _dropped(self, queue_space: QueueSpace) -> None:
        if not self._exists(queue_space):
            self._forget(queue_space)
            for policy in queue_space.policies.values():
                self._box.run(self._box.session.background, policy.forget)

    def _not_dropped(self, queue_space: QueueSpace) -> None:
        if self._exists(queue_space):
            self.spaces[queue_space.space.id] = queue_space
            self._kept[queue_space.space.id] = queue_space.kept
            queue_space.due_timer.set(queue_space.due_timer.now())

    def _exists(self, queue_space: QueueSpace) -> bool:
        core = self._box.catalog.spaces.get(queue_space.space.id)
        return core is not None and not queue_space.space.is_stale(core)

    def _forget(self, queue_space: QueueSpace) -> None:
        if self.spaces.get(queue_space.space.id) is queue_space:
            del self.spaces[queue_space.space.id]
            del self._kept[queue_space.space.id]
        self._by_given.clear()
        queue_space.stop()

    def _truncated(self, old: Tuple | None, new: Tuple | None) -> None:
        """Revoke all ownership when a changed row of `_truncate` is about a queue's space."""
        if new is None:
            return
        queue_space = self.spaces.get(new[0])
        if queue_space is not None and not queue_space.space.len():
            queue_space.owners.remove_all()
            for policy in queue_space.policies.values():
                policy.truncated()


def _number_or_name(given: object) -> tuple[int | None, str]:
    """Parse the space that a client means: a number or None, and the name."""
    if given is None or isinstance(given, bool):
        raise BoxError.procedure("space must be a number or a name")
    if isinstance(given, (int, float)):
        number = given
    else:
        name = text(given, "space")
        try:
            number = key_of(name)
        except BoxError:
            return None, name
    if number == 0:
        return None, _SPACE_OF_ZERO
    if number < 0 or not float(number).is_integer():
        raise BoxError.procedure(f"space must be a number or a name, not {given}")
    return int(number), str(int(number))


def _label(name: str, number: int | None) -> str:
    if name == _SPACE_OF_ZERO:
        return "0"
    return name if number is None else str(number)
