"""Reloading application code while the box keeps running.

Triggers and watchers belong to the generation of code that has set them and are removed with it. Rows,
sessions, waiters and objects of `Box.keep` stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from iproto_server.box.api.core import BoxCore
from iproto_server.box.txn.trigger import TriggerList


class CodeGeneration:
    """A new generation of application code: owns the triggers and watchers set from its creation on.

    Until it is completed or reverted, it has to be the only code that runs.

    Parameters:
        box: the box.
    """

    def __init__(self, box: BoxCore) -> None:
        self._box = box
        self._changed: dict[TriggerList, None] = {}
        self._put_back: list[Callable[[], None]] = []
        # Triggers and their undo functions, which follow their list: a tuple each would take twice the time.
        self._removed: list[Any] = []
        self._watchers, box.local_watchers = box.local_watchers, {}
        box.generation += 1
        self._is_reverted = False
        # Few of the lists change, and there may be many spaces.
        TriggerList.about_to_change = self._about_to_change

    def complete(self) -> None:
        """End the setup of the new generation, and remove triggers and watchers of the one before."""
        TriggerList.about_to_change = None
        for triggers in self._changed:
            triggers.finish_replacement()
        self._remove_unchanged(self._box.session.trigger_lists)
        for space in self._box.catalog:
            if space.on_replace.functions or space.before_replace.functions:
                self._remove_unchanged((space.on_replace, space.before_replace))
        for watcher in self._watchers:
            watcher.pause()

    def revert(self) -> None:
        """Restore the generation before, whether or not this one was completed; safe to repeat."""
        if self._is_reverted:
            return
        self._is_reverted = True
        TriggerList.about_to_change = None
        for put_back in self._put_back:
            put_back()
        parts = iter(self._removed)
        for triggers, functions, undos in zip(parts, parts, parts, strict=True):
            triggers.restore(functions, undos)
        for watcher in self._box.local_watchers:
            watcher.pause()
        self._box.local_watchers = self._watchers
        for watcher in self._watchers:
            watcher.resume()
        self._box.generation -= 1

    def _about_to_change(self, triggers: TriggerList) -> None:
        if triggers not in self._changed:
            self._changed[triggers] = None
            self._put_back.append(triggers.start_replacement())

    def _remove_unchanged(self, lists: Iterable[TriggerList]) -> None:
        for triggers in lists:
            if triggers.functions and triggers not in self._changed:
                self._removed.append(triggers)
                self._removed += triggers.remove_all()
