"""Lists of triggers, set and replaced as in Tarantool."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final

from iproto_server.native._native import Triggers

logger = logging.getLogger("iproto_server.trigger")

Trigger = Callable[..., Any]

_NO_UNDOS: Final[Mapping[Trigger, Trigger]] = MappingProxyType({})


class TriggerList(Triggers):
    """Functions that run on an event, the newest first.

    Source: Tarantool reference, "Triggers": `object:on_event(new, old)` replaces `old`, adds when there is no
    `old`, deletes `old` when there is no `new`, and returns the list when both are absent.
    """

    __slots__ = ("_is_taken_over", "_outgoing", "_undos")

    about_to_change: ClassVar[Callable[[TriggerList], object] | None] = None
    """Called before a list changes, while new code sets its triggers."""

    def __init__(self) -> None:
        self._undos = _NO_UNDOS
        self._outgoing: tuple[Trigger, ...] = ()
        self._is_taken_over = False

    def __bool__(self) -> bool:
        return bool(self.functions)

    def set(
        self, new: Trigger | None = None, old: Trigger | None = None, undo: Trigger | None = None
    ) -> Trigger | list[Trigger] | None:
        """Add, replace or delete a trigger.

        Parameters:
            new: the function to add, or to put in the place of `old`.
            old: the function to replace or, without `new`, to delete.
            undo: called with the same arguments when a change for which `new` ran is rolled back.

        Returns: `new`; without arguments, the list of triggers.

        Raises:
            TypeError: `new` cannot be called.
            ValueError: `old` is not in the list.
        """
        if new is None and old is None:
            return list(self.functions)
        if new is not None and not callable(new):
            raise TypeError(f"a trigger must be callable, not {type(new).__name__}")
        if TriggerList.about_to_change is not None:
            TriggerList.about_to_change(self)
        if self._outgoing:
            if new is not None and not self._is_taken_over:
                self._is_taken_over = True
                self._clear()
            if old in self._outgoing and old not in self.functions:
                old = None  # it is gone already
                if new is None:
                    return None
        if old is None:
            assert new is not None
            self.functions = (new, *self.functions)
        else:
            if old not in self.functions:
                raise ValueError("the trigger to replace is not set")
            # Compared by equality: each access to a bound method creates another object.
            self.functions = tuple(
                replacement
                for function in self.functions
                for replacement in ([new] if function == old else [function])
                if replacement is not None
            )
            if old in self._undos:
                self._undos = {each: undo for each, undo in self._undos.items() if each != old}
        if new is not None and undo is not None:
            self._undos = {**self._undos, new: undo}
        return new

    def start_replacement(self) -> Callable[[], None]:
        """Let reloaded code replace the triggers.

        The old triggers stay until the new code sets its first one, or until `finish_replacement`. Changes
        before that run the old triggers; no change runs both.

        Returns: a function that restores the present list.
        """
        self._outgoing = self.functions
        self._is_taken_over = False
        return partial(self.restore, self.functions, self._undos)

    def remove_all(self) -> tuple[tuple[Trigger, ...], Mapping[Trigger, Trigger]]:
        """Remove all triggers. Returns: the arguments of `restore`."""
        removed = self.functions, self._undos
        self._clear()
        return removed

    def restore(self, functions: tuple[Trigger, ...], undos: Mapping[Trigger, Trigger]) -> None:
        """Restore the triggers of an earlier moment."""
        self.functions, self._undos, self._outgoing = functions, undos, ()

    def finish_replacement(self) -> None:
        """End the replacement: old triggers that are still in the list are removed."""
        if self._outgoing and not self._is_taken_over:
            self._clear()
        self._outgoing = ()

    def _clear(self) -> None:
        self.functions = ()
        self._undos = _NO_UNDOS

    def undo(self, ran: tuple[Trigger, ...], *args: object) -> None:
        """Call the undo functions of the triggers in `ran`, the last first."""
        if self._undos:
            for function in reversed(ran):
                undo = self._undos.get(function)
                if undo is None:
                    continue
                try:
                    undo(*args)
                except BaseException:
                    # Errors of application code must not stop a rollback half way.
                    logger.exception("a trigger's undo failed")
