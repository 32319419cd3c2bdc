"""The procedures `operator.schedule`, `.unschedule` and `.schedules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from iproto_server.box import Box, Waiter
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.server.applications.application_queues import ApplicationQueues
from iproto_server.server.operator_log import log_action
from iproto_server.server.schedules.schedule import (
    Missed,
    Schedule,
    create_space,
    find_space,
    missed_policy,
)
from iproto_server.server.schedules.scheduler import Record, Scheduler

NAME_MAX: Final = 200
"""The maximum length of a schedule's name in characters."""
SCHEDULES_MAX: Final = 1000
TASK_MAX: Final = 16 * 1024
"""The maximum size of a schedule's data and options in bytes, as they are stored."""
_KEYS: Final = ("queue", "cron", "timezone", "missed", "data", "options")


class ScheduleCalls:
    """Creates, replaces, removes and lists schedules; its methods run in a transaction as admin.

    Parameters:
        box: the database.
        queues: finds the queues.
        scheduler: puts the tasks, and is told about changes.
    """

    def __init__(self, box: Box, queues: ApplicationQueues, scheduler: Scheduler) -> None:
        self._box = box
        self._queues = queues
        self._scheduler = scheduler

    def schedules(self) -> list[Record] | Waiter:
        """Return the schedules in the order of their names, many in slices; see `Scheduler.describe`."""
        return self._box.in_slices(self._scheduler.all_steps(), for_answer_only=True)

    def schedule(self, name: object = None, definition: object = None) -> Record:
        """Create or replace a schedule, and return it.

        Due times up to now lead to no task, unless the definition is the one that is stored already.

        Parameters:
            name: its name.
            definition: `queue`, `cron`, and optionally `timezone` (UTC), `missed` ("latest"), `data` (nil),
                `options` of each put (none).

        Raises:
            BoxError: PROC_LUA, something of this is wrong, or there are `SCHEDULES_MAX` schedules.
        """
        wanted = self._read(_name(name), definition)
        space = find_space(self._box)
        if space is None:
            space = create_space(self._box)
        before = space.get(wanted.name)
        if before is None and space.len() >= SCHEDULES_MAX:
            raise BoxError.procedure(f"there are {SCHEDULES_MAX} schedules already, which is the maximum")
        fields = wanted.fields()
        if before is not None:
            stored = list(before)
            if codec.pack(stored[:7]) == codec.pack(fields[:7]):
                return self._scheduler.describe(before)
            fields[7:] = [max(stored[7], wanted.handled), *stored[8:11]]
        row = space.replace(fields)
        self._scheduler.changes(wanted.name)
        log_action(
            self._box,
            "schedule",
            schedule=wanted.name,
            queue=wanted.queue,
            cron=wanted.cron,
            timezone=wanted.timezone,
            missed=wanted.missed.value,
        )
        return self._scheduler.describe(row)

    def unschedule(self, name: object = None) -> Record:
        """Remove a schedule, and return it as it was. Its tasks stay.

        Parameters:
            name: its name.

        Raises:
            BoxError: PROC_LUA, there is no such schedule.
        """
        known = _name(name)
        space = find_space(self._box)
        row = None if space is None else space.get(known)
        if space is None or row is None:
            raise BoxError.procedure(f'there is no schedule "{known}"')
        record = self._scheduler.describe(row)
        space.delete(known)
        self._scheduler.changes(known)
        log_action(self._box, "unschedule", schedule=known, queue=row[1])
        return record

    def _read(self, name: str, definition: object) -> Schedule:
        """Return the schedule of a definition, of which due times up to now are handled."""
        if not isinstance(definition, Mapping):
            raise BoxError.procedure("the definition of a schedule must be a map")
        for key in definition:
            if key not in _KEYS:
                raise BoxError.procedure(f"a schedule has no {key!r}; it has {', '.join(_KEYS)}")
        queue = _text(definition, "queue")
        cron = _text(definition, "cron")
        timezone = _text(definition, "timezone", "UTC")
        options = self._options(queue, definition.get("options"))
        from iproto_server.server.schedules.cron import CronExpression

        try:
            missed = missed_policy(_text(definition, "missed", Missed.LATEST.value))
            CronExpression(cron, timezone)
        except ValueError as error:
            raise BoxError.procedure(str(error)) from None
        data = definition.get("data")
        size = len(codec.pack([data, options]))
        if size > TASK_MAX:
            raise BoxError.procedure(
                f"data and options of a schedule have {size} bytes; {TASK_MAX} is the maximum"
            )
        now = self._scheduler.now()
        return Schedule(name, queue, cron, timezone, missed, data, options, max(now, 0))

    def _options(self, name: str, given: Any) -> dict[str, object]:
        """Check that there is a queue to put into, and return the options of its put."""
        queue = self._queues.find_or_begin(name)
        if "put" not in queue.actions:
            raise BoxError.procedure(f'nothing can be put into the queue "{name}"')
        # An empty map of a Lua client is an empty list.
        if given is None or given == []:
            return {}
        if not isinstance(given, Mapping):
            raise BoxError.procedure("options must be a map")
        for option in given:
            if option not in queue.options:
                has = ", ".join(sorted(queue.options)) or "none"
                raise BoxError.procedure(f'the queue "{name}" has no option {option!r}; it has {has}')
        return dict(given)


def _name(value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_MAX:
        raise BoxError.procedure(f"the name of a schedule must be a text of 1 to {NAME_MAX} characters")
    return value


def _text(definition: Mapping[Any, Any], key: str, default: str | None = None) -> str:
    value = definition.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise BoxError.procedure(f"{key} must be a text, not {value!r}")
    return value
