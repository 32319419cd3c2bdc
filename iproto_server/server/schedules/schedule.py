"""A schedule, and the space in which schedules are stored."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from iproto_server.box import Box, Space, Tuple
from iproto_server.errors import BoxError

SPACE: Final = "_queue_schedules"
_FORMAT: Final = (
    {"name": "name", "type": "string"},
    {"name": "queue", "type": "string"},
    {"name": "cron", "type": "string"},
    {"name": "timezone", "type": "string"},
    {"name": "missed", "type": "string"},
    {"name": "data", "type": "any", "is_nullable": True},
    {"name": "options", "type": "map"},
    {"name": "handled", "type": "unsigned"},
    {"name": "last_due", "type": "unsigned", "is_nullable": True},
    {"name": "last_put", "type": "number", "is_nullable": True},
    {"name": "last_task", "type": "any", "is_nullable": True},
)
_NAMES: Final = [str(field["name"]) for field in _FORMAT]
HANDLED, LAST_DUE, LAST_PUT, LAST_TASK = "handled", "last_due", "last_put", "last_task"


class Missed(StrEnum):
    """The policies for due times that passed while no task could be put."""

    LATEST = "latest"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it is stored.

    Attributes:
        name: its name.
        queue: the queue's name, as operators know it.
        cron: the cron expression.
        timezone: the time zone's name.
        missed: the policy for missed due times.
        data: the payload of each task.
        options: the options of each put.
        handled: due times up to this one are handled; in seconds since 1970, as the next two.
        last_due: the due time of the last task; None: none was put yet.
        last_put: when that task was put.
        last_task: its id.
    """

    name: str
    queue: str
    cron: str
    timezone: str
    missed: Missed
    data: object
    options: dict[str, object]
    handled: int
    last_due: int | None = None
    last_put: float | None = None
    last_task: int | str | None = None

    @classmethod
    def of(cls, row: Tuple) -> Schedule:
        """Return the schedule of a row. Raises ValueError if a client has stored an unknown policy."""
        record = record_of(row)
        return cls(**{**record, "missed": missed_policy(record["missed"])})

    def fields(self) -> list[object]:
        """Return the fields of its row."""
        return [
            *(self.name, self.queue, self.cron, self.timezone, self.missed.value, self.data, self.options),
            *(self.handled, self.last_due, self.last_put, self.last_task),
        ]


def record_of(row: Tuple) -> dict[str, Any]:
    """Return the fields of a row by name, also of one that a client has stored with wrong values."""
    values: list[Any] = list(row)[: len(_NAMES)]
    values += [None] * (len(_NAMES) - len(values))
    return dict(zip(_NAMES, values, strict=True))


def missed_policy(value: object) -> Missed:
    """Return the policy of a name. Raises ValueError, for the user, if there is none."""
    for policy in Missed:
        if policy.value == value:
            return policy
    raise ValueError(f"missed must be one of {', '.join(Missed)}, not {value!r}")


def find_space(box: Box) -> Space | None:
    """Return the space of the schedules; None before the first one, or if a client has made another one."""
    if SPACE not in box.space:
        return None
    space = box.space[SPACE]
    is_ours = [field["name"] for field in space.format()] == _NAMES and "primary" in space.index
    return space.beyond_memory_limit() if is_ours else None


def create_space(box: Box) -> Space:
    """Create the space of the schedules, as the current user.

    Raises:
        BoxError: PROC_LUA, a client has made another space of that name.
    """
    if SPACE in box.space:
        raise BoxError.procedure(f"the space {SPACE} is not the one that the server creates for schedules")
    space = box.schema.create_space(SPACE, format=[dict(field) for field in _FORMAT])
    space.create_index("primary", parts=["name"])
    return space
