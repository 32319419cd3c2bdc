"""Producers and workers for queues: the tutorial's, and tubes of the queue module, here or in Tarantool.

    async with Queue("127.0.0.1:3301", tube="jobs") as queue:
        await queue.put({"to": "ann"})
        await queue.work(handler, concurrency=8)

`Queue` is for asyncio and uses asynctnt; `iproto_server.client.sync.Queue` is for plain scripts and uses
tarantool-python. `dialects.py` knows the procedures, `retries.py` when to try again, `link.py` one
connection, `task.py` a taken task, `consumer.py` the loop that takes them, `handlers.py` runs handlers,
`tracing.py` OpenTelemetry. Nothing here imports the server.
"""

from __future__ import annotations

from iproto_server.client.consumer import Consumer
from iproto_server.client.errors import (
    HandlerStuck,
    NotConnected,
    QueueError,
    QueueFull,
    Refused,
    TaskLost,
    Unsupported,
)
from iproto_server.client.queue import Queue
from iproto_server.client.retries import Backoff
from iproto_server.client.task import Task

__all__ = [
    "Backoff",
    "Consumer",
    "HandlerStuck",
    "NotConnected",
    "Queue",
    "QueueError",
    "QueueFull",
    "Refused",
    "Task",
    "TaskLost",
    "Unsupported",
]
