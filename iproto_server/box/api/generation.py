"""Reloading application code while the box keeps running.

Triggers and watchers belong to the generation of code that has set them and are removed with it. Rows,
sessions, waiters and objects of `Box.keep` stay.
"""

from __future__ import annotations

from iproto_server.box.api.core import BoxCore


class CodeGeneration:
    """A new generation of application code: owns the triggers and watchers set from its creation on.

    Parameters:
        box: the box.
    """

    def __init__(self, box: BoxCore) -> None:
        self._box = box
        self._lists = list(box.session.trigger_lists)
        for space in box.catalog:
            self._lists += (space.on_replace, space.before_replace)
        self._put_back = [triggers.start_replacement() for triggers in self._lists]
        self._watchers, box.local_watchers = box.local_watchers, {}
        box.generation += 1
        self._is_reverted = False

    def complete(self) -> None:
        """End the setup of the new generation, and remove triggers and watchers of the one before."""
        for triggers in self._lists:
            triggers.finish_replacement()
        for watcher in self._watchers:
            watcher.pause()

    def revert(self) -> None:
        """Restore the generation before, whether or not this one was completed; safe to repeat."""
        if self._is_reverted:
            return
        self._is_reverted = True
        for put_back in self._put_back:
            put_back()
        for watcher in self._box.local_watchers:
            watcher.pause()
        self._box.local_watchers = self._watchers
        for watcher in self._watchers:
            watcher.resume()
        self._box.generation -= 1
