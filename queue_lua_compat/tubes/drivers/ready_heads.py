"""Which task of each sub-queue is next: what a take looks at, so that it need not search.

A sub-queue of which a task is taken is busy: none of its tasks can be taken. Of every other sub-queue with
ready tasks the first one is its *head*. The heads are kept in order beside the space, so a take costs the
same whatever number of tasks stand in busy sub-queues; a sub-queue without a head takes no memory.

The space's trigger keeps them up to date, whoever changes the space. What is undone is looked at again when
somebody next wants to know, and so is what a client's open transaction has changed, whenever it becomes that
transaction's turn, or the others' again: each sees heads of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Final, Protocol

from BTrees.OOBTree import OOTreeSet

from iproto_server import Box, IteratorType, Space, Tuple
from queue_lua_compat.tubes.driver import READY, STATUS, TAKEN, follow, unfollow

Rank = tuple[Any, ...]
"""Where a task stands: what sorts, its id, its sub-queue."""

_UNSURE_MAX: Final = 1000
"""Sub-queues that are to be looked at again before a change does not leave that to the next take."""


class ReadyHeads:
    """The first ready tasks of the sub-queues that are not busy, in the order in which they are to be taken.

    Parameters:
        box: the box.
        space: where the tasks are.
        index_name: the index in whose order the tasks of a sub-queue are taken; its parts are the state, the
            sub-queue, and what sorts.
        rank: the numbers of the fields that make a `Rank`.
        moved: called with a sub-queue and its head, None for none, when it has another one, mostly in the
            transaction that has brought that about.
    """

    def __init__(
        self,
        box: Box,
        space: Space,
        index_name: str,
        rank: tuple[int, ...],
        moved: Callable[[str, Tuple | None], object] | None = None,
    ) -> None:
        self._box = box
        self._space = space
        self._index_id = space.index[index_name].id
        self._rank: Callable[[list[Any]], Rank] = itemgetter(*rank)
        self._utube = rank[-1]
        self._moved = moved
        self._began_among_others = False
        self._ranks: dict[str, Rank] = {}
        self._in_order = OOTreeSet()
        self._unsure: set[str] = set()
        self._is_stale = False
        self._follows = False

    def __len__(self) -> int:
        """How many tasks could be taken now, one of each sub-queue."""
        self._settle()
        return len(self._ranks)

    def __contains__(self, utube: str) -> bool:
        """Whether a task of a sub-queue could be taken now."""
        self._settle()
        return utube in self._ranks

    def start(self) -> None:
        """Follow the changes of the space from now on, and look at what is in there: once for a sub-queue,
        however many tasks it has."""
        self._follows = True
        follow(self._space, self._changed, self._undone)
        follow(self._box.space["_truncate"], self._truncated, self._truncated)
        self._began_among_others = len(self._box.interactive) > 0
        self._is_stale = True
        self._settle()

    def stop(self) -> None:
        """Follow the space no more, and forget what was known of it."""
        self._follows = False
        unfollow(self._box, self._space.name, self._changed)
        unfollow(self._box, "_truncate", self._truncated)
        self._forget()

    def first(self) -> Tuple | None:
        """The task that is to be taken next, or None."""
        self._settle()
        # While clients have transactions open, some heads may be such as only those see.
        is_shared = len(self._box.interactive) > 0
        for rank in self._in_order:
            row = self._space.get(rank[-2])
            if row is None or row[STATUS] != READY:
                continue
            if not is_shared or self._first_row(TAKEN, rank[-1]) is None:
                return row
        return None

    # -- what happens to the space --

    def _changed(self, old: Tuple | None, new: Tuple | None) -> None:
        interactive = self._box.transactions.interactive
        is_open = interactive is not None
        if interactive is not None:
            self._look_after_commit(old, new)
            seen = self._seen_by(interactive)
            seen.update(row[self._utube] for row in (old, new) if row is not None)
        if self._is_stale or (len(self._unsure) >= _UNSURE_MAX and not is_open):
            self._settle()
        if self._unsure:
            touched = {row[self._utube] for row in (old, new) if row is not None} & self._unsure
            self._unsure.difference_update(touched)
            for utube in touched:
                self._look_again(utube)
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
                self._look(utube)
                if stays:
                    return
        if now is None:
            return
        if now[STATUS] == READY:
            rank = self._rank(now)
            head = self._ranks.get(rank[-1])
            if head is None:
                self._look(rank[-1])
            elif rank < head:
                self._set(rank[-1], new)
        elif now[STATUS] == TAKEN:
            self._set(now[self._utube], None)

    def _undone(self, old: Tuple | None, new: Tuple | None) -> None:
        """The row is not put back yet, and more may be undone: look at it later."""
        for row in (old, new):
            if row is not None:
                self._unsure.add(row[self._utube])

    def _look_after_commit(self, old: Tuple | None, new: Tuple | None) -> None:
        """A client's open transaction has changed a row. Others do not see it yet, and until it has committed
        what they do may bring about another look at the sub-queue, with their eyes."""
        for row in (old, new):
            if row is not None:
                self._box.on_commit(partial(self._look, row[self._utube]))

    def _truncated(self, old: Tuple | None, new: Tuple | None) -> None:
        """A row of `_truncate` has changed, or that is undone: if it is about this space, look at it all."""
        if new is not None and new[0] == self._space.id:
            self._is_stale = True

    # -- looking at the space --

    def _settle(self) -> None:
        """Look at what is unsure."""
        if self._is_stale:
            # A client's transaction that was open at the start may commit what the trigger was not told of.
            is_open = self._box.transactions.interactive is not None
            self._is_stale = is_open or (self._began_among_others and len(self._box.interactive) > 0)
            utubes = dict.fromkeys((*self._ranks, *self._utubes()))
            self._forget()
            for utube in utubes:
                self._look(utube)
                if utube not in self._ranks and self._moved is not None:
                    self._moved(utube, None)
        if self._unsure:
            unsure = sorted(self._unsure)
            self._unsure.clear()
            interactive = self._box.transactions.interactive
            if interactive is not None:
                # What an open transaction sees may be older than what there is: others have to look, too.
                self._seen_by(interactive).update(unsure)
            for utube in unsure:
                self._look_again(utube)

    def _seen_by(self, interactive: _InteractiveTransaction) -> set[str]:
        """The sub-queues that an open transaction may see otherwise than the others do."""
        found = interactive.side_state.get(self)
        if found is None:
            found = interactive.side_state[self] = _Seen(self._unsure)
        assert isinstance(found, _Seen)
        return found.utubes

    def _utubes(self) -> list[str]:
        """The sub-queues that have ready tasks."""
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

    def _look(self, utube: str) -> Tuple | None:
        if not self._follows:
            return None
        is_busy = self._first_row(TAKEN, utube) is not None
        head = None if is_busy else self._first_row(READY, utube)
        self._set(utube, head)
        return head

    def _look_again(self, utube: str) -> None:
        """Look at what is unsure: even with the head that it had, `moved` may have been told in a transaction
        that others do not see."""
        head = self._look(utube)
        if self._moved is not None and self._follows:
            self._moved(utube, head)

    def _first_row(self, state: str, utube: str) -> Tuple | None:
        # For itself, not for the user who has changed the space, and may have no right to read it.
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
        self._unsure.clear()


class _InteractiveTransaction(Protocol):
    """A client's open transaction, as far as its heads are concerned.

    Attributes:
        side_state: the state kept outside spaces that the transaction has changed, by its owner.
    """

    side_state: dict[object, Any]


class _Seen:
    """The sub-queues that one interactive transaction may see otherwise than the others do.

    Parameters:
        unsure: where the sub-queues go that are to be looked at again.
    """

    __slots__ = ("_unsure", "utubes")

    def __init__(self, unsure: set[str]) -> None:
        self._unsure = unsure
        self.utubes: set[str] = set()

    def put_in(self) -> None:
        """It is the transaction's turn."""
        self._unsure |= self.utubes

    def take_out(self) -> None:
        """It is the others' turn."""
        self._unsure |= self.utubes
