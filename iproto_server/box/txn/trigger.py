"""Lists of triggers, set and replaced as in Tarantool."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

logger = logging.getLogger("iproto_server.trigger")

Trigger = Callable[..., Any]


class TriggerList:
    """Functions that run on an event, the newest first.

    Source: Tarantool reference, "Triggers": `object:on_event(new, old)` replaces `old`, adds when there is no
    `old`, deletes `old` when there is no `new`, and returns the list when both are absent.
    """

    __slots__ = ("_is_taken_over", "_outgoing", "_undos", "functions")

    about_to_change: ClassVar[Callable[[TriggerList], object] | None] = None
    """Called before a list changes, while new code sets its triggers."""

    def __init__(self) -> None:
        self.functions: tuple[Trigger, ...] = ()
        self._undos: dict[Trigger, Trigger] = {}
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
            self._undos.pop(old, None)
        if new is not None and undo is not None:
            self._undos[new] = undo
        return new

    def start_replacement(self) -> Callable[[], None]:
        """Let reloaded code replace the triggers.

        The old triggers stay until the new code sets its first one, or until `finish_replacement`. Changes
        before that run the old triggers; no change runs both.

        Returns: a function that restores the present list.
        """
        functions, undos = self.functions, self._undos
        self._undos = dict(undos)
        self._outgoing = functions
        self._is_taken_over = False

        return partial(self._set_all, functions, undos)

    def remove_all(self) -> Callable[[], None]:
        """Remove all triggers. Returns: a function that restores them."""
        put_back = partial(self._set_all, self.functions, self._undos)
        self._clear()
        return put_back

    def _set_all(self, functions: tuple[Trigger, ...], undos: dict[Trigger, Trigger]) -> None:
        self.functions, self._undos, self._outgoing = functions, undos, ()

    def finish_replacement(self) -> None:
        """End the replacement: old triggers that are still in the list are removed."""
        if self._outgoing and not self._is_taken_over:
            self._clear()
        self._outgoing = ()

    def _clear(self) -> None:
        self.functions = ()
        self._undos = {}

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
