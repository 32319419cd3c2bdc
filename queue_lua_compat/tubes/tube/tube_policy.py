"""The policy of a tube, whose driver stores its dead letters and delays its tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from iproto_server import BoxError, Tuple
from queue_lua_compat.policies.attempts import Cause
from queue_lua_compat.policies.failures import Failure
from queue_lua_compat.policies.options import QUEUE_OPTIONS, QueueOptions, ReleaseLimitPolicy
from queue_lua_compat.policies.queue_policy import QueuePolicy
from queue_lua_compat.tubes.context import TubeContext
from queue_lua_compat.tubes.driver import TASK_ID, Options, TubeDriver

logger = logging.getLogger("queue_lua_compat.tubes")


class TubePolicy(QueuePolicy):
    """The policy of a tube.

    Parameters:
        context: the objects that all tubes share.
        name: the name of the tube.
        kind: its type.
        driver: its driver.
        options: its options, as stored in `_queue`.
        resumed: called when takes find tasks again.
    """

    def __init__(
        self,
        context: TubeContext,
        name: str,
        kind: str,
        driver: TubeDriver,
        options: Options,
        resumed: Callable[[], object],
    ) -> None:
        super().__init__(
            context.box, name, QUEUE_OPTIONS, options, resumed, partial(context.dead_letters_of, name)
        )
        self._context = context
        self._kind = kind
        self._driver = driver

    def check(self, options: Mapping[str, object]) -> None:
        """Check changes of the options. Raises BoxError if one needs what the driver lacks."""
        self.check_driver(QueueOptions.of({**self.given, **options}))

    def check_driver(self, options: QueueOptions) -> None:
        """Raise BoxError if options need what the driver lacks."""
        for name, retry in (("retry", options.retry), ("disconnect_retry", options.disconnect_retry)):
            if retry is not None and not self._driver.has_delays:
                raise BoxError.procedure(
                    f"tasks of the type {self._kind} have no delays, so there is no {name}"
                )
        if options.release_limit_policy == ReleaseLimitPolicy.DLQ and not self._driver.has_dead_letters:
            raise BoxError.procedure(f"tasks of the type {self._kind} cannot become dead letters")

    def timed_out(self, task: Tuple) -> None:
        """Handle a failed attempt of a task that is ready again, as its time to run was over."""
        if self._driver.is_expired(task):
            return
        failure = self.failed(task[TASK_ID], Cause.TIMEOUT)
        if failure is None:
            return
        if failure.is_final:
            self.end(task[TASK_ID], failure)
        elif failure.delay:
            self._driver.postpone(task[TASK_ID], failure.delay)

    def end(self, task_id: object, failure: Failure) -> Tuple | None:
        """Delete a task, or make it a dead letter, after its last attempt; return its row as `delete`."""
        logger.warning(
            'queue: [tube "%s"] the task %s has reached its release_limit: %s',
            self.queue,
            task_id,
            failure.policy,
        )
        task = self._driver.peek(task_id)
        if task is not None and failure.policy == ReleaseLimitPolicy.DLQ:
            with self._box.beyond_memory_limit():
                self._as_admin(self._make_dead_letter, task)
        return self._driver.delete(task_id)

    def _make_dead_letter(self, task: Tuple) -> None:
        dead_letters: Any = self._context.dead_letters_of(self.queue)
        adopted = dead_letters.raw.adopt(task)
        self.hand_over(task[TASK_ID], dead_letters.policy, adopted[TASK_ID])
