"""The policy of a queue: what follows a failed attempt, which puts are refused, whether it is paused."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

from iproto_server import BoxError
from queue_lua_compat.lua_numbers import described
from queue_lua_compat.policies.attempts import Cause, disconnects, total
from queue_lua_compat.policies.failures import Failure
from queue_lua_compat.policies.options import (
    ATTEMPT_OPTIONS,
    QueueOptions,
    ReleaseLimitPolicy,
    no_option,
    stored,
)
from queue_lua_compat.policies.policy_settings import PolicySettings

DEAD_LETTERS: Final = "_dlq"
"""The end of the name of a queue of dead letters."""

_UNKNOWN_MAX: Final = 20
"""Unknown names of options that are logged for a queue: clients choose them."""

logger = logging.getLogger("queue_lua_compat.policies")

_KEPT_WITH_TASK: Final = (*ATTEMPT_OPTIONS, "ttr")


class QueuePolicy(PolicySettings):
    """The policy of a queue. Its rows are read and written with the rights of admin."""

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
