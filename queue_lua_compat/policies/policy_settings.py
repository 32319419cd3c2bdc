"""The stored settings of a queue's policy."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from iproto_server import Box, QueueState, Steps, Tuple
from queue_lua_compat.policies.attempts import Attempts
from queue_lua_compat.policies.ended_connections import EndedConnections
from queue_lua_compat.policies.options import (
    TASK_OPTIONS,
    QueueOptions,
    ReleaseLimitPolicy,
    refuse_unknown,
    stored,
)
from queue_lua_compat.policies.spaces import SETTINGS, PolicySpace
from queue_lua_compat.policies.unique_keys import UniqueKeys

_STATE, _DEAD_LETTERS_OF, _OPTIONS = 1, 2, 3


class PolicySettings:
    """The stored settings of a queue's policy, and what is known of its tasks.

    Parameters:
        box: the box.
        queue: the name of the queue, as operators see it.
        names: the names of the queue's options.
        base: the options that come with the queue itself, as of `create_tube`; stored ones come first.
        resumed: called when takes find tasks again.
        open_dead_letters: creates the queue of dead letters unless it exists. It raises BoxError if there is
            another queue with that name.

    Attributes:
        state: whether it is running, paused (no task is handed out) or draining (new tasks are refused).
        is_paused, is_draining: the same.
        options: the options in effect.
        given: the same, as they were given.
        task_option_names: the names of the policy's options of put.
        dead_letters_of: the queue whose dead letters this one has; None if it is another queue.
        has_rows: whether rows about its tasks may exist, so that the policy must hear of removed tasks.
        limits_time: whether a taken task may have a time to run.
        logs_unknown: whether all options of calls are known.
    """

    def __init__(
        self,
        box: Box,
        queue: str,
        names: Iterable[str],
        base: Mapping[Any, Any],
        resumed: Callable[[], object],
        open_dead_letters: Callable[[], object],
    ) -> None:
        self._box = box
        self.queue = queue
        self.names = frozenset(names)
        self._base = stored(base, self.names)
        self._resumed = resumed
        self._open_dead_letters = open_dead_letters
        self._settings = PolicySpace(box, SETTINGS)
        self._attempts = Attempts(box, queue)
        self._unique_keys = UniqueKeys(box, queue)
        self.logs_unknown = True
        self._unknown_names: set[str] = set()
        self._ended_connections = EndedConnections(box, queue)
        self._chance: Callable[[], float] = random.random
        self.state = QueueState.RUNNING
        self.is_paused = self.is_draining = False
        self.dead_letters_of: str | None = None
        self.given = dict(self._base)
        self.options = QueueOptions.of(self.given)
        self.has_rows = self._has_attempts = self._has_keys = False
        self.limits_time = self._has_own_times = False
        self.task_option_names = TASK_OPTIONS | ({"ttr"} & self.names)

    # -- settings --

    def start(self, exists: Callable[[Any], bool]) -> None:
        """Load what is stored, and forget tasks that are gone: another server may have had the database.

        Parameters:
            exists: returns whether there is a task with an id.
        """
        self._as_admin(self._start, exists)

    def _start(self, exists: Callable[[Any], bool]) -> None:
        self.load()
        self._attempts.remove_where(lambda task_id: not exists(task_id))
        self._unique_keys.tasks_removed(lambda task_id: not exists(task_id))
        self._has_attempts, self._has_keys = self._attempts.any(), self._unique_keys.any()
        if self._has_keys:
            self._unique_keys.open()
        self.has_rows = self._has_attempts or self._has_keys or bool(self._ended_connections)
        self._has_own_times = self._attempts.any_with("ttr")
        self.limits_time = self._has_own_times or self.options.ttr is not None

    def load(self) -> None:
        """Load the stored settings."""
        row = self._row()
        was_paused = self.is_paused
        self.state = QueueState.RUNNING if row is None else QueueState(row[_STATE])
        self.is_paused = self.state == QueueState.PAUSED
        self.is_draining = self.state == QueueState.DRAINING
        self.dead_letters_of = None if row is None else row[_DEAD_LETTERS_OF] or None
        self.given = self._base if row is None else {**self._base, **row[_OPTIONS]}
        self.options = QueueOptions.of(self.given)
        self.limits_time = self._has_own_times or self.options.ttr is not None
        if was_paused and not self.is_paused:
            self._resumed()

    @property
    def is_set(self) -> bool:
        """Whether it differs from that of a queue without a policy."""
        return bool(self.given) or self.state != QueueState.RUNNING or self.dead_letters_of is not None

    def configure(self, options: Mapping[Any, Any]) -> None:
        """Change some of the options.

        Parameters:
            options: the new values; nil for that of the queue itself.

        Raises:
            BoxError: an option is unknown or wrong.
        """
        refuse_unknown(options, self.names, f'the queue "{self.queue}"')
        row = self._as_admin(self._row)
        changed = {**({} if row is None else row[_OPTIONS]), **options}
        changed = {name: value for name, value in changed.items() if value is not None}
        self.prepare(QueueOptions.of({**self._base, **changed}))
        self._store(_OPTIONS, changed)

    def prepare(self, options: QueueOptions | None = None) -> None:
        """Open the queue of dead letters if options, by default those in effect, need it.

        Raises:
            BoxError: there is another queue with its name.
        """
        options = self.options if options is None else options
        if options.release_limit_policy == ReleaseLimitPolicy.DLQ:
            with self._box.beyond_memory_limit():
                self._as_admin(self._open_dead_letters)

    def set_state(self, state: QueueState) -> None:
        """Pause, drain or resume the queue."""
        self._store(_STATE, state.value)

    def mark_dead_letters_of(self, queue: str) -> None:
        """Make this the queue of another queue's dead letters."""
        self._store(_DEAD_LETTERS_OF, queue)

    def rename(self, before: str, after: str) -> None:
        """Keep all rows under another name: the space of the queue has been renamed.

        Parameters:
            before, after: what the names of the queue, and of the one whose dead letters it has, begin with.
        """
        renamed = after + self.queue.removeprefix(before)
        self._as_admin(self._move, renamed, before, after)
        self._box.on_rollback(partial(self._set_name, self.queue))
        self._set_name(renamed)

    def _move(self, renamed: str, before: str, after: str) -> None:
        self._attempts.rename(renamed)
        self._unique_keys.rename(renamed)
        row = self._row()
        if row is not None:
            origin = row[_DEAD_LETTERS_OF]
            if origin.startswith(before):
                origin = after + origin.removeprefix(before)
                self.dead_letters_of = origin
            space = self._settings.open()
            space.delete([self.queue])
            space.replace([renamed, row[_STATE], origin, *row[_OPTIONS:]])

    def _set_name(self, queue: str) -> None:
        self.queue = self._attempts.queue = self._unique_keys.queue = queue
        self._ended_connections.rename(queue)

    def forget(self) -> None:
        """Remove all rows, and keys that are remembered: the queue is dropped, or has just been created.

        Earlier versions left keys of dropped queues.
        """
        self._box.in_one_slice(self.forget_steps(lambda: True))

    def forget_steps(self, is_gone: Callable[[], bool]) -> Steps[None]:
        """Remove the same rows, one in each step; the settings in the first.

        Parameters:
            is_gone: returns whether the rows still are those of a dropped queue.
        """
        self._as_admin(self._forget_settings)
        for remove_first in (self._attempts.remove_first, self._unique_keys.remove_first):
            while is_gone() and self._as_admin(remove_first):
                yield

    def _forget_settings(self) -> None:
        space = self._settings.find()
        if space is not None:
            space.delete([self.queue])
        self._box.on_commit(self._ended_connections.clear)

    def _store(self, field: int, value: object) -> None:
        self._as_admin(self._write, field, value)
        self._as_admin(self.load)
        self._box.on_commit(self._load_as_admin)
        self._box.on_rollback(partial(self._box.clock.call_later, 0.0, self._load_as_admin))

    def _write(self, field: int, value: object) -> None:
        space = self._settings.open()
        self._attempts.open()  # a stream could not
        row: list[Any] = [self.queue, QueueState.RUNNING.value, "", {}]
        before = space.get([self.queue])
        if before is not None:
            row = list(before)
        row[field] = value
        space.replace(row)

    def _load_as_admin(self) -> None:
        self._box.run(self._box.session.background, self.load)

    def _row(self) -> Tuple | None:
        space = self._settings.find()
        return None if space is None else space.get([self.queue])

    def _as_admin(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._box.session.su("admin", function, *arguments)
