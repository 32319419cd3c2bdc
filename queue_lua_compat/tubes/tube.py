"""A tube: what clients and applications call, whatever the driver.

Source: README of github.com/tarantool/queue.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from iproto_server import STILL_WAITING, BoxError, ErrorCode, Space, Tuple, Waiter
from queue_lua_compat.lua_numbers import shown
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import (
    NOT_GIVEN,
    call_options,
    is_lua_number,
    number,
    options_of,
)
from queue_lua_compat.tubes.atomic import atomic
from queue_lua_compat.tubes.bulk import BulkCalls
from queue_lua_compat.tubes.context import TubeContext
from queue_lua_compat.tubes.driver import (
    BURIED,
    DONE,
    READY,
    STATUS,
    TAKEN,
    TASK_ID,
    Options,
    TubeDriver,
    follow,
    unfollow,
    with_state,
)
from queue_lua_compat.tubes.grants import grant_to_role, grant_to_user
from queue_lua_compat.tubes.system_spaces import QUEUE
from queue_lua_compat.tubes.system_spaces import TAKEN as TAKEN_SPACE
from queue_lua_compat.tubes.wait_queues import TAKING, forget_wait_queues, wait_queue_of

logger = logging.getLogger("queue_lua_compat.tubes")

TaskCallback = Callable[[Tuple | None, str | None], object]
"""What an application wants to be told of a tube's tasks: the task's row, and what has happened."""


class Tube(BulkCalls):
    """One tube.

    Every method is part of the running transaction. All answer None while the queue is not running, which is
    so on a read-only instance.

    Parameters:
        context: the objects that all tubes share.
        name: its name, and that of its space.
        kind: its type: the name of its driver.
        number: its number in `_queue`.
        driver: its driver's class.
        options: its options, as they stand in `_queue`.

    Attributes:
        raw: its driver.
        waiting: those who wait for a task.
        callback: what an application wants to be told, if anything.
    """

    def __init__(
        self,
        context: TubeContext,
        name: str,
        kind: str,
        number: int,
        driver: type[TubeDriver],
        options: Options,
    ) -> None:
        self._context = context
        self.box = context.box
        self.name = name
        self.kind = kind
        self.number = number
        self.options = options
        self.space: Space = self.box.space[name]
        self.callback: TaskCallback | None = None
        self.waiting = wait_queue_of(self.box, name, TAKING, self._take_again)
        self.raw = driver.new(self.box, self.space, self._task_changed, options)

    # -- start and stop --

    def start(self) -> None:
        """Give back tasks that nobody has any more, and start the driver."""
        self.release_orphans()
        follow(self.space, self._row_changed, self._row_undone)
        self.raw.start()

    def stop(self) -> None:
        """Stop the driver."""
        self.raw.stop()
        unfollow(self.box, self.name, self._row_changed)

    def release_orphans(self) -> None:
        """Make the taken tasks ready that belong to no session there is."""
        released = 0
        for task in self.raw.tasks_by_state(TAKEN):
            taken = self._taken.get([self.number, task[TASK_ID]])
            if taken is None or not self._context.sessions.is_known(taken[3]):
                self.raw.release(task[TASK_ID], {})
                released += 1
        if released:
            logger.info('queue: [tube "%s"] released %d tasks', self.name, released)

    # -- what clients call --

    @atomic
    def put(self, data: object = NOT_GIVEN, options: object = None) -> Tuple | Waiter | None:
        """Add a task.

        Parameters:
            data: anything.
            options: what the driver has: `ttl`, `ttr`, `delay`, `pri`, …

        Returns: the task; None when a limited tube has no room.
        """
        if not self._context.is_running("put"):
            return None
        given = call_options(options)
        if data is NOT_GIVEN:
            raise BoxError(ErrorCode.FIELD_MISSING, len(self.space.format()))
        task = self.raw.put(data, given)
        return self.raw.normalize_task(task) if isinstance(task, Tuple) else task

    @atomic
    def take(self, timeout: object = None) -> Tuple | Waiter | None:
        """Take a task.

        Parameters:
            timeout: seconds to wait for one; for ever unless given.

        Returns: the task; None when there was none in time.
        """
        if not self._context.is_running("take"):
            return None
        seconds = timestamps.LONGEST if timeout is None or timeout is False else number(timeout)
        if self.box.session.current.is_ended:
            # An async procedure may go on after its client has gone, who could not give the task back.
            return None
        task = self.raw.take()
        if task is not None:
            return self.raw.normalize_task(task)
        if timestamps.span(seconds) == 0:
            return None
        return self._context.consumers.park(self.waiting, self.number, min(seconds, timestamps.LONGEST))

    @atomic
    def touch(self, task_id: object = NOT_GIVEN, delta: object = None) -> Tuple | None:
        """Give a task that the session has taken more time.

        Parameters:
            task_id: the task's id.
            delta: seconds; nothing happens without, or when they are not more than zero.
        """
        if not self._context.is_running("touch") or delta is None:
            return None
        seconds = number(delta)
        if seconds <= 0:
            return None
        self._check_taken(task_id)
        longer = timestamps.NEVER if seconds > timestamps.LONGEST else timestamps.span(seconds)
        self._context.statistics.count(self.name, "touch")
        return self._normalized(self.raw.touch(task_id, longer))

    @atomic
    def ack(self, task_id: object = NOT_GIVEN) -> Tuple | None:
        """Remove a task that the session has taken. Returns: it, done."""
        if not self._context.is_running("ack"):
            return None
        self._check_taken(task_id)
        self.peek(task_id)
        self._taken.delete([self.number, task_id])
        task = self.raw.delete(task_id)
        self._context.statistics.count(self.name, "ack")
        self._context.statistics.count(self.name, "delete", -1)
        return None if task is None else self.raw.normalize_task(with_state(task, DONE))

    @atomic
    def release(self, task_id: object = NOT_GIVEN, options: object = None) -> Tuple | None:
        """Give a task back that the session has taken.

        Parameters:
            task_id: the task's id.
            options: `delay`, seconds until it is ready, where the driver has that.
        """
        if not self._context.is_running("release"):
            return None
        self._check_taken(task_id)
        self._taken.delete([self.number, task_id])
        self.peek(task_id)
        return self._normalized(self.raw.release(task_id, call_options(options)))

    @atomic
    def release_all(self) -> None:
        """Make all taken tasks ready, whoever has them."""
        if not self._context.is_running("release_all"):
            return
        released = 0
        for task in self.raw.tasks_by_state(TAKEN):
            self.raw.release(task[TASK_ID], {})
            released += 1
        logger.info('queue: [tube "%s"] released %d tasks', self.name, released)

    def peek(self, task_id: object = NOT_GIVEN) -> Tuple | None:
        """A task. Raises BoxError when there is none."""
        if not self._context.is_running("peek"):
            return None
        task = self.raw.peek(_key(task_id))
        if task is None:
            raise BoxError.procedure(f"Task {shown(task_id)} not found")
        return self.raw.normalize_task(task)

    @atomic
    def bury(self, task_id: object = NOT_GIVEN) -> Tuple | None:
        """Set a task aside, whoever has it."""
        if not self._context.is_running("bury"):
            return None
        task = self.peek(task_id)
        assert task is not None
        if self._is_taken_here(task_id):
            self._taken.delete([self.number, task_id])
        if task[STATUS] == BURIED:
            return task
        return self._normalized(self.raw.bury(task_id))

    @atomic
    def kick(self, count: object = None) -> int | None:
        """Make buried tasks ready.

        Parameters:
            count: how many at the most; one unless given.

        Returns: how many.
        """
        if not self._context.is_running("kick"):
            return None
        if count is None or count is False:
            count = 1
        if not is_lua_number(count):
            raise BoxError.procedure("'for' limit must be a number")
        if math.isnan(count):
            return 0
        kicked = self.raw.kick(max(int(min(count, self.space.len())), 0))
        return kicked if kicked < count else int(count)

    @atomic
    def delete(self, task_id: object = NOT_GIVEN) -> Tuple | None:
        """Remove a task, whoever has it. Returns: it, done."""
        if not self._context.is_running("delete"):
            return None
        self.peek(task_id)
        return self._normalized(self.raw.delete(task_id))

    @atomic
    def truncate(self) -> None:
        """Remove all tasks."""
        if not self._context.is_running("truncate"):
            return
        self.box.on_rollback(self._wake_soon)
        self.raw.truncate()

    @atomic
    def drop(self) -> bool | None:
        """Remove the tube, which nobody may be using.

        Returns: True.

        Raises:
            BoxError: somebody waits in it, or has a task of it.
        """
        if not self._context.is_running("drop"):
            return None
        if self.box.space[QUEUE].get([self.name]) is None:
            raise BoxError.procedure("Tube not found")
        if self._context.consumers.is_anybody_in(self.number):
            raise BoxError.procedure("There are consumers connected the tube")
        if self._taken.index["task"].first([self.number]) is not None:
            raise BoxError.procedure("There are taken tasks in the tube")
        self._context.forget(self.name)
        self.stop()
        self.raw.drop()
        self.box.space[QUEUE].delete([self.name])
        self._context.statistics.forget(self.name)
        forget_wait_queues(self.box, self.name)
        return True

    # -- what the operator calls --

    def grant(self, user: str, options: object = None) -> None:
        """Let a user work with the tube.

        Parameters:
            user: the user's name.
            options: `call` for the procedures that clients call, `truncate` for that one.
        """
        if not self._context.is_running("grant"):
            return
        grant_to_user(self.box, self.raw, self.name, user, options_of(options, "args"))

    def grant_role(self, role: str, options: object = None) -> None:
        """Let those who have a role work with the tube; as `grant`.

        Raises:
            BoxError: the driver does not know how.
        """
        if not self._context.is_running("grant"):
            return
        grant_to_role(self.box, self.raw, self.name, role, options_of(options, "args"))

    def on_task_change(self, callback: TaskCallback | None = None) -> TaskCallback | None:
        """Have a function called with the row of every task that changes, and what has happened.

        It runs within the transaction that changes the task; what it raises undoes that.

        Parameters:
            callback: the function; None for none.

        Returns: the one there was.
        """
        before, self.callback = self.callback, callback
        return before

    # -- for the queue --

    def give_back(self, task_id: object) -> None:
        """Make a task ready whose session is over."""
        self._taken.delete([self.number, task_id])
        task = self.raw.peek(task_id)
        if task is not None and task[STATUS] == TAKEN:
            self.raw.release(task_id, {})

    # -- inside --

    @property
    def _taken(self) -> Space:
        # Not kept: it becomes another space when it becomes temporary, or no longer is.
        return self.box.space[TAKEN_SPACE]

    def _take_again(self, most: int | None = None) -> object:
        """A call that waits tries once more; one that asked for many has a number for it."""
        if most is not None:
            return self.take_up_to(most) or STILL_WAITING
        task = self.raw.take()
        return STILL_WAITING if task is None else self.raw.normalize_task(task)

    def _normalized(self, task: Tuple | None) -> Tuple | None:
        return None if task is None else self.raw.normalize_task(task)

    def _is_taken_here(self, task_id: object) -> bool:
        """Whether the current session has taken the task."""
        session_uuid = self._context.sessions.identify(self.box.session.id())
        taken = self._taken.get([self.number, *_key(task_id)])
        return taken is not None and taken[3] == session_uuid

    def _check_taken(self, task_id: object) -> None:
        if not self._is_taken_here(task_id):
            raise BoxError.procedure("Task was not taken")

    def _task_changed(self, task: Tuple | None, event: str | None) -> None:
        """The driver has changed a task: note who has it, count, and see whether somebody has to be woken."""
        if self.callback is not None:
            self.callback(task, event)
        if task is None:
            return
        box = self.box
        key = [self.number, task[TASK_ID]]
        if self._taken.get(key) is not None:
            self._taken.delete(key)
        state = task[STATUS]
        if state == READY:
            if event is None:
                # Its row has not changed, so nobody else has noticed that it can be taken now.
                box.on_commit(self._wake)
        elif state == TAKEN:
            connection_id = box.session.id()
            session_uuid = self._context.sessions.identify(connection_id)
            self._taken.insert([*key, connection_id, session_uuid, timestamps.now(box)])
        if event is not None:
            self._context.statistics.count(self.name, event)
        if event == "delete":
            self._context.statistics.count_done(self.name)

    def _row_changed(self, old: Tuple | None, new: Tuple | None) -> None:
        """A task has become ready, whoever has made it so: one who waits may try."""
        if new is not None and new[STATUS] == READY:
            # Whoever waits by then: a stream's transaction takes its time.
            self.box.on_commit(self._wake)

    def _wake(self) -> None:
        if self.waiting:
            self.waiting.wake()

    def _row_undone(self, old: Tuple | None, new: Tuple | None) -> None:
        # When the log could not be written, others have seen the change: what they did is to do again.
        if old is not None and self.waiting and old[STATUS] == READY:
            self._wake_soon()

    def _wake_soon(self) -> None:
        self.box.clock.call_later(0.0, self.wake_all)

    def wake_all(self) -> None:
        """Let all who wait try, until one finds nothing."""
        self.waiting.wake(len(self.waiting))


def _key(task_id: object) -> list[Any]:
    return [] if task_id is NOT_GIVEN else [task_id]
