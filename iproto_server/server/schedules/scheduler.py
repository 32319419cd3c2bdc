"""Puts the tasks of schedules when they are due.

A task and the note that its due time is handled are one transaction, so that each due time leads to one task,
whatever happens between them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from iproto_server.box import Box, Space, Tuple
from iproto_server.box.api.due_timer import DueTimer
from iproto_server.box.api.slices import Steps
from iproto_server.box.backoff import pause_after
from iproto_server.errors import BoxError
from iproto_server.logging.log_setup import event
from iproto_server.managed_queue import ManagedQueue
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.schedules.schedule import (
    HANDLED,
    LAST_DUE,
    LAST_PUT,
    LAST_TASK,
    Missed,
    Schedule,
    find_space,
    record_of,
)

if TYPE_CHECKING:
    from iproto_server.server.schedules.cron import CronExpression

logger = logging.getLogger("iproto_server.schedules")

LATE_MAX: Final = 60
"""Seconds after which `missed = none` skips a due time."""
PUTS_MAX: Final = 100
"""The maximum number of tasks that one schedule puts in a transaction."""
TRANSACTION_MAX: Final = 50
"""The number of tasks after which a transaction ends; the other schedules follow in the next one."""
LOOKED_AT_MAX: Final = 100
"""The number of schedules that are looked at in a transaction."""
LONGEST_PAUSE: Final = 60.0
"""Seconds, at most, until a put that failed is tried again."""

Record = dict[str, Any]


@dataclass(slots=True)
class _Failure:
    """Why a schedule could not put its last task."""

    text: str
    at: float
    delay: float
    number: int = 0

    def waits(self, now: float) -> bool:
        """Whether the next attempt is later. After the clock has stepped back, it is not."""
        return self.at <= now < self.at + self.delay


@dataclass(slots=True)
class _Due:
    """The next due time of a schedule, as long as its row has the same fields."""

    key: tuple[str, str, int]
    cron: CronExpression
    at: int | None


class Scheduler:
    """The one timer of all schedules.

    Parameters:
        box: the box.
        queues: finds the queues.
    """

    def __init__(self, box: Box, queues: ApplicationQueues) -> None:
        self._box = box
        self._queues = queues
        self._timer = DueTimer(box, self._put_due, "schedules")
        self._due: dict[str, _Due] = {}
        self._failures: dict[str, _Failure] = {}
        # The schedules are looked at in rounds of several passes: the last one so far, and the next due time.
        self._last = ""
        self._earliest = math.inf
        self._is_running = False

    # -- starting and stopping --

    def start(self) -> None:
        """Put what is due, and wait for the next due time. Must not be called in a transaction."""
        self._is_running = True
        self._box.when_writable.append(self.look_soon)
        self._timer.run()

    def stop(self) -> None:
        """Put no more tasks."""
        self._is_running = False
        self._box.when_writable.remove(self.look_soon)
        self._timer.stop()

    def look_soon(self) -> None:
        """Look at the schedules in the next iteration of the event loop."""
        self._look_later(0.0)

    def changes(self, name: str) -> None:
        """Take notice of a changed schedule when the running transaction has ended in any way.

        Its failures are forgotten: they were those of another definition.

        Parameters:
            name: the schedule's name.
        """
        self._box.on_commit(partial(self._failures.pop, name, None))
        self._box.on_commit(self.look_soon)
        self._box.on_rollback(self.look_soon)

    # -- describing --

    def now(self) -> int:
        """Return the time in whole seconds since 1970, rounded down."""
        return math.floor(self._timer.now())

    def all(self) -> list[Record]:
        """Return the schedules in the order of their names, in values that can be packed."""
        return self._box.in_one_slice(self.all_steps())

    def all_steps(self) -> Steps[list[Record]]:
        """Describe a schedule in each step; as `all`."""
        space = find_space(self._box)
        found: list[Record] = []
        if space is not None:
            for row in space.pairs():
                found.append(self.describe(row))
                yield
        return found

    def describe(self, row: Tuple) -> Record:
        """Return a schedule in values that can be packed.

        Parameters:
            row: its row.

        Returns: its fields with `next_due` (seconds since 1970, in the past if a put is tried again; None if
            it is unknown), `last_error` and `failed_at` of the newest put if it failed, else None.
        """
        name = row[0]
        failure = self._failures.get(name)
        try:
            next_due = self._due_of(Schedule.of(row)).at
        except ValueError as error:
            next_due = None
            failure = failure or _Failure(str(error), self._timer.now(), 0.0)
        record: Record = record_of(row)
        del record[HANDLED]
        return {
            **record,
            "next_due": next_due,
            "last_error": None if failure is None else failure.text,
            "failed_at": None if failure is None else failure.at,
        }

    # -- putting --

    def _put_due(self) -> float:
        """Put the tasks of all due schedules, and return the next due time."""
        if not self._is_running or self._box.is_read_only:
            return math.inf
        space = find_space(self._box)
        if space is None:
            return math.inf
        self._box.on_rollback(self._begin_round)
        now = self._timer.now()
        if not self._last:
            self._earliest = math.inf
        room = TRANSACTION_MAX
        for looked_at, row in enumerate(space.index[0].pairs([self._last], iterator="GT")):
            if room <= 0 or looked_at == LOOKED_AT_MAX:
                return now
            self._last = row[0]
            moment, puts = self._handle(space, row, now)
            self._earliest = min(self._earliest, moment)
            room -= puts
        self._last = ""
        self._forget(space)
        return self._earliest

    def _begin_round(self) -> None:
        """Look at all schedules again, beginning with the first one."""
        self._last = ""

    def _look(self) -> None:
        self._begin_round()
        self._timer.run()

    def _forget(self, space: Space) -> None:
        """Forget schedules that exist no longer."""
        for kept in (self._due, self._failures):
            if len(kept) > space.len() or kept is self._failures:
                for name in [name for name in kept if space.get(name) is None]:
                    del kept[name]

    def _handle(self, space: Space, row: Tuple, now: float) -> tuple[float, int]:
        """Put the due tasks of a schedule. Its failure leaves the other schedules alone.

        Returns: when to look at it again, and the number of tasks.
        """
        failure = self._failures.get(row[0])
        if failure is not None and failure.waits(now):
            return failure.at + failure.delay, 0
        try:
            schedule = Schedule.of(row)
            due = self._due_of(schedule)
            if due.at is None:
                return math.inf, 0
            if due.at > now:
                return due.at, 0
            puts, handled, failed = self._box.atomic(self._put, space, schedule, due.cron, now)
            if failed is not None:
                return self._failed(row, failed, now), puts
            following = due.cron.after(handled)
        except BaseException as error:  # noqa: BLE001  # logged; an application's code may raise anything
            return self._failed(row, error, now), 0
        return math.inf if following is None else max(following, now), puts

    def _put(
        self, space: Space, schedule: Schedule, cron: CronExpression, now: float
    ) -> tuple[int, int, BaseException | None]:
        """Put tasks in the order of their due times, and store which of these are handled.

        Returns: the number of tasks, the last handled due time, and the error of the put after them, if any.
        """
        until = math.floor(now)
        wanted = list(_wanted(schedule, cron, until))
        handled, failed, changes = schedule.handled, None, []
        puts = 0
        if not wanted:
            handled = cron.latest(schedule.handled, until) or until
        else:
            queue = self._queue(schedule.queue)
            for moment in wanted:
                try:
                    task = self._box.atomic(queue.put, schedule.data, schedule.options)
                except BaseException as error:  # noqa: BLE001  # logged; what fits into a full queue stays
                    failed = error
                    break
                puts, handled = puts + 1, moment
                changes = [("=", LAST_DUE, moment), ("=", LAST_PUT, now), ("=", LAST_TASK, task.id)]
        if handled > schedule.handled:
            space.update(schedule.name, [("=", HANDLED, handled), *changes])
            skipped_until = wanted[0] - 1 if wanted else until
            self._box.on_commit(partial(_log_skipped, schedule, cron, skipped_until))
        if failed is None:
            self._box.on_commit(partial(self._succeeded, schedule, puts))
        return puts, handled, failed

    def _queue(self, name: str) -> ManagedQueue:
        queue = self._queues.find_or_begin(name)
        if "put" not in queue.actions:
            raise BoxError.procedure(f'nothing can be put into the queue "{name}"')
        return queue

    def _due_of(self, schedule: Schedule) -> _Due:
        """Return the next due time. Raises ValueError if the row has wrong values."""
        key = (schedule.cron, schedule.timezone, schedule.handled)
        known = self._due.get(schedule.name)
        if known is not None and known.key == key:
            return known
        if known is not None and known.key[:2] == key[:2]:
            cron = known.cron
        else:
            # Servers without schedules do without the modules for time zones.
            from iproto_server.server.schedules.cron import CronExpression

            cron = CronExpression(schedule.cron, schedule.timezone)
        due = self._due[schedule.name] = _Due(key, cron, cron.after(schedule.handled))
        return due

    # -- failures --

    def _failed(self, row: Tuple, error: BaseException, now: float) -> float:
        """Log why a schedule cannot put its task, and set a timer for the next attempt.

        Returns: infinity, for `DueTimer`.
        """
        name, queue, *_ = row
        before = self._failures.get(name)
        failures = before.number + 1 if before is not None else 1
        delay = pause_after(failures, LONGEST_PAUSE)
        text = error.message if isinstance(error, BoxError) else str(error) or type(error).__name__
        self._failures[name] = _Failure(text, now, delay, failures)
        logger.warning(
            "a schedule cannot put its task",
            exc_info=None if isinstance(error, BoxError | ValueError) else error,
            extra={"fields": {"schedule": name, "queue": queue, "retry_in": delay, "error": text}},
        )
        self._look_later(delay)
        return math.inf

    def _look_later(self, delay: float) -> None:
        # By steady time, so that a clock that steps back does not hold it up.
        self._box.clock.call_later(delay, self._look)

    def _succeeded(self, schedule: Schedule, puts: int) -> None:
        failure = self._failures.get(schedule.name)
        if failure is None:
            return
        if puts:
            del self._failures[schedule.name]
            event(logger, logging.INFO, "a schedule puts its tasks again", **_labels(schedule))
        else:
            # Its due times were skipped; the next one is not to wait.
            failure.delay, failure.number = 0.0, 0


def _log_skipped(schedule: Schedule, cron: CronExpression, until: int) -> None:
    """Log the due times that led to no task.

    Parameters:
        schedule: the schedule before the put.
        cron: its expression.
        until: the last second that they may be of.
    """
    last = cron.latest(schedule.handled, until)
    if last is not None:
        first = cron.after(schedule.handled)
        event(logger, logging.INFO, "due times were missed", **_labels(schedule), first=first, last=last)


def _wanted(schedule: Schedule, cron: CronExpression, until: int) -> Iterator[int]:
    """Yield the due times for which tasks are put, at most `PUTS_MAX`.

    Parameters:
        schedule: the schedule.
        cron: its expression.
        until: the time, in whole seconds since 1970.
    """
    if schedule.missed == Missed.LATEST:
        latest = cron.latest(schedule.handled, until)
        if latest is not None:
            yield latest
        return
    moment: int | None = schedule.handled
    if schedule.missed == Missed.NONE:
        moment = max(schedule.handled, until - LATE_MAX - 1)
    for _ in range(PUTS_MAX):
        moment = None if moment is None else cron.after(moment)
        if moment is None or moment > until:
            return
        yield moment


def _labels(schedule: Schedule) -> dict[str, object]:
    return {"schedule": schedule.name, "queue": schedule.queue, "missed": schedule.missed.value}
