"""The policy of a queue: what follows a failed attempt, which puts are refused, whether it is paused."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final

from iproto_server import Box, BoxError, QueueState, Steps, Tuple
from queue_lua_compat.lua_numbers import described
from queue_lua_compat.policies.attempts import Attempts, Cause, disconnects, total
from queue_lua_compat.policies.ended_connections import EndedConnections
from queue_lua_compat.policies.failures import Failure
from queue_lua_compat.policies.options import (
    ATTEMPT_OPTIONS,
    TASK_OPTIONS,
    QueueOptions,
    ReleaseLimitPolicy,
    no_option,
    refuse_unknown,
    stored,
)
from queue_lua_compat.policies.spaces import ATTEMPTS, SETTINGS, UNIQUE_KEYS, PolicySpace
from queue_lua_compat.policies.unique_keys import UniqueKeys

DEAD_LETTERS: Final = "_dlq"
"""The end of the name of a queue of dead letters."""

_UNKNOWN_MAX: Final = 20
"""Unknown names of options that are logged for a queue: clients choose them."""

logger = logging.getLogger("queue_lua_compat.policies")

_STATE, _DEAD_LETTERS_OF, _OPTIONS = 1, 2, 3
_KEPT_WITH_TASK: Final = (*ATTEMPT_OPTIONS, "ttr")


class QueuePolicy:
    """The policy of a queue. Its rows are read and written with the rights of admin.

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

    # -- puts --

    def refusal(self) -> BoxError:
        """Return the error of a put while the queue is draining."""
        return BoxError.procedure(f'the queue "{self.queue}" is draining: it takes no new tasks')

    def task_options(self, given: Mapping[Any, Any], others: Collection[str]) -> QueueOptions | None:
        """Check the options of a put; return None if none of them is a policy's.

        Parameters:
            given: the options.
            others: the names of the queue's own options of put.

        Raises:
            BoxError: a value is wrong, or an option is unknown to a queue with `strict_options`.
        """
        for name in given:
            if name not in self.task_option_names and name not in others:
                self._unknown(name, (*others, *self.task_option_names), "put")
        if self.task_option_names.isdisjoint(given):
            return None
        options = {name: value for name, value in given.items() if name in self.task_option_names}
        return QueueOptions.of(options) if any(value is not None for value in options.values()) else None

    def check_names(self, given: Mapping[Any, Any], known: Collection[str], what: str) -> None:
        """Refuse options that are unknown, if they are to be; otherwise log each name once.

        Parameters:
            given: the options.
            known: the names of the call's options.
            what: the call, for the message.

        Raises:
            BoxError: there is an unknown option, and `strict_options`.
        """
        for name in given:
            if name not in known:
                self._unknown(name, known, what)

    def _unknown(self, name: object, known: Collection[str], what: str) -> None:
        if self.options.strict_options:
            raise BoxError.procedure(no_option(name, known, what))
        seen, names = described(name), self._unknown_names
        if not self.logs_unknown or seen in names or len(names) >= _UNKNOWN_MAX:
            return
        names.add(seen)
        logger.warning(
            'queue "%s": %s; it is ignored, as there is no strict_options',
            self.queue,
            no_option(name, known, what),
        )

    def own(self, given: Mapping[Any, Any]) -> list[str]:
        """Return the names of the policy's options among those of a put."""
        return [name for name in given if name in self.task_option_names]

    def find_unique(self, options: QueueOptions) -> tuple[Any, bool] | None:
        """Find the task that was put with the same key.

        Returns: its id, and whether it still exists; None if there was none.
        """
        if options.unique_key is None:
            return None
        found: tuple[Any, bool] | None = self._as_admin(self._unique_keys.find, options.unique_key)
        return found

    def task_put(self, task_id: Any, options: QueueOptions, given: Mapping[Any, Any]) -> None:
        """Store the options of a new task.

        Parameters:
            task_id: its id.
            options: its options, as checked by `task_options`.
            given: its options as given.
        """
        self._as_admin(self._task_put, task_id, options, given)

    def _task_put(self, task_id: Any, options: QueueOptions, given: Mapping[Any, Any]) -> None:
        kept = stored(given, _KEPT_WITH_TASK)
        if kept:
            if options.release_limit_policy is ReleaseLimitPolicy.DLQ:
                self._open_dead_letters()
            self.has_rows = self._has_attempts = True
            if "ttr" in kept:
                self.limits_time = self._has_own_times = True
            self._attempts.set_options(task_id, kept)
        if options.unique_key is not None:
            self.has_rows = self._has_keys = True
            self._unique_keys.add(options.unique_key, task_id, options.unique_for)

    # -- tasks --

    def options_of(self, task_id: Any) -> QueueOptions:
        """Return the options of a task, with those of the queue that it does not have."""
        if not self._has_attempts:
            return self.options
        own = self._as_admin(self._attempts.options, task_id)
        return QueueOptions.of({**self.given, **own}) if own else self.options

    def failed(self, task_id: Any, cause: Cause, max_failures: int | None = None) -> Failure | None:
        """Count a failed attempt, and return what follows; None if attempts are not counted.

        Connections that close while the server stops are no failures.

        Parameters:
            task_id: the task's id.
            cause: why it has failed.
            max_failures: the limit of a consumer, for which attempts are counted as well; None: it has none.
        """
        if cause is Cause.DISCONNECT:
            if self._box.is_stopping:
                return None
            self._set_connections(task_id, self._ended_connections[task_id] + 1)
            self._box.on_commit(partial(self._ended_connections.warn, task_id))
        elif not (self._has_attempts or self.options.counts_attempts or max_failures):
            return None
        options = self.options_of(task_id)
        retry = options.retry
        if cause is Cause.DISCONNECT and options.disconnect_retry is not None:
            retry = options.disconnect_retry
        if not options.counts_attempts and retry is None and max_failures is None:
            return None
        self.has_rows = self._has_attempts = True
        row = self._as_admin(self._attempts.count, task_id, cause)
        attempts = total(row)
        delay = None
        if retry is not None:
            growing_with = attempts if retry is options.retry else disconnects(row)
            delay = retry.delay_after(growing_with, self._chance())
        return Failure(
            is_final=bool(options.release_limit) and attempts >= (options.release_limit or 0),
            policy=options.release_limit_policy or ReleaseLimitPolicy.DELETE,
            delay=delay,
            attempts=attempts,
        )

    def _set_connections(self, task_id: Any, count: int) -> None:
        """Store the number of connections that a task has ended, within the running transaction."""
        before = self._ended_connections[task_id]
        self._box.on_rollback(partial(self._restore_connections, task_id, before))
        self._restore_connections(task_id, count)

    def _restore_connections(self, task_id: Any, count: int) -> None:
        self._ended_connections.set(task_id, count)
        self.has_rows = self._has_attempts or self._has_keys or bool(self._ended_connections)

    def suspicious_tasks(self) -> dict[Any, int]:
        """Return the tasks that have ended several connections of consumers, with the number of these."""
        return self._ended_connections.suspicious()

    def kicked(self, task_id: Any) -> None:
        """Give a kicked task all of its attempts again."""
        if self._has_attempts:
            self._as_admin(self._attempts.reset, task_id)

    def task_removed(self, task_id: Any) -> None:
        """Forget a removed task. Call it where `has_rows` is true."""
        if task_id in self._ended_connections:
            self._set_connections(task_id, 0)
        if self._has_attempts or self._has_keys:
            self._as_admin(self._task_removed, task_id)

    def _task_removed(self, task_id: Any) -> None:
        if self._has_attempts:
            self._attempts.remove(task_id)
        if self._has_keys:
            self._unique_keys.task_removed(task_id)

    def hand_over(self, task_id: Any, dead_letters: QueuePolicy, new_id: Any) -> None:
        """Keep the counters of a task that becomes a dead letter. Call it before the task is removed here."""
        dead_letters.has_rows = dead_letters._has_attempts = True
        self._as_admin(self._attempts.move, task_id, dead_letters._attempts, new_id)

    def truncated(self) -> None:
        """Forget all tasks."""
        if self.has_rows:
            self._as_admin(self._all_removed)

    def _all_removed(self) -> None:
        self._box.on_commit(self._ended_connections.clear)
        self._attempts.remove_where(lambda _: True)
        self._unique_keys.tasks_removed(lambda _: True)

    def details(self, task_id: Any) -> dict[str, object]:
        """Return the failed attempts of a task, for operators."""
        counts: dict[str, object] | None = None
        if self._has_attempts:
            counts = self._as_admin(self._attempts.counts, task_id)
        ended = self._ended_connections[task_id]
        return {**(counts or {}), **({"ended_connections": ended} if ended else {})}

    def _as_admin(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._box.session.su("admin", function, *arguments)


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
