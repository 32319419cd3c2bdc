"""Spans of OpenTelemetry, where the package `opentelemetry` is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import propagate, trace
except ImportError:
    propagate = trace = None

_NAME = "iproto_server.client"


@contextmanager
def put_span(title: str) -> Iterator[None]:
    """A span around a put.

    Parameters:
        title: the queue.
    """
    if trace is None:
        yield
        return
    with trace.get_tracer(_NAME).start_as_current_span(f"put {title}", kind=trace.SpanKind.PRODUCER):
        yield


@contextmanager
def task_span(title: str, task_id: object, data: object, *, linked: bool) -> Iterator[None]:
    """A span around the handling of a task.

    Parameters:
        title: the queue.
        task_id: the task.
        data: the task's data.
        linked: the data may carry the context of the put.
    """
    if trace is None:
        yield
        return
    context = propagate.extract(data) if linked and isinstance(data, dict) else None
    with trace.get_tracer(_NAME).start_as_current_span(
        f"task {title}",
        context=context,
        kind=trace.SpanKind.CONSUMER,
        attributes={"messaging.message.id": str(task_id)},
    ):
        yield


def with_context(data: Any) -> Any:
    """Return a copy with the current context (`traceparent`) of data that is a dict; other data as it is."""
    if propagate is None or not isinstance(data, dict):
        return data
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return {**data, **carrier}
