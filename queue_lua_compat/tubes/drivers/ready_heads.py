"""The next task of each sub-queue, so that a take need not search.

A sub-queue with a taken task is busy: none of its tasks can be taken. In every other sub-queue with ready
tasks, the first of them is the *head*. The heads are kept in order beside the space, so the cost of a take
does not depend on the number of tasks in busy sub-queues; a sub-queue without a head takes no memory.

A trigger of the space updates the heads on every change. After a rollback, the sub-queues concerned are
checked again at the next access. The same happens to the sub-queues that an open transaction has changed,
whenever it is applied or unapplied: each transaction has its own view of the heads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Final, Protocol

from iproto_server import Box, IncrementalDict, IteratorType, Space, Tuple
from queue_lua_compat.tubes.driver import READY, STATUS, TAKEN, follow, unfollow

Rank = tuple[Any, ...]
"""The sort key of a task: the ordering fields, its id, its sub-queue."""

_MARKED_MAX: Final = 1000
"""The number of unchecked sub-queues from which on a change checks them instead of the next take."""


class ReadyHeads:
    """The first ready tasks of the sub-queues that are not busy, in the order of takes.

    Parameters:
        box: the box.
        space: the space of the tasks.
        index_name: the index that orders the tasks of a sub-queue; its parts are the state, the sub-queue,
            and the ordering fields.
        rank: the field numbers of a `Rank`.
        moved: called with a sub-queue and its new head (None: no head) when the head changes, mostly in the
            transaction that causes it.
    """

    def __init__(
        self,
        box: Box,
        space: Space,
        index_name: str,
        rank: tuple[int, ...],
        moved: Callable[[str, Tuple | None], object] | None = None,
    ) -> None:
        # Only some types of tubes have heads, and this import takes long.
        from BTrees.OOBTree import OOTreeSet

        self._box = box
        self._space = space
        self._index_id = space.index[index_name].id
        self._rank: Callable[[list[Any]], Rank] = itemgetter(*rank)
        self._utube = rank[-1]
        self._moved = moved
        self._began_with_open = False
        self._ranks: IncrementalDict[str, Rank] = IncrementalDict()
        self._in_order = OOTreeSet()
        self._marked: set[str] = set()
        self._is_stale = False
        self._follows = False

    def __len__(self) -> int:
        """The number of tasks that can be taken now, at most one of each sub-queue."""
        self._check_marked()
        return len(self._ranks)

    def __contains__(self, utube: str) -> bool:
        """Whether a task of a sub-queue can be taken now."""
        self._check_marked()
        return utube in self._ranks

    def start(self) -> None:
        """Follow the changes of the space, and find the current heads: one look-up per sub-queue, whatever
        the number of its tasks."""
        self._follows = True
        follow(self._space, self._changed, self._undone)
        follow(self._box.space["_truncate"], self._truncated, self._truncated)
        self._began_with_open = len(self._box.interactive) > 0
        self._is_stale = True
        self._check_marked()

    def stop(self) -> None:
        """Stop following the space, and discard the heads."""
        self._follows = False
        unfollow(self._box, self._space.name, self._changed)
        unfollow(self._box, "_truncate", self._truncated)
        self._forget()

    def first(self) -> Tuple | None:
        """Return the next task to take, or None."""
        self._check_marked()
        # Open transactions may have heads that only they see.
        is_shared = len(self._box.interactive) > 0
        for rank in self._in_order:
            row = self._space.get(rank[-2])
            if row is None or row[STATUS] != READY:
                continue
            if not is_shared or self._first_row(TAKEN, rank[-1]) is None:
                return row
        return None

    # -- changes of the space --

    def _changed(self, old: Tuple | None, new: Tuple | None) -> None:
        interactive = self._box.transactions.interactive
        is_open = interactive is not None
        if interactive is not None:
            self._check_after_commit(old, new)
            seen = self._view_of(interactive)
            seen.update(row[self._utube] for row in (old, new) if row is not None)
        if self._is_stale or (len(self._marked) >= _MARKED_MAX and not is_open):
            self._check_marked()
        if self._marked:
            touched = {row[self._utube] for row in (old, new) if row is not None} & self._marked
            self._marked.difference_update(touched)
            for utube in touched:
                self._recheck(utube)
        was = None if old is None else old.fields
        now = None if new is None else new.fields
        if was is not None and (was[STATUS] == READY or was[STATUS] == TAKEN):
            rank = self._rank(was)
            utube = rank[-1]
            stays = now is not None and now[self._utube] == utube
            if stays and now is not None and now[STATUS] == was[STATUS] and self._rank(now) == rank:
                return
            if stays and now is not None and now[STATUS] == TAKEN:
                self._set(utube, None)
                return
            if was[STATUS] == TAKEN or self._ranks.get(utube) == rank:
                self._check(utube)
                if stays:
                    return
        if now is None:
            return
        if now[STATUS] == READY:
            rank = self._rank(now)
            head = self._ranks.get(rank[-1])
            if head is None:
                self._check(rank[-1])
            elif rank < head:
                self._set(rank[-1], new)
        elif now[STATUS] == TAKEN:
            self._set(now[self._utube], None)

    def _undone(self, old: Tuple | None, new: Tuple | None) -> None:
        """Mark the sub-queues for a check: the row is not restored yet, and more may be undone."""
        for row in (old, new):
            if row is not None:
                self._marked.add(row[self._utube])

    def _check_after_commit(self, old: Tuple | None, new: Tuple | None) -> None:
        """Check a row's sub-queues when an open transaction has committed. Until then others do not see the
        change, and may cause another check, with their view."""
        for row in (old, new):
            if row is not None:
                self._box.on_commit(partial(self._check, row[self._utube]))

    def _truncated(self, old: Tuple | None, new: Tuple | None) -> None:
        """Check everything if a changed or restored row of `_truncate` is about this space."""
        if new is not None and new[0] == self._space.id:
            self._is_stale = True

    # -- checks --

    def _check_marked(self) -> None:
        """Check the marked sub-queues."""
        if self._is_stale:
            # A transaction that was open at the start may commit changes that the trigger has not seen.
            is_open = self._box.transactions.interactive is not None
            self._is_stale = is_open or (self._began_with_open and len(self._box.interactive) > 0)
            utubes = dict.fromkeys((*self._ranks, *self._utubes()))
            self._forget()
            for utube in utubes:
                self._check(utube)
                if utube not in self._ranks and self._moved is not None:
                    self._moved(utube, None)
        if self._marked:
            marked = sorted(self._marked)
            self._marked.clear()
            interactive = self._box.transactions.interactive
            if interactive is not None:
                # An open transaction may see an older state: others have to check as well.
                self._view_of(interactive).update(marked)
            for utube in marked:
                self._recheck(utube)

    def _view_of(self, interactive: _InteractiveTransaction) -> set[str]:
        """Return the sub-queues of which an open transaction may have its own view."""
        found = interactive.side_state.get(self)
        if found is None:
            found = interactive.side_state[self] = _TransactionView(self._marked)
        assert isinstance(found, _TransactionView)
        return found.utubes

    def _utubes(self) -> list[str]:
        """Return the sub-queues with ready tasks."""
        utubes: list[str] = []
        core = self._space.core()
        found = core.first(self._index_id, [READY])
        while found is not None:
            row = Tuple(found)
            if row[STATUS] != READY:
                break
            utubes.append(row[self._utube])
            following = core.select(self._index_id, IteratorType.GT, 0, 1, [READY, utubes[-1]])
            found = following[0] if following else None
        return utubes

    def _check(self, utube: str) -> Tuple | None:
        if not self._follows:
            return None
        is_busy = self._first_row(TAKEN, utube) is not None
        head = None if is_busy else self._first_row(READY, utube)
        self._set(utube, head)
        return head

    def _recheck(self, utube: str) -> None:
        """Check a marked sub-queue. `moved` is called even for the same head: it may have been called before
        in a transaction that others do not see."""
        head = self._check(utube)
        if self._moved is not None and self._follows:
            self._moved(utube, head)

    def _first_row(self, state: str, utube: str) -> Tuple | None:
        # Bypasses access checks: the user who changed the space may have no right to read it.
        core = self._space.core()
        found = core.first(self._index_id, [state, utube])
        return None if found is None else Tuple(found, core.format)

    def _set(self, utube: str, head: Tuple | None) -> None:
        was = self._ranks.get(utube)
        now = None if head is None else self._rank(head.fields)
        if was == now:
            return
        if was is not None:
            self._in_order.remove(was)
        if now is None:
            del self._ranks[utube]
        else:
            self._ranks[utube] = now
            self._in_order.insert(now)
        if self._moved is not None:
            self._moved(utube, head)

    def _forget(self) -> None:
        self._ranks.clear()
        self._in_order.clear()
        self._marked.clear()


class _InteractiveTransaction(Protocol):
    """The part of an open transaction that the heads use.

    Attributes:
        side_state: the state kept outside spaces that the transaction has changed, by its owner.
    """

    side_state: dict[object, Any]


class _TransactionView:
    """The sub-queues of which one open transaction may have its own view.

    Parameters:
        marked: the sub-queues to check.
    """

    __slots__ = ("_marked", "utubes")

    def __init__(self, marked: set[str]) -> None:
        self._marked = marked
        self.utubes: set[str] = set()

    def put_in(self) -> None:
        """Mark the sub-queues: the transaction is being applied."""
        self._marked |= self.utubes

    def take_out(self) -> None:
        """Mark the sub-queues: the transaction is being unapplied."""
        self._marked |= self.utubes
