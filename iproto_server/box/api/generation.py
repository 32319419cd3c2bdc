"""One generation of the applications' code makes way for the next one, while the box lives on.

What a generation has set in the box (triggers, watchers) goes with it, wherever in its code it was set; rows,
sessions, waiters and what is kept by `Box.keep` stay.
"""

from __future__ import annotations

from iproto_server.box.api.core import BoxCore


class Handover:
    """Begins when it is made: what is set in the box from now on is the next generation's.

    Parameters:
        box: the box.
    """

    def __init__(self, box: BoxCore) -> None:
        self._box = box
        self._lists = list(box.session.trigger_lists)
        for space in box.catalog:
            self._lists += (space.on_replace, space.before_replace)
        self._put_back = [triggers.hand_over() for triggers in self._lists]
        self._watchers, box.local_watchers = box.local_watchers, {}
        box.generation += 1
        self._is_taken_back = False

    def complete(self) -> None:
        """The next generation has set what it needs: what is left of the one before goes."""
        for triggers in self._lists:
            triggers.handed_over()
        for watcher in self._watchers:
            watcher.pause()

    def take_back(self) -> None:
        """The next generation goes, completed or not, and the one before is back; harmless the next time."""
        if self._is_taken_back:
            return
        self._is_taken_back = True
        for put_back in self._put_back:
            put_back()
        for watcher in self._box.local_watchers:
            watcher.pause()
        self._box.local_watchers = self._watchers
        for watcher in self._watchers:
            watcher.resume()
        self._box.generation -= 1
