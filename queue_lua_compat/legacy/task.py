"""A task of the legacy queue: the stored row, and the answers made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from iproto_server import Float64, Number64

ID: Final = 0
TUBE: Final = 1
STATUS: Final = 2
NEXT_EVENT: Final = 3
IPRI: Final = 4
PRI: Final = 5
CID: Final = 6
CREATED: Final = 7
TTL: Final = 8
TTR: Final = 9
CBURY: Final = 10
CTAKEN: Final = 11
DATA: Final = 12

FORMAT: Final[tuple[dict[str, object], ...]] = (
    {"name": "id", "type": "string"},
    {"name": "tube", "type": "string"},
    {"name": "status", "type": "string"},
    {"name": "next_event", "type": "unsigned", "size": 8},
    {"name": "ipri", "type": "integer"},
    {"name": "pri", "type": "unsigned"},
    {"name": "cid", "type": "unsigned", "size": 4},
    {"name": "created", "type": "unsigned", "size": 8},
    {"name": "ttl", "type": "unsigned", "size": 8},
    {"name": "ttr", "type": "unsigned", "size": 8},
    {"name": "cbury", "type": "unsigned", "size": 8},
    {"name": "ctaken", "type": "unsigned", "size": 8},
    {"name": "data", "type": "any", "is_nullable": True},
)
"""The fields in the order of the original. Times and durations are in microseconds, times since 1970. The
sizes are those that clients of Tarantool 1.5's protocol expect."""

READY: Final = "r"
DELAYED: Final = "d"
TAKEN: Final = "t"
BURIED: Final = "b"
DONE: Final = "*"
STATUSES: Final = {READY: "ready", DELAYED: "delayed", TAKEN: "taken", BURIED: "buried", DONE: "done"}
"""Status names for clients, by the stored status."""

MIDDLE_IPRI: Final = 127
"""The internal priority of a task that is neither urgent nor requeued. Smaller ones come first."""

DEFAULT_PRIORITY: Final = 127
HIGHEST_PRIORITY: Final = 255
MICROSECONDS: Final = 1_000_000

Task = list[Any]
"""A task as clients see it: id, tube, status, and the fields of its data."""

Row = Sequence[Any]


def task_of(row: Row) -> Task:
    """Convert a row for clients."""
    return [row[ID], row[TUBE], STATUSES.get(row[STATUS], row[STATUS]), *row[DATA:]]


def meta_of(row: Row, now: int) -> list[Any]:
    """Build the answer of `queue.meta` for a row, with durations in seconds.

    Parameters:
        row: the row.
        now: the time in microseconds since 1970.
    """
    return [
        row[ID],
        row[TUBE],
        STATUSES.get(row[STATUS], row[STATUS]),
        Number64(row[NEXT_EVENT]),
        str(row[IPRI]),
        str(HIGHEST_PRIORITY - row[PRI]),
        row[CID],
        Number64(row[CREATED]),
        _seconds(row[TTL]),
        _seconds(row[TTR]),
        Number64(row[CBURY]),
        Number64(row[CTAKEN]),
        Number64(now),
    ]


def end_of(row: Row) -> int:
    """Return the end of the task's time to live, in microseconds since 1970."""
    return int(min(row[CREATED] + row[TTL], 2**64 - 1))


def _seconds(microseconds: int) -> Number64 | Float64:
    whole, rest = divmod(microseconds, MICROSECONDS)
    return Float64(microseconds / MICROSECONDS) if rest else Number64(whole)
