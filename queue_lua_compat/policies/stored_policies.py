"""The stored policies of all queues."""

from __future__ import annotations

from collections.abc import Callable

from iproto_server import Box
from queue_lua_compat.policies.queue_policy import QueuePolicy
from queue_lua_compat.policies.spaces import ATTEMPTS, SETTINGS, UNIQUE_KEYS, PolicySpace


def stored_policies(box: Box, prefix: str) -> set[str]:
    """Return the names of queues with rows in any of the spaces, without the prefix that they begin with."""
    return box.session.su("admin", _stored_policies, box, prefix)  # type: ignore[no-any-return]


def _stored_policies(box: Box, prefix: str) -> set[str]:
    names: set[str] = set()
    for space_name in (SETTINGS, ATTEMPTS, UNIQUE_KEYS):
        space = PolicySpace(box, space_name).find()
        row = None if space is None else next(space.index[0].pairs([prefix], iterator="GE"), None)
        while space is not None and row is not None and row[0].startswith(prefix):
            names.add(row[0].removeprefix(prefix))
            row = next(space.index[0].pairs([row[0]], iterator="GT"), None)
    return names


def forget_policies(box: Box, is_leftover: Callable[[str], bool]) -> None:
    """Remove all rows of queues that do not exist any more.

    Parameters:
        box: the box.
        is_leftover: returns whether the queue with a name belongs to the caller's dialect and does not exist.
    """
    for name in filter(is_leftover, sorted(stored_policies(box, ""))):
        QueuePolicy(box, name, (), {}, _nothing, _nothing).forget()


def _nothing() -> None:
    """Such a queue has neither waiting calls nor dead letters."""
